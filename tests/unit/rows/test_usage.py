"""Rows of kind usage as the publishes and dispatches that they become."""

import random
from collections import Counter
from itertools import accumulate, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conf import InputSettings
from headgate.engines.local_throttle import LocalThrottle
from headgate.engines.tables import BufferedTables
from headgate.rows import usage
from headgate.rows.batches import parsed
from headgate.rows.kinds import INPUT
from headgate.rows.traffic import parse_traffic
from headgate.throttle.tables import SCHEMAS
from unit.local_runs import conf_of, cut, in_order
from unit.rows.lines import AT_9, DAY_US, GOOD, MOST

MS_US, S_US = 1000, 1_000_000
ALONE = "[operator]\nkernel = 'python'\ntraffic = 'admitted'\ngroup_limits = 'each_broker'\n"


def used(length_us, messages, bytes_, **more):
    """Usage up to AT_9."""
    named = GOOD | {"kind": "usage", "direction": "in", "event_time": AT_9, "from_us": AT_9 - length_us}
    return named | {"messages": messages, "bytes": bytes_} | more


def parts_of(rows):
    """What the rows of a Delta table become, part by part."""
    structs = pa.array(rows)
    columns = [structs, pa.repeat("table", len(rows)), pa.nulls(len(rows), pa.int64())]
    batch = pa.record_batch(columns, ["row", "source", "offset"])
    return list(parsed(lambda raw: parse_traffic(raw, InputSettings()), "delta", INPUT, [batch]))


def spread(*rows):
    return [row for part in parts_of(rows) for row in part.rows.to_pylist()]


@pytest.mark.parametrize(
    ("length_ms", "messages", "bytes_", "expected"),
    [
        (100, 7, 70, [(0, 7, 70)]),
        (30, 7, 70, [(0, 7, 70)]),
        (0.001, 7, 70, [(0, 7, 70)]),
        (200, 4, 6, [(-100, 2, 3), (0, 2, 3)]),
        (300, 7, 8, [(-200, 2, 2), (-100, 2, 3), (0, 3, 3)]),
        (250, 2, 9, [(-125, 1, 4), (0, 1, 5)]),
        (100.001, 2, 0, [(-50, 1, 0), (0, 1, 0)]),
        (400, 6, 0, [(-300, 1, 0), (-200, 2, 0), (-100, 1, 0), (0, 2, 0)]),
        (5000, 2, 1001, [(-2500, 1, 500), (0, 1, 501)]),
        (300, 0, 5, [(-200, 0, 1), (-100, 0, 2), (0, 0, 2)]),
        (300, 0, 1, [(0, 0, 1)]),
        (300, 5, 0, [(-200, 1, 0), (-100, 2, 0), (0, 2, 0)]),
        (300, 0, 0, []),
        (0, 0, 0, []),
    ],
)
def test_what_came_is_spread_evenly_over_the_interval(length_ms, messages, bytes_, expected):
    rows = spread(used(round(length_ms * MS_US), messages, bytes_))
    before_last = [(row["event_time_us"] - rows[-1]["event_time_us"]) / MS_US for row in rows]
    assert expected == [
        (round(at_ms), row["messages"], row["bytes"]) for at_ms, row in zip(before_last, rows, strict=True)
    ]


def test_a_step_is_a_publish_or_a_dispatch_with_the_place_of_its_row():
    publish, dispatch = spread(used(1, 3, 4, producer="p"), used(1, 3, 4, direction="out", subscription="s", seq=2))
    place = {"event_time_us": AT_9, "broker": "broker-1", "topic": GOOD["topic"], "messages": 3, "bytes": 4}
    nothing = dict.fromkeys(("producer", "connection", "subscription", "entries", "caught_up", "filtered"))
    of_publish = {"kind": "publish", "seq": 1, "producer": "p", "connection": "connection-1"}
    of_dispatch = {"kind": "dispatch", "seq": 2, "subscription": "s"}
    assert place | nothing | of_publish == publish
    assert place | nothing | of_dispatch | {"entries": 3, "caught_up": False, "filtered": False} == dispatch


def test_rows_of_other_kinds_stay_as_they_are():
    publish = GOOD | {"event_time": AT_9, "direction": "up", "from_us": -1}
    (row,) = spread(publish)
    assert not {"direction", "from_us"} & row.keys()
    rows = spread(publish, used(200 * MS_US, 2, 2))
    assert [row[name] for row in rows for name in ("kind", "messages")] == ["publish", 3, *["publish", 1] * 2]
    assert row.items() <= rows[0].items()


def test_dead_letters_come_with_the_first_part(monkeypatch):
    monkeypatch.setattr(usage, "MOST_AT_ONCE", 2)
    parts = parts_of([used(S_US, 10, 0), used(S_US, -1, 0), GOOD | {"event_time": AT_9}])
    counts = [(len(part.rows), len(part.dead_letters)) for part in parts]
    assert (3, 1) == counts[0]  # the publish, and two of usage
    assert (11, 1) == tuple(map(sum, zip(*counts, strict=True)))
    assert [(0, 1)] == [(len(part.rows), len(part.dead_letters)) for part in parts_of([used(S_US, -1, 0)])]


amounts = st.one_of(st.integers(0, 200), st.integers(0, MOST))
lengths = st.one_of(st.integers(1, 300), st.integers(1, 6 * S_US), st.integers(1, 10**9))


@given(lengths, amounts, amounts, st.integers(0, 10**6))
def test_what_came_is_whole_in_order_and_within_the_interval(length_us, messages, bytes_, shift_us):
    """So a row is never late if the interval begins where the broker's last one ended."""
    until_us = AT_9 + shift_us
    rows = spread(used(0, messages, bytes_) | {"event_time": until_us, "from_us": until_us - length_us})
    times = [row["event_time_us"] - (until_us - length_us) for row in rows]
    assert bool(messages or bytes_) == bool(times)
    assert all(0 < at_us <= length_us for at_us in times)
    apart = [after - before for before, after in pairwise(times)]
    assert all(0 < us <= usage.STEP_US for us in apart) or len(rows) == (messages or bytes_)
    for name, amount in (("messages", messages), ("bytes", bytes_)):
        came = list(accumulate(row[name] for row in rows))
        assert [amount * nth // len(rows) for nth in range(1, len(rows) + 1)] == came


def test_a_day_of_the_largest_amounts_is_made_in_parts_in_the_order_of_time():
    parts = parts_of([used(DAY_US, MOST, MOST)])
    assert 2 == len(parts)
    assert usage.MOST_AT_ONCE > max(len(part.rows) for part in parts)
    times = [time_us for part in parts for time_us in part.rows["event_time_us"].to_pylist()]
    assert AT_9 - DAY_US < times[0] <= AT_9 - DAY_US + usage.STEP_US
    assert times == list(range(times[0], times[-1] + 1, usage.STEP_US))
    assert MOST == sum(messages for part in parts for messages in part.rows["messages"].to_pylist())


def test_single_messages_of_many_topics_do_not_come_at_one_instant():
    """If they did, they would empty a limiter that they share, at a hundredth of its rate."""
    rows = spread(*(used(5 * S_US, 1, 9, topic=f"persistent://acme/shop/t{number}") for number in range(1000)))
    by_second = Counter((AT_9 - row["event_time_us"]) // S_US for row in rows)
    assert 5 == len(by_second)
    assert all(150 < count < 250 for count in by_second.values())


def drawn(chance, rounds=4, topics=3):
    """Rounds of two brokers: what each counted since its look before."""
    looked = {broker: AT_9 + chance.randint(0, 9999) for broker in ("b1", "b2")}
    rows = []
    for seq in range(rounds):
        for broker, from_us in looked.items():
            looked[broker] = at_us = from_us + chance.randint(1, 3 * S_US)
            for topic in range(topics):
                one = {"topic": f"persistent://acme/shop/t{topic}", "broker": broker, "seq": seq}
                one |= {"event_time": at_us, "from_us": from_us, "direction": chance.choice(["in", "in", "out"])}
                messages = chance.choice([0, 1, chance.randint(0, 90)])
                rows.append(used(1, messages, messages * 10) | one | {"producer": None, "connection": None})
    return rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [1, 7, usage.MOST_AT_ONCE])
def test_cutting_the_input_changes_no_row(seed, most, monkeypatch):
    rows = drawn(random.Random(seed))
    whole = spread(*rows)
    assert [row["event_time_us"] for row in whole] == sorted(row["event_time_us"] for row in whole)
    monkeypatch.setattr(usage, "MOST_AT_ONCE", most)
    again = [row for part in cut(rows, random.Random(seed), 9) if part for row in spread(*part)]
    assert sorted(map(repr, whole)) == sorted(map(repr, again))


def tables_of(folder, conf, batches):
    tables = BufferedTables(folder, SCHEMAS)
    run = LocalThrottle(conf, tables, lambda _: None)
    for rows in batches:
        run.take(parts_of(rows))
    run.end()
    return tables


def single(row):
    """The same row as a source of publishes or dispatches would have it."""
    return {name: value for name, value in row.items() if name != "event_time_us"} | {
        "event_time": row["event_time_us"]
    }


def test_usage_decides_as_its_publishes_written_one_by_one_do_in_any_batches(tmp_path):
    limits = {"maxPublishRatePerTopicInMessages": 15, "brokerPublisherThrottlingMaxMessageRate": 30}
    conf = conf_of(tmp_path / "conf", ALONE, **limits, dispatchThrottlingRatePerTopicInMsg=9)
    rows = drawn(random.Random(1), rounds=8)
    rounds = [[row for row in rows if row["seq"] == seq] for seq in range(8)]
    runs = {
        "usage": [rows],
        "rounds": rounds,
        "single": [list(map(single, spread(*rows)))],
    }
    tables = {name: tables_of(tmp_path / name, conf, batches) for name, batches in runs.items()}
    whole = tables["usage"]
    for name in ("topic_usage", "marks", "dispatch_decisions"):
        assert len(whole.read(name)) > 5
        for other in ("rounds", "single"):
            assert in_order(whole.read(name)) == in_order(tables[other].read(name)), (name, other)
    for one in tables.values():
        assert 0 == sum(one.read("batches")["late"].to_pylist())
        assert len(spread(*rows)) == sum(one.read("batches")["rows"].to_pylist())
