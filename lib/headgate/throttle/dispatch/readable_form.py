"""The dispatch part of the readable form: one object a level and a waiting subscription."""

import numpy as np

from headgate.core.dispatch.dispatch_domain import GROUP, DispatchDomain, Line, Read
from headgate.core.dispatch.dispatch_levels import LazyDispatchLevel, LazyGroupLevel, Level
from headgate.core.dispatch.dispatch_meter import BucketMeter, Implementation, Meter, WindowMeter
from headgate.core.dispatch.group_dispatch_level import GroupDispatchLevel
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.kernels.dispatch.types import FOLLOW, READ
from headgate.core.numbers import MIN
from headgate.throttle.dispatch.dispatch_state import READ_FIELDS, DispatchState
from headgate.throttle.form import DispatchResult, DispatchStep, Rules, Starts, Waits
from headgate.throttle.objects import columns, open_waits, read_bucket, write_bucket, write_waits


def run_dispatch(state: DispatchState, step: DispatchStep, until_ns: int, rules: Rules) -> DispatchResult:
    objects = _objects(state, step, rules)
    objects.begin(step.begin_ns)
    held_by = []
    rows = zip(*(column.tolist() for column in step.operations), strict=True)
    for at_ns, kind, target, messages, bytes_, charged, exempt in rows:
        if kind == READ:
            held_by.append(objects.read(Read(at_ns, target, messages, bytes_, charged, exempt != 0)))
        elif kind == FOLLOW:
            objects.follow(target, (messages, bytes_), at_ns)
        else:
            objects.set_limit(target, (messages, bytes_), at_ns, period_s=charged, relative=exempt != 0)
    objects.advance(until_ns)
    _from_arrays(state, objects)
    waits = Waits._make(columns(objects.group_waits.told, 4))
    starts = Starts._make(columns(objects.starts, 6))
    return DispatchResult(np.array(list(objects.lines), np.int64), waits, np.array(held_by, np.int64), starts)


def _objects(state: DispatchState, step: DispatchStep, rules: Rules) -> DispatchDomain:
    objects = DispatchDomain(
        levels=_levels(state, rules),
        chains=step.chains.tolist(),
        offered=rules.offered,
        tells=rules.slot_ms > 0,
    )
    if objects.tells:
        objects.group_waits.open = open_waits(state.levels)
    waiting = zip(state.subscription_due_ns.tolist(), state.subscription_held_by.tolist(), step.counted, strict=True)
    for subscription, (due_ns, held_by, counted) in enumerate(waiting):
        objects.lines[subscription] = Line(due_ns, held_by=held_by, is_counted=bool(counted))
        level = objects.levels[objects.chains[subscription][GROUP]]
        if counted and isinstance(level, LazyGroupLevel):
            level.waiting += 1
    for subscription, at_ns, messages, bytes_, charged, exempt in zip(
        *(state.reads[name].tolist() for name in READ_FIELDS), strict=True
    ):
        read = Read(at_ns, subscription, messages, bytes_, charged, exempt != 0)
        objects.lines[subscription].reads.append(read)
    return objects


def _levels(state: DispatchState, rules: Rules) -> list[Level]:
    """The levels of the state, those that are made with what their buckets hold."""
    max_debt_ms = None if rules.max_debt_ms < 0 else rules.max_debt_ms
    implementation = Implementation.CLASSIC if rules.classic else Implementation.TOKEN_BUCKET
    levels: list[Level] = []
    for position, is_group in enumerate(state.are_groups):
        messages, bytes_ = state.levels["rate" if is_group else "configured"][position].tolist()
        average_messages, average_bytes = state.levels["averages"][position].tolist()
        initialised = bool(state.levels["initialised"][position])
        level: Level
        if is_group:
            level = LazyGroupLevel((messages, bytes_), max_debt_ms)
            if initialised:
                level.made = GroupDispatchLevel(messages, bytes_, created_ns=0, max_debt_ms=max_debt_ms)
        else:
            level = LazyDispatchLevel(
                (messages, bytes_),
                int(state.levels["period_s"][position]),
                relative=bool(state.levels["relative"][position]),
                averages=(average_messages, average_bytes),
                implementation=implementation,
                max_debt_ms=max_debt_ms,
            )
            if initialised:
                level.missing(0)
        for kind, meter in enumerate(level.made.meters if level.made else ()):
            _read_meter(meter, state.levels, (position, kind), is_group=bool(is_group))
        levels.append(level)
    return levels


def _read_meter(meter: Meter | None, levels: dict[str, Ints], place: tuple[int, int], *, is_group: bool) -> None:
    """Set a meter to what the columns hold at `place`: position and dimension. Groups keep no floor: it follows."""
    if isinstance(meter, BucketMeter):
        read_bucket(meter.bucket, levels, place)
        if meter.bucket.dynamic:
            meter.bucket.rate = meter.bucket.capacity = int(levels["rate"][place])
        if not is_group:
            floor = int(levels["floor"][place])
            meter.bucket.max_debt = None if floor == MIN else -floor
    elif isinstance(meter, WindowMeter):
        window, next_ns = meter.window, int(levels["last_ns"][place])
        window.permits, window.acquired = int(levels["rate"][place]), int(levels["balance"][place])
        window.next_renewal_ns = None if next_ns == NO_VALUE else next_ns
        window.permit_updater = int(levels["remainder_ns"][place]) or None


def _write_meter(meter: Meter | None, levels: dict[str, Ints], place: tuple[int, int], *, is_group: bool) -> None:
    """The other way round; zeros without a meter."""
    if isinstance(meter, WindowMeter):
        window = meter.window
        levels["rate"][place], levels["balance"][place] = window.permits, window.acquired
        levels["last_ns"][place] = NO_VALUE if window.next_renewal_ns is None else window.next_renewal_ns
        levels["remainder_ns"][place] = window.permit_updater or 0
        return
    bucket = None if meter is None else meter.bucket
    write_bucket(bucket, levels, place)
    if not is_group and bucket is not None:
        levels["rate"][place] = bucket.rate
        levels["floor"][place] = MIN if bucket.max_debt is None else -bucket.max_debt


def _from_arrays(state: DispatchState, objects: DispatchDomain) -> None:
    levels = {name: np.zeros_like(values) for name, values in state.levels.items()}
    for position, level in enumerate(objects.levels):
        is_group = isinstance(level, LazyGroupLevel)
        levels["initialised"][position] = level.made is not None
        levels["period_s"][position] = 1
        if isinstance(level, LazyGroupLevel):
            levels["rate"][position] = level.rates
        else:
            levels["configured"][position], levels["averages"][position] = level.configured, level.averages
            levels["period_s"][position], levels["relative"][position] = level.period_s, level.relative
        for kind, meter in enumerate(level.made.meters if level.made else ()):
            _write_meter(meter, levels, (position, kind), is_group=is_group)
    write_waits(objects.group_waits.open, levels)
    state.levels = levels
    lines = objects.lines.values()
    state.subscription_due_ns = np.array([line.due_ns for line in lines], np.int64)
    state.subscription_held_by = np.array([line.held_by for line in lines], np.int64)
    reads = [
        (place, read.at_ns, read.messages, read.bytes, read.charged, read.is_exempt)
        for place, line in enumerate(lines)
        for read in line.reads
    ]
    state.reads = dict(zip(READ_FIELDS, columns(reads, len(READ_FIELDS)), strict=True))
