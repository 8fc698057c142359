"""The sql command: a query over the tables of an output folder, without Spark."""

import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate import cli
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cli import main
from headgate.errors import TableError
from headgate.places import RUNNING
from headgate.report import sql
from headgate.report.sql import query
from headgate.tables.delta import Tables
from headgate.throttle.schemas import TOPIC_USAGE
from unit.report.empty_tables import empty_tables

LETTERS = [
    {"reason": "no JSON", "raw": "[b]:fire:[/x", "source": "a", "offset": 7},
    {"reason": "seq: got null", "raw": None, "source": "a", "offset": 8},
]


@pytest.fixture
def output(tmp_path):
    tables = empty_tables(tmp_path)
    tables.append("dead_letters", pa.Table.from_pylist(LETTERS, DEAD_LETTERS), "query", 0)
    return str(tmp_path)


def test_times_finer_than_a_microsecond_are_rounded_down(output, capsys):
    assert 0 == main(
        ["sql", output, "SELECT arrow_cast(1234567891, 'Timestamp(Nanosecond, None)') AS at FROM dead_letters"]
    )
    assert "1970-01-01 00:00:01.234567" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "meanwhile"), [(signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)]
)
def test_while_a_query_runs_ctrl_c_is_not_heeded_by_python(output, monkeypatch, request, before, meanwhile):
    """It ends the process: the engine gives Python no chance to hear of it."""
    heard = []

    def noted(*_):
        heard.append(signal.getsignal(signal.SIGINT))
        return pa.table({"n": [1]})

    monkeypatch.setattr("headgate.report.sql.query", noted)
    around = signal.signal(signal.SIGINT, before)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, around))
    assert 0 == main(["sql", output, "SELECT 1"])
    assert [meanwhile, before] == [*heard, signal.getsignal(signal.SIGINT)]


@pytest.mark.parametrize("arguments", [["tables"], ["sql", "show TABLES ;"]])
def test_tables_are_listed_with_rows_and_times(tmp_path, capsys, arguments):
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    rows = [{"event_time": at + timedelta(seconds=n), "topic": "persistent://a/b/c"} for n in (0, 5)]
    tables = Tables(tmp_path, {"topic_usage": TOPIC_USAGE, "dead_letters": DEAD_LETTERS})
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    command, *query = arguments
    assert 0 == main([command, str(tmp_path), *query])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["table", "rows", "first", "last"],
        ["dead_letters", "0"],
        ["topic_usage", "2", "2026-03-01T12:00:00Z", "2026-03-01T12:00:05Z"],
    ]


@pytest.mark.parametrize("command", [["tables"], ["usage"], ["sql", "SELECT 1"], ["groups", "list"]])
def test_tables_in_folders_below_are_named_and_a_run_that_was_killed_is_told_of(tmp_path, capsys, command):
    output, arguments = tmp_path / "out", [*command[:1], *command[1:]]
    at = 1 if command[0] != "groups" else 2
    for name in ("new", "old"):
        empty_tables(output / name)

    assert 2 == main([*arguments[:at], str(output), *arguments[at:]])
    assert f"no table is right in {output}; give one of the folders that have some: {output}/new, {output}/old" in (
        capsys.readouterr().err
    )
    (output / RUNNING).touch()
    main([*arguments[:at], str(output / "new"), *arguments[at:]])
    assert f"warning: a run writes to {output / 'new'}, or it failed or was killed" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["tables"], ["sql", "SELECT count(*) FROM Dead_Letters"]])
@pytest.mark.parametrize("left", [None, "garbage"])
def test_a_damaged_log_is_told_of_in_a_line(output, capsys, arguments, left):
    for entry in Path(output, "dead_letters", "_delta_log").iterdir():
        entry.unlink()
    if left is not None:
        Path(output, "dead_letters", "_delta_log", f"{0:020}.json").write_text(left)
    command, *sql_ = arguments
    assert 2 == main([command, output, *sql_])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"the table {output}/dead_letters cannot be read: " in line
    assert 0 == main(["sql", output, "SELECT count(*) AS all_dead_letters FROM marks"])


def test_a_table_is_found_whatever_its_name_is(tmp_path):
    for name in ("Mine", "a-b"):
        write_deltalake(tmp_path / name, pa.table({"n": [1]}))
    assert [1] == query(str(tmp_path), "SELECT n FROM mine")["n"].to_pylist()
    assert [1] == query(str(tmp_path), 'SELECT n FROM "a-b"')["n"].to_pylist()


def test_rows_that_are_gone_are_told_of_in_a_line(tmp_path, capsys):
    rows = pa.Table.from_pylist([{"event_time": datetime(2026, 3, 1, tzinfo=UTC)}], TOPIC_USAGE)
    Tables(tmp_path, {"topic_usage": TOPIC_USAGE}).append("topic_usage", rows, "query", 0)
    for file in (tmp_path / "topic_usage").glob("*.parquet"):
        file.unlink()
    assert 2 == main(["tables", str(tmp_path)])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"the table {tmp_path}/topic_usage cannot be read: " in line


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-"])
def test_a_command_runs_where_a_stream_is_closed(output, closed):
    command = f"{sys.executable} -m headgate sql {output} 'SELECT 1' {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)


def test_a_stream_that_was_closed_is_there_for_a_job_that_is_started_instead(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    cli._open_streams()
    with sys.stdin as stream:
        assert (True, "") == (os.get_inheritable(stream.fileno()), stream.read())


def test_a_table_with_a_topic_has_its_tenant_and_namespace(tmp_path):
    tables = Tables(tmp_path, {"topic_usage": TOPIC_USAGE})
    topics = ["persistent://acme/shop/orders/eu", "non-persistent://t/n/x-partition-3", None]
    tables.append("topic_usage", pa.Table.from_pylist([{"topic": topic} for topic in topics], TOPIC_USAGE), "query", 0)
    rows = query(str(tmp_path), "SELECT tenant, namespace FROM topic_usage WHERE tenant IS NOT NULL ORDER BY tenant")
    assert [("acme", "acme/shop"), ("t", "t/n")] == [tuple(row.values()) for row in rows.to_pylist()]


def test_tables_of_earlier_versions_get_the_columns_that_are_new(tmp_path):
    DeltaTable.create(f"{tmp_path}/topic_usage", schema=TOPIC_USAGE)
    tables = Tables(tmp_path, {"topic_usage": TOPIC_USAGE})
    tables.append("topic_usage", pa.Table.from_pylist([{"topic": "persistent://a/b/c"}], TOPIC_USAGE), "query", 0)
    assert ["a"] == query(str(tmp_path), "SELECT tenant FROM topic_usage")["tenant"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["usge"], "usage"),
        (["compare"], "try"),
        (["STATUS"], "usage"),
        (["groups", "create"], "set"),
        (["groups", "lst"], "list"),
        (["usage", "x", "--by", "tenent"], "tenant"),
        (["trie"], "try"),
        (["try", "x", "--recomend"], "--recommend"),
        (["usage", "x", "--epoch=1"], "--epochs"),
        (["xyzzy"], None),
        (["try", "x", "--inpt"], None),
    ],
)
def test_a_command_that_does_not_exist_gets_the_nearest_that_does(capsys, arguments, near):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"; did you mean {near}?") if near else "did you mean" not in said


def test_a_query_sees_all_tables_of_the_folder(output):
    rows = query(output, "SELECT count(*) AS n, max(d.offset) AS last FROM dead_letters d LEFT JOIN marks ON false")

    assert [{"n": 2, "last": 8}] == rows.to_pylist()


def test_the_command_prints_a_table_with_nulls_left_out_and_values_as_they_are(output, capsys):
    assert 0 == main(["sql", output, "SELECT offset, raw, source FROM dead_letters ORDER BY offset"])
    assert [
        "offset  raw           source",
        "7       [b]:fire:[/x  a     ",
        "8                     a     ",
    ] == capsys.readouterr().out.splitlines()


def test_no_rows_are_a_heading_alone(output, capsys):
    assert 0 == main(["sql", output, "SELECT batch_id, rows FROM batches"])
    assert ["batch_id  rows"] == capsys.readouterr().out.splitlines()


def test_a_pipe_gets_one_line_a_row_however_wide(output, capsys):
    assert 0 == main(["sql", output, "SELECT repeat('x', 500) AS a, repeat('y', 500) AS b"])
    assert [f"{'a':500}  {'b':500}", f"{'x' * 500}  {'y' * 500}"] == capsys.readouterr().out.splitlines()


def test_a_terminal_gets_values_folded_and_whole(output, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")

    assert 0 == main(["sql", output, "SELECT repeat('x', 100) AS a"])
    lines = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()
    assert max(len(line) for line in lines) <= 40
    assert 100 == "".join(lines).count("x")


def test_only_the_first_rows_are_shown_and_the_rest_counted(output, capsys, monkeypatch):
    monkeypatch.setattr(sql, "SHOWN_ROWS", 1)

    assert 0 == main(["sql", output, "SELECT offset FROM dead_letters ORDER BY offset"])
    assert ["offset", "7     ", "1 of 2 rows shown"] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT nope FROM marks", "No field named nope"),
        ("SELECT 1 FROM nope", "table 'datafusion.public.nope' not found"),
        ("SELECT 1 FROM", "Expected: identifier"),
        ("SELECT 1; SELECT 2", "only supports a single SQL statement"),
        ("SELECT 1; COPY marks TO '/nowhere/a.csv'", "only supports a single SQL statement"),
        ("WITH a AS (SELECT 1) DELETE FROM marks", "not implemented"),
        ("WITH a AS (SELECT * FROM marks) INSERT INTO marks SELECT * FROM a", "not implemented"),
        ("SELECT 1 / 0", "Divide by zero"),
    ],
)
def test_a_query_that_cannot_be_run_says_why_and_which_tables_there_are(output, statement, said):
    with pytest.raises(TableError) as refused:
        query(output, statement)

    message = str(refused.value)
    assert message.startswith("the query cannot be run: ")
    assert said in message
    assert message.endswith(
        ". Tables here: batches, control, dead_letters, dispatch_decisions, marks, subscribe_decisions, topic_usage, "
        "unloads"
    )


def test_where_the_tables_of_jobs_of_one_broker_are_is_told(tmp_path):
    (tmp_path / "brokers" / "b-1").mkdir(parents=True)

    with pytest.raises(TableError, match=f"tables of their own under {tmp_path}/brokers/b-1$"):
        query(str(tmp_path), "SELECT 1")


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{file}'",
        "copy (SELECT 1) TO '{file}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{file}'",
        "EXPLAIN ANALYZE VERBOSE COPY (SELECT 1) TO '{file}'",
        "EXPLAIN EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "-- SELECT\nCOPY (SELECT 1) TO '{file}'",
        "-- \rCOPY (SELECT 1) TO '{file}' --\nSELECT 1",
        "/* /* */ SELECT 1 */ COPY (SELECT 1) TO '{file}'",
        "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '{file}'",
        "CREATE TABLE a AS SELECT 1",
        "DROP TABLE marks",
        "DELETE FROM marks",
        "INSERT INTO marks SELECT * FROM marks",
        "SET datafusion.execution.batch_size = 1",
        "SELEC 1",
        "",
    ],
)
def test_what_is_no_query_is_refused_and_does_nothing(output, tmp_path, statement):
    file = tmp_path / "written.csv"

    with pytest.raises(TableError, match="allowed is one query, which changes nothing: it begins with SELECT, WITH,"):
        query(output, statement.format(file=file))
    assert not file.exists()


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT offset FROM dead_letters;", 2),
        ("  -- all of them\n-- as they are\n select * from dead_letters -- done", 2),
        ("WITH a AS (SELECT * FROM dead_letters) SELECT * FROM a", 2),
        ("(SELECT 1) UNION ALL (SELECT 2)", 2),
        ("FROM dead_letters SELECT offset", 2),
        ("VALUES (1), (2), (3)", 3),
        ("DESCRIBE dead_letters", 4),
        ("desc dead_letters", 4),
        ("EXPLAIN SELECT * FROM marks", 2),
        ("EXPLAIN ANALYZE SELECT * FROM marks", 1),
        ("EXPLAIN FORMAT TREE SELECT 1", 1),
    ],
)
def test_every_form_of_a_query_runs(output, statement, rows):
    assert rows == len(query(output, statement))


def test_a_folder_without_tables_is_told(tmp_path, capsys):
    assert 2 == main(["sql", str(tmp_path / "nothing"), "SELECT 1"])
    expected = f"headgate: no Delta table is under {tmp_path}/nothing: give the --output of a job\n"
    assert expected == capsys.readouterr().err
