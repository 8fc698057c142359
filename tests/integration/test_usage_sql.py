"""The SQL of docs/usage.md gives the numbers of `headgate usage`, in Spark and in DuckDB, now and in the past."""

import json
import re
from pathlib import Path

import duckdb
import duckdb_extension_delta
import pytest

from headgate.cli import main
from unit.quota.usage_scene import write_scene

PAGE = Path(__file__).parents[2] / "docs" / "usage.md"
BLOCKS = [block.split(";") for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)]
SPARK_TABLES, DUCKDB_TABLES, NOW, PAST, VIEWS, *QUESTIONS = BLOCKS
CLASSES = ("publish", "dispatch")
UNITS = ("messages", "bytes")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usage")
    write_scene(folder)
    return folder


@pytest.fixture
def in_spark(spark, scene):
    spark.conf.set("spark.sql.session.timeZone", "UTC")

    def run(statement):
        return [row.asDict() for row in spark.sql(statement.replace("OUTPUT", str(scene))).collect()]

    return run, SPARK_TABLES


@pytest.fixture
def in_duckdb(scene):
    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        connection.execute("SET TimeZone = 'UTC'")

        def run(statement):
            return connection.execute(statement.replace("OUTPUT", str(scene))).to_arrow_table().to_pylist()

        yield run, DUCKDB_TABLES


@pytest.fixture
def told(scene, capsys):
    """What the command says, as JSON."""

    def run(*arguments):
        assert 0 == main(["usage", str(scene), "--json", *arguments])
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("engine", ["in_spark", "in_duckdb"])
def test_the_pages_sql_gives_the_numbers_of_the_command(request, engine, told):
    run, opening = request.getfixturevalue(engine)
    for statement in [*opening, *NOW, *VIEWS]:
        run(statement)
    assert expected_of(told) == answers(run)

    for statement in [*PAST, *VIEWS]:
        run(statement)
    (at,) = set(re.findall(r"CAST\((\d+) AS BIGINT\) AS epoch", PAST[0]))
    assert expected_of(told, "--at", f"{at}000") == answers(run)


def answers(run):
    by_group, by_broker, by_tenant = (run(question) for (question,) in QUESTIONS)
    cells = [{**row, "class": CLASSES[row["class"]], "dimension": UNITS[row["dimension"]]} for row in by_group]
    parts = [{**row, "class": CLASSES[row["class"]], "dimension": UNITS[row["dimension"]]} for row in by_broker]
    return {"groups": in_order(cells), "brokers": in_order(parts), "tenants": in_order(by_tenant)}


def expected_of(told, *at):
    quotas = [quota for quota in told(*at)["quotas"] if quota["quota"] is not None]
    cell = {
        "group_name": "group",
        "class": "class",
        "dimension": "unit",
        "quota": "quota",
        "admitted": "admitted",
        "demand": "demand",
        "throttled_brokers": "throttledBrokers",
    }
    part = {
        "broker": "name",
        "broker_limit": "limit",
        **{name: name for name in ("admitted", "demand", "throttled", "age", "reason", "victim")},
    }
    tenant = {
        "tenant": "tenant",
        "group_name": "group",
        "publishes": "publishes",
        "messages": "messages",
        "bytes": "bytes",
        "admitted_messages": "admittedMessages",
        "admitted_bytes": "admittedBytes",
        "throttled_publishes": "throttledPublishes",
        "throttled_ns": "throttledNs",
    }
    head = {name: cell[name] for name in ("group_name", "class", "dimension")}
    return {
        "groups": in_order(named(quota, cell) for quota in quotas),
        "brokers": in_order(named(quota, head) | named(one, part) for quota in quotas for one in quota["brokers"]),
        "tenants": in_order(named(one, tenant) for one in told("--by", "tenant", *at)["tenants"]),
    }


def named(values, names):
    return {column: values[name] for column, name in names.items()}


def in_order(rows):
    return sorted(({name: row[name] for name in sorted(row)} for row in rows), key=str)
