"""Attempts to subscribe: a bucket a topic and consumer, in the order of time, apart from publishes and dispatches.

The rule of an attempt is the core's (`subscribe_limiter`); here is only whose bucket it is (rate-limiters 8).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import distinct, encoded, no_ints, no_strings, numbers, places, whole
from headgate.arrow.schemas import TIMESTAMP
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.numbers import HOUR_NS
from headgate.core.subscribe_limiter import full_bucket, is_let_in
from headgate.core.token_bucket import TokenBucket
from headgate.throttle.apart.subscribe_state import SUBSCRIBE_FIELDS, SubscribeState
from headgate.throttle.idle import are_forgotten
from headgate.throttle.limits.changes import OFF, Change, Rates
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.limits.topic_index import TopicIndex
from headgate.throttle.ordering import Due, order
from headgate.throttle.schemas import SUBSCRIBE_DECISIONS
from headgate.throttle.state import DomainState

UNLIMITED = -1
"""What is left to a consumer that nothing limits."""


def decide_subscribes(domain: DomainState, due: Due) -> dict[str, pa.Table]:
    """Carry out attempts and changes of their limits, in the order of time; what was decided (SUBSCRIBE_DECISIONS)."""
    decided = _decided(domain, due)
    domain.subscribes.keep(~domain.subscribes.are_forgotten(due.until_ns))
    return decided


def _decided(domain: DomainState, due: Due) -> dict[str, pa.Table]:
    rows, changes = due.rows, due.changes
    index = _topics(domain.subscribes, rows, changes)
    if not len(rows):
        _follow(domain, index, changes)
        return {}
    done_ns = domain.clock.done_ns
    rows = rows.take(pa.array(order(rows)))
    at_ns = np.maximum(numbers(rows["event_time_us"]) * 1000, done_ns)
    ends_ns = np.array([max(change.effective_us * 1000, done_ns) for change in changes], np.int64)
    decided = []
    start = followed = 0
    for number, end in enumerate([*np.searchsorted(at_ns, ends_ns, side="left").tolist(), len(rows)]):
        if end > start:
            _follow(domain, index, changes[followed:number])
            decided.append(_attempts(domain, rows.slice(start, end - start), at_ns[start:end]))
            start, followed = end, number
    _follow(domain, index, changes[followed:])
    return {"subscribe_decisions": pa.concat_tables(decided)}


def _topics(state: SubscribeState, rows: pa.Table, changes: Sequence[Change]) -> TopicIndex:
    """Every topic of the step, for changes alone."""
    if not changes:
        return TopicIndex(no_strings())
    return TopicIndex(pc.unique(pa.concat_arrays([state.topic, whole(rows["topic"])])))


def _attempts(domain: DomainState, rows: pa.Table, at_ns: Ints) -> pa.Table:
    """Attempts in their order, between two changes."""
    state, in_force = domain.subscribes, domain.in_force
    consumer = _register(state, rows)
    rate_of = {topic: in_force.subscribe_rate_of(topic) for topic in rows["topic"].unique().to_pylist()}
    rates = [rate_of[topic] for topic in rows["topic"].to_pylist()]
    buckets: dict[int, TokenBucket] = {}
    allowed, left = [], []
    for position, now_ns, (rate, period_s) in zip(consumer.tolist(), at_ns.tolist(), rates, strict=True):
        if (rate, period_s) == OFF:
            allowed.append(True)
            left.append(UNLIMITED)
            continue
        bucket = buckets.get(position) or _stored(state, position, rate, period_s)
        if bucket is None or _is_forgotten(bucket, period_s, now_ns):
            bucket = full_bucket(rate, period_s, now_ns)
        buckets[position] = bucket
        allowed.append(is_let_in(bucket, now_ns))
        left.append(bucket.balance)
    for position, bucket in buckets.items():
        for name in ("balance", "last_ns", "remainder_ns"):
            state.buckets[name][position] = getattr(bucket, name)
        state.buckets["rate"][position], state.buckets["period_s"][position] = rate_of[state.topic[position].as_py()]
    state.keep(state.buckets["rate"] > 0)
    return _decisions(rows, domain.broker, allowed, left, rates)


def _stored(state: SubscribeState, position: int, rate: int, period_s: int) -> TokenBucket | None:
    """The bucket at a position, None: at a consumer's first attempt."""
    if not state.buckets["rate"][position]:
        return None
    bucket = full_bucket(rate, period_s, 0)
    for name in ("balance", "last_ns", "remainder_ns"):
        setattr(bucket, name, int(state.buckets[name][position]))
    return bucket


def _is_forgotten(bucket: TokenBucket, period_s: int, now_ns: int) -> bool:
    if bucket.last_ns // HOUR_NS >= now_ns // HOUR_NS - 1:
        return False
    columns = {name: np.array([getattr(bucket, name)]) for name in ("rate", "balance", "last_ns")}
    return bool(are_forgotten(columns, period_s, now_ns)[0])


def _register(state: SubscribeState, rows: pa.Table) -> Ints:
    """Each row's position in the state, which has places for those that are new; they are without a bucket so far."""
    kept = len(state.topic)
    columns = {
        name: pa.concat_arrays([getattr(state, name), whole(rows[name])]) for name in ("topic", "client", "consumer")
    }
    ids = np.concatenate([state.consumer_id, numbers(rows["consumer_id"])])
    topic, client, consumer = (encoded(column)[1] for column in columns.values())
    first, position = distinct(topic, client, consumer, np.unique(ids, return_inverse=True)[1].astype(np.int64))
    taken = pa.array(first)
    state.topic, state.client, state.consumer = (column.take(taken) for column in columns.values())
    state.consumer_id = ids[first]
    new = np.zeros(len(first) - kept, np.int64)
    state.buckets = {name: np.concatenate([column, new]) for name, column in state.buckets.items()}
    return position[kept:]


def _follow(domain: DomainState, index: TopicIndex, changes: Sequence[Change]) -> None:
    """Carry out changes of limits: whose rate is another one than before begins with a full bucket, or has none.

    A bucket that one of them took away does not come back with a later one.
    """
    state, in_force = domain.subscribes, domain.in_force
    topic = places(index.names, state.topic) if changes else no_ints()
    has_bucket = np.ones(len(topic), np.bool_)
    for change in changes:
        at_ns = max(change.effective_us * 1000, domain.clock.done_ns)
        has_bucket &= ~state.are_forgotten(at_ns)
        in_force.apply(change)
        concerned = index.concerned(change) if len(topic) else no_ints()
        rates = np.full((len(index.names), len(OFF)), NO_VALUE)
        rates[concerned] = _rates(in_force, index.names_at(concerned))
        new = rates[topic]
        differ = (new[:, 0] != state.buckets["rate"]) | (new[:, 1] != state.buckets["period_s"])
        moved = np.flatnonzero(has_bucket & differ & (new[:, 0] != NO_VALUE))
        for name, values in zip(SUBSCRIBE_FIELDS, (*new[moved].T, new[moved, 0], at_ns, 0), strict=True):
            state.buckets[name][moved] = values
        has_bucket[moved] = new[moved, 0] > 0
    state.keep(has_bucket)


def _rates(in_force: EffectiveLimits, topics: Sequence[str]) -> Ints:
    return np.array([in_force.subscribe_rate_of(topic) for topic in topics], np.int64).reshape(-1, len(OFF))


def _decisions(rows: pa.Table, broker: str, allowed: list[bool], left: list[int], rates: list[Rates]) -> pa.Table:
    columns = dict(_said(rows, broker))
    unlimited = np.array(left) == UNLIMITED
    columns |= {"allowed": pa.array(allowed), "left": pa.array(left, pa.int64(), mask=unlimited)}
    for index, name in enumerate(("subscribes_per_period", "period_s")):
        columns[name] = pa.array([rate[index] for rate in rates], pa.int64(), mask=unlimited)
    return pa.table([columns[name] for name in SUBSCRIBE_DECISIONS.names], SUBSCRIBE_DECISIONS)


def _said(rows: pa.Table, broker: str) -> Iterator[tuple[str, pa.Array]]:
    yield "event_time", whole(rows["event_time_us"]).cast(TIMESTAMP)
    yield "broker", pa.repeat(broker, len(rows))
    yield from ((name, whole(rows[name])) for name in ("topic", "client", "consumer", "consumer_id", "seq"))
