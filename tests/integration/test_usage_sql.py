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
SPARK_TABLES, NOW, PAST, VIEWS, *ASKED = BLOCKS
DUCKDB_TABLES = [re.sub(r"delta\.`(.*?)`", r"delta_scan('\1')", statement) for statement in SPARK_TABLES]
QUESTIONS = {name: question for name, (question,) in zip(("groups", "brokers", "tenants"), ASKED, strict=True)}
CLASSES = ("publish", "dispatch")
UNITS = ("messages", "bytes")
HEAD = {"group_name": "group", "class": "class", "dimension": "unit"}
"""What the command calls each column."""
QUOTA = {"quota": "quota", "admitted": "admitted", "demand": "demand", "throttled_brokers": "throttledBrokers"}
BROKER = {
    "broker": "name",
    "broker_limit": "limit",
    **{name: name for name in ("admitted", "demand", "throttled", "age", "reason", "victim")},
}
TENANT = {
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
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
"""Planning in stages takes many times as long as these rows."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usage")
    write_scene(folder)
    return folder


@pytest.fixture
def in_spark(spark, scene):
    for name, value in FEW_ROWS.items():
        spark.conf.set(name, value)

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


@pytest.mark.parametrize(
    ("engine", "asked_of_the_past"),
    [
        pytest.param("in_spark", ["groups"], marks=pytest.mark.long, id="spark"),
        pytest.param("in_duckdb", ["groups", "brokers", "tenants"], id="duckdb"),
    ],
)
def test_the_pages_sql_gives_the_numbers_of_the_command(request, engine, asked_of_the_past, told):
    """Of the past Spark is asked one question: a plan of these views takes it seconds, whatever the rows."""
    run, opening = request.getfixturevalue(engine)
    for statement in [*opening, *NOW, *VIEWS]:
        run(statement)
    for name in QUESTIONS:
        assert expected_of(name, told) == answers(name, run)

    for statement in [*PAST, *VIEWS]:
        run(statement)
    (at,) = set(re.findall(r"CAST\((\d+) AS BIGINT\) AS epoch", PAST[0]))
    for name in asked_of_the_past:
        assert expected_of(name, told, "--at", f"{at}000") == answers(name, run)


def answers(name, run):
    rows = run(QUESTIONS[name])
    if name != "tenants":
        rows = [{**row, "class": CLASSES[row["class"]], "dimension": UNITS[row["dimension"]]} for row in rows]
    return in_order(rows)


def expected_of(name, told, *at):
    if name == "tenants":
        return in_order(named(one, TENANT) for one in told("--by", "tenant", *at)["tenants"])
    quotas = [quota for quota in told(*at)["quotas"] if quota["quota"] is not None]
    if name == "groups":
        return in_order(named(quota, HEAD | QUOTA) for quota in quotas)
    return in_order(named(quota, HEAD) | named(one, BROKER) for quota in quotas for one in quota["brokers"])


def named(values, names):
    return {column: values[name] for column, name in names.items()}


def in_order(rows):
    return sorted(({name: row[name] for name in sorted(row)} for row in rows), key=str)
