"""Delta tables without Spark: appends happen once, readers find what was written, the page has their columns."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.arrow.topic_names import named_schema
from headgate.cache.schemas import COUNTS_BY_NAME, EVENTS, OF_CACHE
from headgate.errors import TableError
from headgate.protocol.schemas import INPUTS, METRICS, OF_PROTOCOL
from headgate.rows import kinds
from headgate.tables.delta import MOST_FAILURES, PatientAppend, Tables
from headgate.throttle.limits.control import FROM_THE_START, tick_row
from headgate.throttle.schemas import CONTROL, TIMESTAMP
from headgate.throttle.tables import OF_CONNECTIONS, SCHEMAS, throttle_tables

PAGE = Path(__file__).parents[3] / "docs" / "tables.md"
ALL = {name: named_schema(schema) for name, schema in (SCHEMAS | OF_CONNECTIONS).items()}
OF_CLIENTS = {name: named_schema(schema) for name, schema in OF_PROTOCOL.items() if schema is not DEAD_LETTERS}
OF_CACHES = {name: named_schema(schema) for name, schema in OF_CACHE.items() if schema is not DEAD_LETTERS}
OF_TOPICS = ["tenant", "namespace"]
INPUTS_OF_OTHERS = {"Inputs of the throttle protocol": INPUTS, "Cache events": EVENTS}
DOCUMENTED = ALL | OF_CLIENTS | OF_CACHES | INPUTS_OF_OTHERS
TYPES = {"long": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "timestamp": TIMESTAMP} | {
    "int": pa.int32(),
    "map": METRICS.field("labels").type,
    "trips": INPUTS.field("trips").type,
    "buckets": INPUTS.field("buckets").type,
    "double": pa.float64(),
    "counts": COUNTS_BY_NAME,
    "sizes": EVENTS.field("sizes").type,
}
INPUT = [(field.name, TIMESTAMP if field.name == "event_time" else field.type) for field in kinds.INPUT]
COLUMNS = re.compile(rf"^\| ([a-z_]+(?:, [a-z_]+)*) \| ({'|'.join(TYPES)}) \|([^|]*)\|$", re.MULTILINE)
"""A line of a table on the page: columns of one type, the type, their meaning."""


@pytest.fixture
def output(tmp_path):
    return tmp_path / "output"


def letters(*reasons):
    return pa.Table.from_pylist([{"reason": reason} for reason in reasons], DEAD_LETTERS)


def reasons(tables):
    return sorted(tables.read("dead_letters", ["reason"])["reason"].to_pylist())


def test_all_tables_are_there_from_the_start_with_their_columns(output):
    tables = throttle_tables(output)

    for name in SCHEMAS:
        assert (ALL[name].names, 0) == (tables.read(name).schema.names, len(tables.read(name)))
        assert tables.is_empty(name)


def test_tables_of_another_job_are_beside_those_that_are_there(output):
    throttle_tables(output)
    tables = Tables(output, OF_CONNECTIONS)

    assert sorted(ALL) == sorted(path.name for path in output.iterdir())
    assert all(tables.is_empty(name) for name in OF_CONNECTIONS)


def test_tables_that_exist_are_opened_as_they_are(output):
    throttle_tables(output).append("dead_letters", letters("a"), "query", 0)

    assert ["a"] == reasons(throttle_tables(str(output)))


@pytest.mark.parametrize(
    ("appends", "taken", "held"),
    [
        ([("query", 0), ("query", 0)], [True, False], 1),
        ([("query", 3), ("query", 2)], [True, False], 1),
        ([("query", 0), ("query", 1)], [True, True], 2),
        ([("query", 0), ("query", 7), ("query", 7)], [True, True, False], 2),
        ([("query", 5), ("other", 0), ("other", 0), ("query", 5)], [True, True, False, False], 2),
    ],
)
def test_a_transaction_is_appended_once(output, appends, taken, held):
    tables = throttle_tables(output)

    assert taken == [tables.append("dead_letters", letters("a"), *transaction) for transaction in appends]
    assert held == len(tables.read("dead_letters"))


def test_a_transaction_counts_per_table(output):
    tables = throttle_tables(output)
    rows = pa.Table.from_pylist([tick_row(FROM_THE_START)], CONTROL)

    assert [True, True] == [tables.append("dead_letters", letters("a"), "q", 0), tables.append("control", rows, "q", 0)]


def test_no_rows_are_no_append(output):
    tables = throttle_tables(output)

    assert not tables.append("dead_letters", letters(), "query", 0)
    assert tables.append("dead_letters", letters("a"), "query", 0)
    assert not tables.is_empty("dead_letters")


def test_a_table_of_many_appends_has_few_files_and_a_short_log_and_every_row_once(output, monkeypatch):
    """Entries and files that nothing needs any more are old at once."""
    for name in ("delta.LOG_MINUTES", "query.LOG_MINUTES"):
        monkeypatch.setattr(f"headgate.tables.{name}", 0)
    for name, commits in (("upkeep.COMPACTED_EVERY", 10), ("query.CLEANED_EVERY", 10), ("upkeep.VACUUMED_EVERY", 20)):
        monkeypatch.setattr(f"headgate.tables.{name}", commits)
    tables, folder = throttle_tables(output), output / "dead_letters"

    for batch in range(40):
        assert tables.append("dead_letters", letters(str(batch)), "query", batch)

    assert len(DeltaTable(folder).file_uris()) < 10
    assert len(list(folder.glob("*.parquet"))) < 20
    assert len(list((folder / "_delta_log").glob("*.json"))) < 20
    assert sorted(map(str, range(40))) == reasons(throttle_tables(output))
    assert not throttle_tables(output).append("dead_letters", letters("again"), "query", 39)


@pytest.mark.parametrize(("kept_hours", "least", "most"), [(0, 40, 40), (5, 6, 16)])
def test_rows_stay_as_long_as_the_conf_says(output, monkeypatch, kept_hours, least, most):
    """One row an hour; it is looked for old ones every tenth commit. Dead letters stay."""
    monkeypatch.setattr("headgate.tables.upkeep.COMPACTED_EVERY", 10)
    tables = throttle_tables(output, kept_hours)
    for hour in range(40):
        row = {"event_time": datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=hour), "topic": str(hour)}
        rows = pa.Table.from_pylist([row], SCHEMAS["marks"])
        assert tables.append("marks", rows, "query", hour)
        tables.append("dead_letters", letters(str(hour)), "query", hour)

    found = sorted(int(topic) for topic in throttle_tables(output).read("marks", ["topic"])["topic"].to_pylist())
    assert found == list(range(40))[-len(found) :]
    assert least <= len(found) <= most
    assert 40 == len(reasons(tables))
    assert not tables.append("marks", rows, "query", 39)


def test_a_row_of_the_far_future_deletes_no_others(output, monkeypatch):
    monkeypatch.setattr("headgate.tables.upkeep.COMPACTED_EVERY", 1)
    tables = throttle_tables(output, 24)
    for number, time in enumerate((datetime.now(UTC), datetime(2500, 1, 1, tzinfo=UTC), datetime.now(UTC))):
        tables.append("marks", pa.Table.from_pylist([{"event_time": time}], SCHEMAS["marks"]), "query", number)

    assert 3 == len(tables.read("marks"))


def test_a_reader_that_is_behind_all_that_is_in_the_log_reads_the_table_as_it_is(output, monkeypatch):
    for name in ("delta.LOG_MINUTES", "query.LOG_MINUTES"):
        monkeypatch.setattr(f"headgate.tables.{name}", 0)
    monkeypatch.setattr("headgate.tables.query.CLEANED_EVERY", 10)
    tables, behind = throttle_tables(output), throttle_tables(output)

    for batch in range(20):
        tables.append("dead_letters", letters(str(batch)), "query", batch)

    assert not (output / "dead_letters" / "_delta_log" / f"{1:020d}.json").exists()
    assert sorted(map(str, range(20))) == reasons(behind)


def test_the_log_of_a_table_that_is_fed_to_a_query_is_not_cleaned_by_appends(output, monkeypatch):
    monkeypatch.setattr("headgate.tables.query.CLEANED_EVERY", 10)
    tables, log = throttle_tables(output), output / "control" / "_delta_log"

    for _ in range(25):
        tables.append_control([tick_row(FROM_THE_START)])
        for entry in log.iterdir():
            os.utime(entry, (0, 0))

    assert 26 == len(list(log.glob("*.json")))


def test_two_writers_see_what_the_other_has_written(output):
    one, other = throttle_tables(output), throttle_tables(output)

    assert [True, False, True, True] == [
        one.append("dead_letters", letters("a"), "query", 0),
        other.append("dead_letters", letters("again"), "query", 0),
        other.append("dead_letters", letters("b"), "query", 1),
        one.append("dead_letters", letters("c"), "another", 0),
    ]
    assert ["a", "b", "c"] == reasons(one) == reasons(other)


def test_control_rows_are_appended_by_anyone_and_all_are_kept(output):
    one, other = throttle_tables(output), throttle_tables(output)
    for tables in (one, other, one):
        tables.append_control([tick_row(FROM_THE_START)])
    one.append_control([])

    assert 3 == len(other.read("control"))
    assert ["tick"] == other.read("control", ["kind"])["kind"].unique().to_pylist()


def sections():
    """The parts of docs/tables.md by their headings."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0].strip(): part for part in parts}


def documented():
    """What the page says: by the heading of each section, the columns in its table with type and meaning."""
    tables = {
        heading: [(name, *rest) for names, *rest in COLUMNS.findall(part) for name in names.split(", ")]
        for heading, part in sections().items()
    }
    return {heading: columns for heading, columns in tables.items() if columns}


def test_the_page_of_the_tables_names_the_tables_that_there_are():
    assert {"Input", *DOCUMENTED} == documented().keys()


@pytest.mark.parametrize("table", ["Input", *DOCUMENTED])
def test_the_page_of_the_tables_has_every_column_with_its_type_and_no_other(table):
    """But for tenant and namespace, which end every table that has topics: the page says so once, at its top."""
    fields = [field for field in DOCUMENTED.get(table, []) if field.name not in OF_TOPICS]
    expected = INPUT if table == "Input" else [(field.name, field.type) for field in fields]
    assert expected == [(name, TYPES[word]) for name, word, _ in documented()[table]]


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_the_page_says_of_every_column_of_the_input_which_kinds_have_it(kind):
    many = f"{kind.name}es" if kind.name.endswith("h") else f"{kind.name}s"
    described = {name for name, _, meaning in documented()["Input"] if many in meaning}

    assert {column.name for column in kind.columns} <= described


def test_every_line_of_a_table_on_the_page_is_a_column_or_its_head():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    heads = ("| column | type | meaning |", "|---|---|---|")
    assert [] == [line for line in lines if line not in heads and not COLUMNS.match(line)]


@pytest.mark.parametrize("inside", ["file", "file/output", "file/a/b"])
def test_an_output_whose_place_a_file_takes_is_refused_in_words(tmp_path, inside):
    (tmp_path / "file").write_text("")

    with pytest.raises(TableError, match=r"file/.*marks cannot be opened: .*; give an --output to write to"):
        throttle_tables(tmp_path / inside)


def test_an_append_to_a_control_table_that_is_gone_says_what_to_do(output):
    tables = throttle_tables(output)
    (output / "control").rename(output / "elsewhere")
    (output / "control").write_text("")

    with pytest.raises(TableError, match=r"cannot be appended to the table .*control.*: .*; see to it that it can be"):
        tables.append_control([tick_row(FROM_THE_START)])


class Flaky:
    """An append that fails at the calls in `failing`, from 0."""

    def __init__(self, failing):
        self.failing = failing
        self.calls = 0

    def __call__(self, _rows):
        self.calls += 1
        if self.calls - 1 in self.failing:
            raise TableError("no space")


def test_failures_that_pass_are_no_failures():
    flaky = Flaky({0, 1, 2, 3, 5, 6, 7, 8})
    append = PatientAppend(flaky)
    for _ in range(10):
        append([{}])

    assert (5, 10) == (MOST_FAILURES, flaky.calls)


def test_the_fifth_failure_in_a_row_is_raised_and_appends_of_nothing_do_not_count():
    append = PatientAppend(Flaky(range(5)))
    for _ in range(4):
        append([{}])
        append([])

    with pytest.raises(TableError, match=r"^5 times in a row: no space"):
        append([{}])
