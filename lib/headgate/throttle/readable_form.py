"""The readable form: one object a limiter, for inspection and as the measure of the array form."""

from collections import deque
from collections.abc import Iterable

import numpy as np

from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.kernels.publish.types import LEAVE, MARK, PUBLISH, UNMARK
from headgate.core.numbers import MILLISECOND_NS
from headgate.core.publish.publish_domain import DomainLimiter, Publish, PublishDomain, TopicUsage
from headgate.core.publish.publish_limiter import PublishLimiter, Scope
from headgate.core.usage import USAGE_COLUMNS
from headgate.throttle.dispatch.dispatch_step import follow_publishes
from headgate.throttle.dispatch.readable_form import run_dispatch
from headgate.throttle.form import Admissions, Result, Rules, Step, Waits
from headgate.throttle.keys import BROKER_KEY, group_key
from headgate.throttle.objects import columns, open_waits, read_bucket, write_bucket, write_waits
from headgate.throttle.state import COUNT_FIELDS, WITHHELD_FIELDS, DomainState


def run_readable(domain: DomainState, step: Step, rules: Rules) -> Result:
    objects = _objects(domain, step, rules)
    for at_ns, kind, topic, producer, messages, bytes_, seq in zip(
        *(column.tolist() for column in step.operations), strict=True
    ):
        if kind == PUBLISH:
            objects.publish(Publish(at_ns, topic, producer, messages, bytes_, seq))
        elif kind == LEAVE:
            objects.leave(topic, at_ns)
        else:
            objects.set_limit(topic, messages, bytes_, at_ns)
    objects.advance(step.until_ns, finish=step.finish)
    _from_arrays(domain, objects)
    result = _result(objects)
    if step.dispatch is None:
        return result
    followed = follow_publishes(domain, step.dispatch, result, step.until_ns, rules)
    return result._replace(dispatch=run_dispatch(domain.dispatch, followed, step.until_ns, rules))


def _objects(domain: DomainState, step: Step, rules: Rules) -> PublishDomain:
    keys = domain.keys.to_pylist()
    objects = PublishDomain(
        limiters=[],
        broker=keys.index(BROKER_KEY) if BROKER_KEY in keys else None,
        groups={topic: group for topic, group in enumerate(domain.limiters["group"].tolist()) if group >= 0},
        exempt=frozenset(np.flatnonzero(step.exempt).tolist()),
        offered=rules.offered,
        timeout_ns=rules.send_timeout_ms * MILLISECOND_NS,
        max_debt_ms=None if rules.max_debt_ms < 0 else rules.max_debt_ms,
        quantum=rules.release_quantum or None,
        tells=rules.slot_ms > 0,
    )
    for position, key in enumerate(keys):
        scope = Scope.BROKER if key == BROKER_KEY else Scope.GROUP if key.startswith(group_key("")) else Scope.TOPIC
        messages, bytes_ = domain.limiters["rate"][position].tolist()
        limiter = DomainLimiter(scope, (messages, bytes_))
        if domain.limiters["initialised"][position]:
            limiter.made = objects._made(limiter, 0)
            _fill(limiter.made, domain, position)
        objects.limiters.append(limiter)
    if objects.tells:
        objects.group_waits.open = open_waits(domain.limiters)
    entries = (domain.entry_limiter, domain.entry_producer, domain.entry_count)
    for position, producer, count in zip(*(column.tolist() for column in entries), strict=True):
        topic = int(step.producer_topic[producer])
        made = objects.limiters[position].made
        if made is not None:
            made.queue.append((producer, topic, count))
        objects.waits[producer] = objects.waits.get(producer, 0) + count
        objects.usage.setdefault(topic, TopicUsage()).waiting += count
    for row in zip(*(domain.withheld[name].tolist() for name in WITHHELD_FIELDS), strict=True):
        producer, at_ns, topic, messages, bytes_, seq = row
        event = Publish(at_ns, topic, producer, messages, bytes_, seq)
        objects.withheld.setdefault(producer, deque()).append(event)
    for i, topic in enumerate(domain.usage["topic"].tolist()):
        usage = objects.usage.setdefault(topic, TopicUsage())
        second = int(domain.usage["second"][i])
        usage.second = None if second == NO_VALUE else second
        usage.since_ns = int(domain.usage["since_ns"][i])
        usage.counts = [int(domain.usage[name][i]) for name in COUNT_FIELDS]
    return objects


def _fill(limiter: PublishLimiter, domain: DomainState, position: int) -> None:
    for kind, bucket in enumerate(limiter.buckets):
        read_bucket(bucket, domain.limiters, (position, kind))
    next_drain_ns = int(domain.limiters["next_drain_ns"][position])
    limiter.next_drain_ns = None if next_drain_ns == NO_VALUE else next_drain_ns


def _from_arrays(domain: DomainState, objects: PublishDomain) -> None:
    arrays = {name: values.copy() for name, values in domain.limiters.items()}
    entries: list[tuple[int, int, int]] = []
    for position, limiter in enumerate(objects.limiters):
        arrays["rate"][position] = limiter.rates
        arrays["initialised"][position] = limiter.made is not None
        if limiter.made is None:
            continue
        for kind, bucket in enumerate(limiter.made.buckets):
            write_bucket(bucket, arrays, (position, kind))
        drain_ns = limiter.made.next_drain_ns
        arrays["next_drain_ns"][position] = NO_VALUE if drain_ns is None else drain_ns
        entries += [(position, producer, count) for producer, _, count in limiter.made.queue]
    write_waits(objects.group_waits.open, arrays)
    domain.limiters = arrays
    domain.entry_limiter, domain.entry_producer, domain.entry_count = columns(entries, 3)
    withheld = [
        (producer, event.at_ns, event.topic, event.messages, event.bytes, event.seq)
        for producer, held in sorted(objects.withheld.items())
        for event in held
    ]
    domain.withheld = dict(zip(WITHHELD_FIELDS, columns(withheld, len(WITHHELD_FIELDS)), strict=True))
    kept = [
        (topic, NO_VALUE if usage.second is None else usage.second, usage.since_ns, *usage.counts)
        for topic, usage in sorted(objects.usage.items())
        if usage.second is not None or usage.waiting
    ]
    names = ("topic", "second", "since_ns", *COUNT_FIELDS)
    domain.usage = dict(zip(names, columns(kept, len(names)), strict=True))


def _result(objects: PublishDomain) -> Result:
    marks, closed = objects.marks, objects.closed
    return Result(
        mark_at_ns=_ints(mark.at_ns for mark in marks),
        mark_limiter=_ints(mark.limiter for mark in marks),
        mark_producer=_ints(mark.producer for mark in marks),
        mark_topic=_ints(mark.topic for mark in marks),
        mark_seq=_ints(NO_VALUE if mark.seq is None else mark.seq for mark in marks),
        mark_action=_ints(MARK if mark.marked else UNMARK for mark in marks),
        mark_times=np.ones(len(marks), np.int64),
        mark_balance=np.array([mark.balances for mark in marks], np.int64).reshape(-1, 2),
        mark_rate=np.array([mark.rates for mark in marks], np.int64).reshape(-1, 2),
        closed_topic=_ints(row.topic for row in closed),
        closed_second=_ints(row.second for row in closed),
        closed_counts=np.array([row.counts for row in closed], np.int64).reshape(-1, USAGE_COLUMNS),
        waits=Waits._make(columns(objects.group_waits.told, 4)),
        admissions=Admissions._make(columns(objects.admissions, 4)),
        dispatch=None,
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
