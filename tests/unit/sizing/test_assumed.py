"""Publishes alone as cache events: entries, cursors and reads that are assumed."""

import json

import pyarrow as pa
import pytest

from headgate.cli import main
from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings
from headgate.sizing.assumed import events_of
from headgate.sizing.lags import Lag, lags_of
from headgate.sizing.trace import rows_in
from unit.local_runs import START_US, parsed, publishes

SECOND_US = 1_000_000
A, B = "persistent://t/n/a", "persistent://t/n/b"


def publish(at_us, seq, topic=A, broker="b1", size=10):
    row = {"event_time": START_US + at_us, "seq": seq, "broker": broker, "topic": topic, "kind": "publish"}
    return row | {"producer": "p", "connection": "c", "messages": 3, "bytes": size}


def events(rows, lags):
    batches = list(events_of([parsed(rows)], lags_of(lags)))
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def told(rows, lags):
    return [
        (
            one["broker"],
            one["t_us"] - START_US,
            one["kind"],
            one["topic"][-1],
            one["cursor"],
            one["entry"],
            one["sizes"],
        )
        for one in events(rows, lags)
    ]


def test_each_publish_is_an_entry_that_each_cursor_reads_and_acknowledges_after_its_lag():
    assert told([publish(0, 1), publish(5, 2, size=0)], "0s,2s") == [
        ("b1", 0, "open", "a", "lag-0s", 0, [10]),
        ("b1", 0, "open", "a", "lag-2s", 0, [10]),
        ("b1", 0, "add", "a", None, 0, [10]),
        ("b1", 0, "read", "a", "lag-0s", 0, [10]),
        ("b1", 0, "mark", "a", "lag-0s", 0, [10]),
        ("b1", 5, "add", "a", None, 1, [1]),
        ("b1", 5, "read", "a", "lag-0s", 1, [1]),
        ("b1", 5, "mark", "a", "lag-0s", 1, [1]),
        ("b1", 2 * SECOND_US, "read", "a", "lag-2s", 0, [10]),
        ("b1", 2 * SECOND_US, "mark", "a", "lag-2s", 0, [10]),
        ("b1", 2 * SECOND_US + 5, "read", "a", "lag-2s", 1, [1]),
        ("b1", 2 * SECOND_US + 5, "mark", "a", "lag-2s", 1, [1]),
    ]


def test_entries_are_numbered_by_topic_in_the_order_of_time_whatever_the_order_of_rows():
    rows = [publish(9, 1), publish(0, 2), publish(0, 1, B), publish(3, 3, B), publish(0, 0, broker="b2")]
    adds = [row[:2] + row[3:4] + row[5:6] for row in told(rows, "1m") if row[2] == "add"]
    assert sorted(adds) == [
        ("b1", 0, "a", 0),
        ("b1", 0, "b", 0),
        ("b1", 3, "b", 1),
        ("b1", 9, "a", 1),
        ("b2", 0, "a", 0),
    ]


def test_a_cache_takes_every_event_and_a_lag_beyond_its_time_misses():
    rows = [publish(at * SECOND_US // 10, at, topic) for at in range(50) for topic in (A, B)]
    cache = Cache(CacheSettings.of({}))
    counts = {"lag-0s": [0, 0], "lag-1h": [0, 0]}
    for batch in events_of([parsed(rows)], lags_of("0s,1h")):
        for row in rows_in(batch):
            outcome = cache.feed(row)
            assert outcome.dead is None
            if row.cursor is not None:
                counts[row.cursor][0] += outcome.hits
                counts[row.cursor][1] += outcome.misses
    assert counts == {"lag-0s": [100, 0], "lag-1h": [0, 100]}


def test_other_kinds_are_left_out_and_bad_rows_are_dead_letters():
    rows = events([*publishes(1), {"kind": "publish"}], "0s")
    assert {row["kind"] for row in rows if row["defect"] is None} == {"open", "add", "read", "mark"}
    assert next(row["defect"] for row in rows if row["defect"]).startswith("event_time: got null, ")


def test_lags_are_times_with_a_unit_each_once():
    assert lags_of("0s, 250ms,10m,2h") == (
        Lag("0s", 0),
        Lag("250ms", 250_000),
        Lag("10m", 600 * SECOND_US),
        Lag("2h", 7200 * SECOND_US),
    )


@pytest.mark.parametrize("wrong", ["", "5", "1d", "1s,1000ms", "1s,"])
def test_other_lags_are_refused_with_what_is_allowed(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["sweep", f"--assume-lag={wrong}"])
    assert f"got {wrong!r}; allowed: times with a unit of ms, s, m or h" in capsys.readouterr().err


def test_a_sweep_of_publishes_says_what_it_assumed_and_without_it_what_to_do(tmp_path, capsys):
    (tmp_path / "in.json").write_text("".join(json.dumps(row) + "\n" for row in publishes(2)))
    (tmp_path / "conf").mkdir()
    (tmp_path / "grid.toml").write_text('sizes_mib = [1]\npolicies = ["pip430"]\n')
    sweep = ["sweep", "--input", str(tmp_path / "in.json"), "--conf-dir", str(tmp_path / "conf")]
    sweep += ["--grid", str(tmp_path / "grid.toml")]
    assert main([*sweep, "--output", str(tmp_path / "none")]) == 2
    assert "or publishes with --assume-lag 0s,1m" in capsys.readouterr().err
    assert main([*sweep, "--output", str(tmp_path / "out"), "--assume-lag", "0s,1s"]) == 0
    said = "Cursors are assumed: one a topic for each lag of 0s, 1s."
    assert said in capsys.readouterr().out
    assert said in (tmp_path / "out" / "report.html").read_text()
