"""Bad rows: exactly as many as counted, each with one defect, and the good rows beside them untouched."""

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.trace import SCHEMA, TraceSpec, generate_files, write_trace
from headgate.trace.defects import TEXT_DEFECTS, TYPED_DEFECTS

SPEC = TraceSpec(events=4_000, files=3, bad_share=0.1)
ISO = re.compile(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z?)")
NAMES = SCHEMA.names


def text_defect(row):
    """The defect of a row of strings (None = null), found without knowing what the generator did."""
    if any(row[name] is None for name in NAMES):
        return "null"
    time = ISO.fullmatch(row["event_time"])
    amounts = [row["messages"], row["bytes"]]
    found = {
        "time_out_of_range": time is None,
        "time_without_zone": time is not None and not time[1],
        "unknown_kind": row["kind"] != "publish",
        "wrong_type": "many" in amounts,
        "negative": "-1" in amounts,
        "huge": any(amount.isdigit() and int(amount) >= 2**63 for amount in amounts),
    }
    return ", ".join(name for name, present in found.items() if present)


def json_defect(line):
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return "malformed"
    return text_defect({name: None if value is None else str(value) for name, value in row.items()})


def csv_defect(cells):
    if len(cells) != len(NAMES):
        return "malformed"
    return text_defect({name: cell or None for name, cell in zip(NAMES, cells, strict=True)})


def typed_defect(row):
    if any(row[name] is None for name in NAMES):
        return "null"
    found = {
        "time_out_of_range": row["event_time"] == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "unknown_kind": row["kind"] != "publish",
        "negative": row["messages"] == -1 or row["bytes"] == -1,
    }
    return ", ".join(name for name, present in found.items() if present)


def defects_on_disk(folder, file_format):
    files = sorted(folder.glob(f"*.{file_format}"))
    if file_format == "json":
        return [json_defect(line) for path in files for line in path.read_text().splitlines()]
    if file_format == "csv":
        return [csv_defect(cells) for path in files for cells in list(csv.reader(path.open(newline="")))[1:]]
    table = pq.read_table(folder) if file_format == "parquet" else DeltaTable(folder).to_pyarrow_table()
    return [typed_defect(row) for row in table.to_pylist()]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("file_format", ["json", "csv", "parquet", "delta"])
@pytest.mark.parametrize("disorder_ms", [0, 3_000])
def test_the_summary_counts_the_bad_rows_that_are_there(tmp_path, file_format, disorder_ms):
    summary = write_trace(replace(SPEC, disorder_ms=disorder_ms), tmp_path, file_format)
    found = Counter(defects_on_disk(tmp_path, file_format))
    good = found.pop("")
    assert dict(summary.bad) == dict(found)
    assert SPEC.events == good + summary.bad.total() == summary.rows


@pytest.mark.parametrize(("file_format", "kinds"), [("json", TEXT_DEFECTS), ("delta", TYPED_DEFECTS)])
def test_bad_rows_have_their_share_and_all_kinds_of_defects(tmp_path, file_format, kinds):
    summary = write_trace(SPEC, tmp_path, file_format)
    assert SPEC.bad_share * SPEC.events == pytest.approx(summary.bad.total(), rel=0.1)
    assert [SPEC.bad_share * SPEC.events / len(kinds)] * len(kinds) == pytest.approx(
        list(summary.bad.values()), rel=0.25
    )


def test_a_trace_without_bad_rows_counts_none_of_any_kind(tmp_path):
    assert dict.fromkeys(TEXT_DEFECTS, 0) == write_trace(replace(SPEC, bad_share=0.0), tmp_path, "json").bad


def test_good_rows_are_those_of_the_same_trace_without_bad_ones():
    spoiled = pa.concat_tables(generate_files(SPEC)).to_pylist()
    clean = pa.concat_tables(generate_files(replace(SPEC, bad_share=0.0))).to_pylist()
    pairs = list(zip(spoiled, clean, strict=True))
    assert not [(bad, good) for bad, good in pairs if not typed_defect(bad) and bad != good]
    assert {1} == {sum(bad[name] != good[name] for name in NAMES) for bad, good in pairs if typed_defect(bad)}


def test_each_defect_takes_turns_among_the_columns_that_can_have_it():
    rows = pa.concat_tables(generate_files(SPEC)).to_pylist()
    nulled = {name for row in rows for name in NAMES if row[name] is None}
    assert set(NAMES) - {"seq"} == nulled
    assert {"messages", "bytes"} == {name for row in rows for name in ("messages", "bytes") if row[name] == -1}
