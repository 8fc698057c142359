"""Cache events as files: the workload's rows, cut by number, the same in every format."""

import argparse
import csv
import json
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.cache import trace as of_cache
from headgate.cache.schemas import EVENTS
from headgate.cache.trace import CacheTrace, events_of, write_cache_trace
from headgate.cache.trace_options import add_cache_options, cache_trace_from
from headgate.core.cache.traces.workload import generate
from headgate.errors import ConfError, InvalidArgument
from headgate.trace import add_options

ROWS = 300


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of a workload."""
    monkeypatch.setattr(of_cache, "generate", lambda *given: islice(generate(*given), ROWS))


TRACE = CacheTrace(family="replay", brokers=2, files=3, sizes="skewed")


def test_rows_are_those_of_the_workload_of_each_brokers_seed_in_the_order_of_time() -> None:
    rows = events_of(TRACE).to_pylist()
    assert [(row["event_time"], row["broker"]) for row in rows] == sorted(
        (row["event_time"], row["broker"]) for row in rows
    )
    for seed, broker in ((1, "broker-1"), (2, "broker-2")):
        expected = [
            (TRACE.start + timedelta(microseconds=row.t_us), row.seq, row.kind, row.entry, row.sizes)
            for row in islice(generate("replay", seed, "skewed"), ROWS)
        ]
        names = ("event_time", "seq", "kind", "entry", "sizes")
        assert expected == [tuple(row[name] for name in names) for row in rows if row["broker"] == broker]


def test_every_format_has_the_same_rows_in_its_files(tmp_path: Path) -> None:
    for file_format in ("json", "csv", "parquet", "delta"):
        assert 2 * ROWS == write_cache_trace(TRACE, tmp_path / file_format, file_format)
    files = {name: sorted((tmp_path / name).glob(f"part-*.{name}")) for name in ("json", "csv", "parquet")}
    assert [3, 3, 3] == list(map(len, files.values()))
    rows = events_of(TRACE)
    assert rows == pq.read_table(files["parquet"])
    table = DeltaTable(str(tmp_path / "delta"))
    assert (2, rows.num_rows) == (table.version(), table.to_pyarrow_table().num_rows)
    seqs = [row["seq"] for row in rows.to_pylist()]
    lines = [json.loads(line) for file in files["json"] for line in file.read_text().splitlines()]
    assert seqs == [line["seq"] for line in lines]
    assert "2026-01-05T09:00:00.000000Z" == lines[0]["event_time"]
    read = [row for file in files["csv"] for row in csv.DictReader(file.read_text().splitlines())]
    assert [json.dumps(row["sizes"]) for row in lines if "sizes" in row] == [
        row["sizes"] for row in read if row["sizes"]
    ]
    assert EVENTS.names == list(read[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--topics", "2", "--rate", "5"], ["topics: got 2 with --cache", "rate: got 5.0 with --cache"]),
        (["--brokers", "0"], ["brokers: got 0; allowed: an integer from 1"]),
        (["--format", "kafka"], ["format: got kafka with --cache"]),
    ],
)
def test_options_that_do_not_go_with_cache_events_are_all_told(options: list[str], said: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--format")
    add_options(parser)
    add_cache_options(parser)
    with pytest.raises(ConfError) as error:
        cache_trace_from(parser.parse_args(["--cache", "replay", *options]))
    assert len(said) == len(error.value.mistakes)
    assert all(mistake.startswith(begin) for mistake, begin in zip(error.value.mistakes, said, strict=True))
    given = parser.parse_args(["--cache", "mixed", "--seed", "3", "--files", "2"])
    assert CacheTrace(family="mixed", seed=3, files=2) == cache_trace_from(given)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="family"):
        events_of(CacheTrace(family="sneeze"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfError, match="not empty"):
        write_cache_trace(TRACE, tmp_path, "json")
