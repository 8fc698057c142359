"""State between batches: every field comes back, and its bytes stay few."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from headgate.arrow.blocks import decode_all, encode_all
from headgate.core.kernels.columns import NO_VALUE
from headgate.errors import StateError
from headgate.throttle.apart.connection_state import CONNECTION_FIELDS, THREAD_FIELDS, ConnectionState
from headgate.throttle.apart.connection_topics import ConnectionTopics
from headgate.throttle.apart.subscribe_state import SUBSCRIBE_FIELDS, SubscribeState
from headgate.throttle.apart.unload_state import UnloadState
from headgate.throttle.array_form import run_arrays
from headgate.throttle.dispatch.dispatch_state import LEVEL_FIELDS, READ_FIELDS, Averages, DispatchState
from headgate.throttle.form import Rules
from headgate.throttle.groups.known_topics import KnownTopics
from headgate.throttle.limits.changes import (
    Attachment,
    ConnectionLimit,
    Limit,
    SubscribeLimit,
    UnloadLimit,
    changes_of,
    changes_table,
)
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.schemas import DISPATCH_COUNTS, EVENTS, TRAFFIC
from headgate.throttle.state import (
    COUNT_FIELDS,
    LIMITER_FIELDS,
    VERSION,
    WITHHELD_FIELDS,
    BrokerClock,
    DomainState,
    KeyState,
    decode_state,
    encode_state,
)
from unit.throttle.domains import changes_block, dispatch_limit, events_block, limit, step_through, tick_block
from unit.throttle.drawn import all_rules, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, event, subscribe

STORED = Path(__file__).parent / f"state-version-{VERSION}.bin"
CHANGES = [
    Limit(5, 1, None, "default", "", 10, 1000),
    Limit(6, 2, "b1", "group", "gold", None, None),
    Limit(7, 3, "b1", "broker", "", 0, 2**62),
    Attachment(8, 4, None, "tenant", "t", group_name="gold"),
    SubscribeLimit(9, 5, None, "topic", "persistent://t/n/a", subscribes_per_period=3, period_s=30),
    UnloadLimit(9, 6, "b1", "broker", "", starts_per_s=3, timeout_ms=2000),
    ConnectionLimit(9, 6, None, "broker", "", conditions=(7, 0, 0, 1, 5, 6, 8)),
]


def plain(value):
    """Arrays, tables and books as lists."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, EffectiveLimits):
        return value.changes()
    if isinstance(
        value,
        DispatchState | SubscribeState | UnloadState | ConnectionState | ConnectionTopics | KnownTopics | Averages,
    ):
        return plain_fields(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_pylist() if isinstance(value, pa.Array | pa.Table) else value


def plain_fields(part):
    return {field.name: plain(getattr(part, field.name)) for field in fields(part)}


def full_dispatch():
    """A dispatch state in which no field has its default value."""
    count = iter(range(1, 1000))
    return DispatchState(
        topics=pa.array(["persistent://t/n/a", "persistent://t/n/b"]),
        level_of=np.array([0, -1]),
        topic_hour=np.array([7, 8]),
        keys=pa.array(["@group/gold"]),
        levels={
            name: np.array([[next(count) for _ in range(width)] if width > 1 else 1])
            for name, width in LEVEL_FIELDS.items()
        },
        subscription_topic=pa.array(["persistent://t/n/a", "persistent://t/n/b"]),
        subscription_name=pa.array(["s", "r"]),
        subscription_due_ns=np.array([5, 6]),
        subscription_held_by=np.array([4, 1]),
        open_second=np.array([7]),
        open_topic=pa.array(["persistent://t/n/a"]),
        open_name=pa.array(["s"]),
        open_counts=np.array([[next(count) for _ in DISPATCH_COUNTS]]),
        published=Averages(1, 2, np.array([0]), np.array([[3, 4]]), np.array([[5, 6]])),
        reads={name: np.array([0, next(count)]) for name in READ_FIELDS},
        known_topics=KnownTopics(next(count), np.array([0]), np.array([0])),
    )


def full_subscribes():
    """A state of subscribes in which no field has its default value."""
    return SubscribeState(
        topic=pa.array(["persistent://t/n/a", "persistent://t/n/b"]),
        client=pa.array(["h", "h"]),
        consumer=pa.array(["c", "d"]),
        consumer_id=np.array([7, 8]),
        buckets={name: np.array([place, 10 * place]) for place, name in enumerate(SUBSCRIBE_FIELDS, 1)},
    )


def full_connections():
    """A state of connections in which no field has its default value."""
    return ConnectionState(
        name=pa.array(["c", "d"]),
        kept={name: np.array([place, 10 * place]) for place, name in enumerate(CONNECTION_FIELDS, 1)},
        threads={name: np.array([place]) for place, name in enumerate(THREAD_FIELDS, 1)},
    )


def full_domain():
    """A domain in which no field has its default value."""
    count = iter(range(1, 1000))
    in_force = EffectiveLimits.from_changes(
        [
            *(CHANGES[0], *CHANGES[3:6], dispatch_limit("gold", 3)),
            *(limit("topic", "persistent://t/n/a", 7, 8), limit("group", "gold", 1, 2)),
        ]
    )
    return DomainState(
        "b1",
        clock=BrokerClock(high_us=18, done_ns=17),
        keys=pa.array(["persistent://t/n/a", "@group/gold"]),
        limiters={
            name: np.array([[next(count) for _ in range(width)] if width > 1 else next(count) % 2 for _ in range(2)])
            for name, width in LIMITER_FIELDS.items()
        },
        hour=np.array([9, 10]),
        entry_limiter=np.array([0, 1, 1]),
        entry_producer=np.array([0, 1, 0]),
        entry_count=np.array([1, 3, 1]),
        producer_topic=np.array([0, 0]),
        producer_name=pa.array(["p", "q"]),
        producer_connection=pa.array(["c", "d"]),
        withheld={name: np.array([0, next(count)]) for name in WITHHELD_FIELDS},
        usage={name: np.array([next(count)]) for name in ("topic", "second", "since_ns", *COUNT_FIELDS)},
        known_topics=KnownTopics(next(count), np.array([0]), np.array([1])),
        dispatch=full_dispatch(),
        subscribes=full_subscribes(),
        unloads=UnloadState(busy_until_ns=5, next_free_ns=6, credit=7),
        connections=full_connections(),
        connection_topics=ConnectionTopics(pa.array(["c"]), np.array([2**32]), np.array([11])),
        held={
            "events": pa.Table.from_pylist([event(3, seq=4), event(5)], EVENTS),
            "subscribes": pa.Table.from_pylist([subscribe(3, seq=4)], TRAFFIC["subscribes"]),
        },
        pending=CHANGES[1:],
        in_force=in_force,
    )


def full_state():
    return KeyState(
        {"b1": full_domain(), "b2": DomainState("b2", BrokerClock(done_ns=3))},
        clocks={"b3": BrokerClock(high_us=5), "b4": BrokerClock(6, 5000)},
        changes=changes_table(CHANGES),
        forgotten_us=9,
        taken=2,
    )


def of_earlier():
    """As an earlier headgate stored it, which did not know when there was traffic, and kept each queue entry."""
    state = full_state()
    domain = state.domains["b1"]
    domain.entry_count = np.ones(3, np.int64)
    for holder, name in ((domain, "hour"), (domain.dispatch, "topic_hour"), (domain.connection_topics, "hour")):
        setattr(holder, name, np.zeros_like(getattr(holder, name)))
    return state


@pytest.mark.parametrize(
    ("state", "stored"),
    [(of_earlier(), STORED.read_bytes()), (full_state(), encode_state(full_state()))],
    ids=["stored long ago", "now"],
)
def test_every_field_comes_back(state, stored):
    """A state of this version, stored by an earlier headgate, is in the file: a changed codec needs a new version."""
    again = decode_state(VERSION, stored)
    default = plain_fields(DomainState(""))

    assert {broker: plain_fields(domain) for broker, domain in state.domains.items()} == {
        broker: plain_fields(domain) for broker, domain in again.domains.items()
    }
    assert (state.clocks, CHANGES, 9, 2) == (again.clocks, changes_of(again.changes), again.forgotten_us, again.taken)
    assert [] == [name for name, value in plain_fields(full_domain()).items() if value == default[name]]
    assert [] == [name for name, value in plain(full_dispatch()).items() if value == default["dispatch"][name]]
    assert [] == [name for name, value in plain(full_connections()).items() if value == default["connections"][name]]
    assert [] == [name for name, value in plain(full_subscribes()).items() if value == default["subscribes"][name]]
    assert [] == [name for name, value in plain(full_domain().unloads).items() if value == default["unloads"][name]]


def test_a_state_without_anything_comes_back():
    again = decode_state(VERSION, encode_state(KeyState()))

    assert KeyState() == again


@quick
@given(traffic(), limit_changes(), all_rules())
def test_states_that_streams_leave_come_back(rows, changes, rules):
    state = step_through([[events_block(rows), changes_block(changes)]], rules, stored=False).state
    again = decode_state(VERSION, encode_state(state))

    assert plain_fields(state.domains[BROKER]) == plain_fields(again.domains[BROKER])
    assert encode_state(state) == encode_state(again)


@pytest.mark.parametrize(("producers", "has_counts"), [("ab", False), ("aba", True)])
def test_only_a_state_in_which_a_producer_was_marked_again_cannot_be_read_by_an_earlier_headgate(producers, has_counts):
    rows = [event(n, seq=n, producer=producer) for n, producer in enumerate(producers)]
    state = step_through([[events_block(rows), changes_block([limit("default", messages=1)])]], Rules()).state
    kinds = {table.schema.metadata[b"kind"] for table in decode_all(encode_state(state))}

    assert has_counts is (b"entry_counts" in kinds)


@pytest.mark.parametrize("version", [0, VERSION + 1])
def test_another_version_is_refused(version):
    with pytest.raises(StateError, match=f"has version {version}, this headgate reads version {VERSION}"):
        decode_state(version, encode_state(KeyState()))


def test_a_table_of_an_unknown_kind_is_refused():
    unknown = pa.table({"a": [1]}).replace_schema_metadata({"kind": "strange", "broker": "b1"})

    with pytest.raises(StateError, match="a table 'strange' that this headgate does not know"):
        decode_state(VERSION, encode_state(KeyState()) + encode_all([unknown]))


def test_what_is_empty_is_not_written():
    rows = [event(0)]
    state = step_through([[events_block(rows), tick_block(SECOND_US)]], Rules()).state
    kinds = [table.schema.metadata[b"kind"] for table in decode_all(encode_state(state))]

    assert [b"changes", b"limiters", b"limits"] == kinds


def test_a_topic_takes_less_than_200_bytes():
    topics = [
        f"persistent://tenant-{i % 40:03}/namespace-{i % 400:04}/orders-events-{i:06}-partition-{i % 16}"
        for i in range(20_000)
    ]
    limits = changes_block([limit("default", messages=100, bytes_=1_000_000)])
    first = [event(0, topic, seq=seq, messages=10, bytes_=5000) for seq, topic in enumerate(topics)]
    again = [event(SECOND_US, topic, messages=10, bytes_=5000) for topic in topics[::2]]
    state = step_through([[limits, events_block(first)], [events_block(again)]], Rules(), run_arrays).state
    domain = state.domains[BROKER]
    stored_bytes = len(encode_state(state))

    assert (20_000, 10_000) == (len(domain.keys), len(domain.usage["topic"]))
    assert NO_VALUE not in domain.usage["second"]
    assert stored_bytes / len(topics) < 200
