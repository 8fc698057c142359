"""Limiters in a checkpoint's state, as a table: of publishes, levels of dispatches, consumers' buckets. No engine."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import places, sums_by
from headgate.core.dispatch.dispatch_domain import PLACES
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.numbers import MAX, SECOND_NS
from headgate.throttle.dispatch.dispatch_state import DispatchState
from headgate.throttle.keys import BROKER_KEY, place_of_level, scopes_and_names, subscription_keys
from headgate.throttle.registration import REPLICATOR
from headgate.throttle.state import DomainState, decode_state

_INSTANT = pa.timestamp("ns", tz="UTC")

REPORT = pa.schema(
    [
        ("broker", pa.string()),
        ("scope", pa.string()),
        ("limiter", pa.string()),
        ("class", pa.string()),
        ("messages_per_s", pa.int64()),
        ("bytes_per_s", pa.int64()),
        ("period_s", pa.int64()),
        ("messages_balance", pa.int64()),
        ("bytes_balance", pa.int64()),
        ("messages_debt", pa.int64()),
        ("bytes_debt", pa.int64()),
        ("messages_remainder_ns", pa.int64()),
        ("bytes_remainder_ns", pa.int64()),
        ("messages_last_refill", _INSTANT),
        ("bytes_last_refill", _INSTANT),
        ("waiting", pa.int64()),
        ("next_drain", _INSTANT),
        ("open_second", _INSTANT),
        ("clock", _INSTANT),
    ]
)
"""class: publish, dispatch or subscribe. Rates in period_s, 0 is off, -1 blocks (of groups). With classic dispatchers
a balance is what is acquired of the window, and last_refill its next renewal. Balances are as of the last refill;
null without a bucket. debt: tokens below 0, from 0.

remainder_ns: elapsed time not yet turned into tokens. waiting: marks that the limiter has not released; next_drain:
when it is looked at again. Of dispatch, waiting are subscriptions with withheld reads, and the next retry is told.
open_second: the second whose usage of the topic is not written yet. clock: the time up to which everything on this
broker (of this state key) is done.
"""


def state_report(states: Iterable[tuple[int, bytes]]) -> pa.Table:
    """REPORT of a checkpoint's state values, (version, blocks) each, in the order of broker, scope and name.

    Raises StateError for a version that this headgate does not read.
    """
    domains = [domain for version, blocks in states for domain in decode_state(version, blocks).domains.values()]
    parts = [part(domain) for part in (_of_domain, _of_dispatch, _of_subscribes) for domain in domains]
    rows = pa.concat_tables([REPORT.empty_table(), *parts])
    return rows.sort_by([(name, "ascending") for name in ("broker", "scope", "limiter", "class")])


def _of_domain(domain: DomainState) -> pa.Table:
    waiting = sums_by(domain.entry_count, domain.entry_limiter, len(domain.keys))
    next_ns = domain.limiters["next_drain_ns"]
    columns = {
        "waiting": waiting,
        "next_drain": _instants(next_ns, next_ns != NO_VALUE),
        "open_second": _open_second(domain),
    }
    return _rows(domain, "publish", scopes_and_names(domain.keys, domain.broker), domain.limiters, columns)


def _of_dispatch(domain: DomainState) -> pa.Table:
    state = domain.dispatch
    level = _held_at(state)
    next_ns = np.full(len(state.keys), MAX)
    np.minimum.at(next_ns, level[level >= 0], state.subscription_due_ns[level >= 0])
    waiting = np.bincount(level[level >= 0], minlength=len(state.keys))
    columns = {
        "period_s": state.levels["period_s"],
        "waiting": waiting,
        "next_drain": _instants(next_ns, waiting > 0),
        "open_second": pa.nulls(len(state.keys), _INSTANT),
    }
    return _rows(domain, "dispatch", _names(state.keys, domain.broker), state.levels, columns)


def _of_subscribes(domain: DomainState) -> pa.Table:
    """A consumer's bucket: its topic, host, name and id; what it holds are attempts."""
    state = domain.subscribes
    count = len(state.topic)
    limiters = {name: np.stack([column, np.zeros(count, np.int64)], axis=1) for name, column in state.buckets.items()}
    ids = pa.array(state.consumer_id, pa.int64()).cast(pa.string())
    names = pc.binary_join_element_wise(state.topic, state.client, state.consumer, ids, " ")
    columns = {
        "period_s": state.buckets["period_s"],
        "waiting": np.zeros(count, np.int64),
        "next_drain": pa.nulls(count, _INSTANT),
        "open_second": pa.nulls(count, _INSTANT),
    }
    initialised = {"initialised": np.ones(count, np.int64)}
    return _rows(domain, "subscribe", (pa.repeat("consumer", count), names), limiters | initialised, columns)


def _held_at(state: DispatchState) -> Ints:
    """The level that skipped each subscription that waits last, -1: it is not there any more."""
    topics, names = state.subscription_topic, state.subscription_name
    is_replicator = pc.starts_with(names, REPLICATOR)
    groups = np.append(state.level_of, -1)[places(state.topics, topics)]
    by_place = [
        places(state.keys, pa.array([BROKER_KEY] * len(names), pa.string())),
        places(state.keys, topics),
        places(
            state.keys,
            pc.if_else(
                is_replicator,
                subscription_keys(topics, names, "replicator"),
                subscription_keys(topics, names, "subscription"),
            ),
        ),
        groups,
    ]
    held: Ints = np.select([state.subscription_held_by == place for place in range(1, PLACES + 1)], by_place, -1)
    return held


def _names(keys: pa.StringArray, broker: str) -> tuple[pa.Array, pa.Array]:
    """Scope and name of each level of dispatch: a subscription's is its topic's and its own."""
    found = [place_of_level(key) for key in keys.to_pylist()]
    names = [broker if scope == "broker" else " ".join(filter(None, (topic, name))) for scope, topic, name in found]
    return pa.array([scope for scope, _, _ in found], pa.string()), pa.array(names, pa.string())


def _rows(
    domain: DomainState,
    class_: str,
    scopes_of_names: tuple[pa.Array, pa.Array],
    limiters: dict[str, Ints],
    columns: dict[str, pa.Array],
) -> pa.Table:
    scopes, names = scopes_of_names
    columns = {"period_s": np.ones(len(names), np.int64)} | columns | _buckets(limiters)
    columns |= {
        "broker": pa.repeat(pa.scalar(domain.broker, pa.string()), len(names)),
        "scope": scopes,
        "limiter": names,
        "class": pa.repeat(class_, len(names)),
        "clock": _clock(domain, len(names)),
    }
    return pa.table({name: columns[name] for name in REPORT.names}, REPORT)


def _clock(domain: DomainState, n: int) -> pa.Array:
    return _instants(np.full(n, domain.clock.done_ns), np.full(n, domain.clock.done_ns != NO_VALUE))


def _buckets(limiters: dict[str, Ints]) -> dict[str, pa.Array]:
    """What the report says of the buckets of limiters or levels."""
    columns: dict[str, pa.Array] = {}
    for kind, name in enumerate(("messages", "bytes")):
        balance = limiters["balance"][:, kind]
        has_bucket = (limiters["rate"][:, kind] != 0) & (limiters["initialised"] != 0)
        columns |= {
            f"{name}_per_s": pa.array(limiters["rate"][:, kind]),
            f"{name}_balance": pa.array(balance, mask=~has_bucket),
            f"{name}_debt": pa.array(np.maximum(-balance, 0), mask=~has_bucket),
            f"{name}_remainder_ns": pa.array(limiters["remainder_ns"][:, kind], mask=~has_bucket),
            f"{name}_last_refill": _instants(limiters["last_ns"][:, kind], has_bucket),
        }
    return columns


def _open_second(domain: DomainState) -> pa.Array:
    second = np.full(len(domain.keys), NO_VALUE)
    second[domain.usage["topic"]] = domain.usage["second"]
    is_open = second != NO_VALUE
    return _instants(np.where(is_open, second, 0) * SECOND_NS, is_open)


def _instants(at_ns: Ints, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    return pa.array(at_ns, pa.int64(), mask=~known).cast(_INSTANT)
