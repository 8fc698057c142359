"""Rows to keys: who shares a key, what goes to every key, and where bad rows come from."""

from collections import defaultdict

import pyarrow as pa
import pytest

from headgate.arrow.blocks import decode
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.keyed.packing import DEAD_LETTER_KEY, PACKED
from headgate.keyed.slots import home_of
from headgate.throttle.keys import broker_key
from headgate.throttle.routing import SPREAD, Routing, pack
from headgate.throttle.schemas import EVENTS, TICKS, TRAFFIC
from unit.throttle.rows import START_US, acts, bad_row, dispatch, event, parsed, subscribe, unload


def packed(routing, *parts):
    """Blocks of each kind by key, for parts of parsed rows."""
    blocks = defaultdict(lambda: defaultdict(list))
    for batch in pack(routing, parts):
        assert batch.schema == PACKED
        for row in batch.to_pylist():
            blocks[row["kind"]][row["key"]].append(decode(row["block"]))
    return blocks


def events_of(blocks):
    """Each event's key, by its seq."""
    return {
        seq: key for key, tables in blocks["events"].items() for table in tables for seq in table["seq"].to_pylist()
    }


def rows_of(*topics, broker="b1"):
    return [event(0, topic, seq=seq, broker=broker) for seq, topic in enumerate(topics)]


def test_events_reach_their_keys_whole_and_in_the_order_of_the_rows():
    rows = [event(i % 3, f"persistent://t/n/{i % 5}", seq=i, messages=i, bytes_=2 * i) for i in range(40)]
    blocks = packed(Routing(slots=4), parsed(rows))
    arrived = [row for tables in blocks["events"].values() for row in pa.concat_tables(tables).to_pylist()]

    assert rows == sorted(arrived, key=lambda row: row["seq"])
    for tables in blocks["events"].values():
        assert [table.schema for table in tables] == [EVENTS]
        assert sorted(tables[0]["seq"].to_pylist()) == tables[0]["seq"].to_pylist()


def test_topics_without_a_shared_limiter_are_spread_over_a_few_slots_of_their_broker():
    topics = [f"persistent://t/n/{i}" for i in range(300)]
    keys = events_of(packed(Routing(slots=64), parsed(rows_of(*topics))))

    assert len(set(keys.values())) == SPREAD


@pytest.mark.parametrize("routing", [Routing(slots=5), Routing(by_topic=True)])
def test_rows_of_each_kind_reach_the_key_of_their_topic_in_blocks_of_their_own(routing):
    topics = [f"persistent://t/n/{i}" for i in range(20)]
    rows = [make(at, topic, seq=at) for topic in topics for at, make in enumerate((event, dispatch, subscribe))]
    blocks = packed(routing, parsed(rows))
    kinds = {kind: TRAFFIC[kind] for kind in ("events", "dispatches", "subscribes")}
    arrived = {
        kind: {topic: key for key, tables in blocks[kind].items() for topic in tables[0]["topic"].to_pylist()}
        for kind in kinds
    }

    assert set(topics) == set(arrived["events"])
    assert arrived["events"] == arrived["dispatches"] == arrived["subscribes"]
    for number, (kind, schema) in enumerate(kinds.items()):
        whole = pa.concat_tables(tables[0] for tables in blocks[kind].values())
        assert (schema, {number}) == (whole.schema, set(whole["seq"].to_pylist()))


@pytest.mark.parametrize("routing", [Routing(slots=5), Routing(slots=5, whole_brokers=True), Routing(by_topic=True)])
def test_rows_without_a_topic_reach_one_key_a_broker(routing):
    brokers = [f"broker-{i}" for i in range(3)]
    rows = [row for b in brokers for row in (unload(0, broker=b), acts(1, "close", broker=b), unload(2, "b", broker=b))]
    blocks = packed(routing, parsed(rows))
    arrived = {
        kind: {broker: key for key, tables in blocks[kind].items() for broker in tables[0]["broker"].to_pylist()}
        for kind in ("unloads", "connections")
    }

    assert set(brokers) == set(arrived["unloads"])
    assert arrived["unloads"] == arrived["connections"]
    expected = {b: broker_key(b) if routing.by_topic else home_of(b, routing.slots) for b in brokers}
    assert expected == arrived["unloads"]


@pytest.mark.parametrize("slots", [1, 7, 64])
def test_a_topic_stays_in_its_slot(slots):
    topics = [f"persistent://t/n/{i}" for i in range(30)]
    routing = Routing(slots=slots)
    first, again = (events_of(packed(routing, parsed(rows_of(*topics)))) for _ in range(2))

    assert first == again
    assert set(first.values()) <= set(routing.keys)


def test_a_whole_broker_has_one_slot():
    routing = Routing(slots=64, whole_brokers=True)
    topics = [f"persistent://{tenant}/n/{i}" for tenant in ("acme", "else") for i in range(30)]

    assert len(set(events_of(packed(routing, parsed(rows_of(*topics)))).values())) == 1


def test_where_topics_are_keys_a_partition_has_the_key_of_its_topic():
    topics = [
        "persistent://t/n/a",
        "persistent://t/n/a-partition-0",
        "persistent://t/n/a-partition-12",
        "non-persistent://t/n/a",
        "persistent://t/n/a-partition-x",
    ]
    blocks = packed(Routing(by_topic=True), parsed(rows_of(*topics)))

    assert [topics[0], topics[0], topics[0], topics[3], topics[4]] == list(
        dict(sorted(events_of(blocks).items())).values()
    )
    assert {} == blocks["ticks"]


def test_every_slot_of_a_broker_hears_its_highest_time():
    """With no more slots than a broker's topics are spread over, that is every slot."""
    rows = [event(at_us, broker=broker) for at_us, broker in [(5, "b1"), (9, "b2"), (7, "b1"), (2, "b2")]]
    ticks = packed(Routing(slots=3), parsed(rows))["ticks"]

    assert set(Routing(slots=3).keys) == set(ticks)
    for tables in ticks.values():
        assert [TICKS] == [table.schema for table in tables]
        assert [("b1", START_US + 7, False), ("b2", START_US + 9, False)] == sorted(
            tuple(row.values()) for row in tables[0].to_pylist()
        )


@pytest.mark.parametrize(
    ("routing", "slots"), [(Routing(slots=64), SPREAD), (Routing(slots=64, whole_brokers=True), 1)]
)
def test_slots_that_never_get_a_row_of_a_broker_do_not_hear_of_it(routing, slots):
    blocks = packed(routing, parsed(rows_of(*(f"persistent://t/n/{i}" for i in range(300)))))

    assert slots == len(blocks["ticks"])
    assert set(blocks["ticks"]) == set(events_of(blocks).values())


def test_a_job_of_one_broker_takes_its_rows_alone_and_hears_the_time_of_all():
    rows = [event(at_us, broker=broker, seq=at_us) for at_us, broker in [(5, "b1"), (9, "b2"), (7, "b1")]]
    blocks = packed(Routing(slots=3, broker="b1"), parsed(rows))
    ticks = [tuple(row.values()) for tables in blocks["ticks"].values() for row in tables[0].to_pylist()]

    assert {("b1", START_US + 7, False), ("b2", START_US + 9, False)} == set(ticks)
    assert {"b1"} == {row["broker"] for tables in blocks["events"].values() for row in tables[0].to_pylist()}


def test_bad_rows_keep_what_was_read_and_where():
    letter = bad_row("{oops", "no JSON", source="kafka topic-1", offset=17)
    blocks = packed(Routing(slots=2), parsed(rows_of("persistent://t/n/a"), [letter]))
    letters = blocks["dead_letters"][DEAD_LETTER_KEY]

    assert [DEAD_LETTERS] == [table.schema for table in letters]
    assert [letter] == letters[0].to_pylist()
    assert [0] == list(events_of(blocks))


def test_bad_rows_alone_move_no_clock():
    blocks = packed(Routing(slots=2), parsed([], [bad_row("x"), bad_row("y")]))

    assert ["dead_letters"] == list(blocks)


def test_an_empty_batch_gives_an_empty_batch():
    batches = list(pack(Routing(slots=2), [parsed([]), parsed([], [bad_row("x")])]))

    assert [0, 1] == [batch.num_rows for batch in batches]
