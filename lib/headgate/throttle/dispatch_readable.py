"""The dispatch part of the readable engine: one object a level and a waiting subscription."""

import numpy as np

from headgate.core.dispatch_domain import DispatchDomain, DomainLevel, Line, Read
from headgate.core.group_dispatch_level import GroupDispatchLevel
from headgate.core.kernels.dispatch_types import READ
from headgate.throttle.dispatch_state import READ_FIELDS, DispatchState
from headgate.throttle.dispatch_step import DispatchStep
from headgate.throttle.objects import columns, open_waits, read_bucket, write_bucket, write_waits
from headgate.throttle.step import Admissions, DispatchResult, Rules, Waits


def run_dispatch(state: DispatchState, step: DispatchStep, until_ns: int, rules: Rules) -> DispatchResult:
    objects = _objects(state, step, rules)
    objects.begin(step.begin_ns)
    for at_ns, kind, topic, subscription, messages, bytes_ in zip(
        *(column.tolist() for column in step.operations), strict=True
    ):
        if kind == READ:
            objects.read(Read(at_ns, topic, subscription, messages, bytes_))
        else:
            objects.set_limit(topic, messages, bytes_, at_ns)
    objects.advance(until_ns)
    _take_back(state, objects)
    waits = Waits._make(columns(objects.group_waits.told, 4))
    admissions = Admissions._make(columns(objects.admissions, 4))
    return DispatchResult(np.array(list(objects.lines), np.int64), waits, admissions)


def _objects(state: DispatchState, step: DispatchStep, rules: Rules) -> DispatchDomain:
    objects = DispatchDomain(
        levels=[],
        level_of={topic: level for topic, level in enumerate(state.level_of.tolist()) if level >= 0},
        offered=rules.offered,
        max_debt_ms=None if rules.max_debt_ms < 0 else rules.max_debt_ms,
        tells=rules.slot_ms > 0,
    )
    for position, (messages, bytes_) in enumerate(state.levels["rate"].tolist()):
        level = DomainLevel((messages, bytes_))
        if state.levels["born"][position]:
            level.made = GroupDispatchLevel(messages, bytes_, created_ns=0, max_debt_ms=objects.max_debt_ms)
            for kind, meter in enumerate(level.made.meters):
                read_bucket(None if meter is None else meter.bucket, state.levels, (position, kind))
        objects.levels.append(level)
    if objects.tells:
        objects.group_waits.open = open_waits(state.levels)
    due_ns, counted = state.subscription_due_ns.tolist(), step.counted.tolist()
    for subscription, topic in enumerate(state.subscription_topic.tolist()):
        line = Line(topic, due_ns[subscription], is_counted=counted[subscription])
        objects.lines[subscription] = line
        if line.is_counted:
            objects.levels[objects.level_of[topic]].waiting += 1
    for subscription, at_ns, messages, bytes_ in zip(
        *(state.reads[name].tolist() for name in READ_FIELDS), strict=True
    ):
        line = objects.lines[subscription]
        line.reads.append(Read(at_ns, line.topic, subscription, messages, bytes_))
    return objects


def _take_back(state: DispatchState, objects: DispatchDomain) -> None:
    levels = {name: np.zeros_like(values) for name, values in state.levels.items()}
    for position, level in enumerate(objects.levels):
        levels["rate"][position] = level.rates
        levels["born"][position] = level.made is not None
        for kind, meter in enumerate(level.made.meters if level.made else ()):
            write_bucket(None if meter is None else meter.bucket, levels, (position, kind))
    write_waits(objects.group_waits.open, levels)
    state.levels = levels
    lines = objects.lines.values()
    state.subscription_due_ns = np.array([line.due_ns for line in lines], np.int64)
    reads = [(place, read.at_ns, read.messages, read.bytes) for place, line in enumerate(lines) for read in line.reads]
    state.reads = dict(zip(READ_FIELDS, columns(reads, len(READ_FIELDS)), strict=True))
