"""How a limit is lowered so that nothing fails on the way: in one step, or in several that were tried."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.core.quota.groups import RatePair
from headgate.core.topic_names import tenant_of, without_partition
from headgate.tryout.batches import shares_quotas
from headgate.tryout.loads import Load
from headgate.tryout.notches import notch_from, rate_at
from headgate.tryout.recommend import Rates, Recommended, Runs
from headgate.tryout.recommended_conf import (
    group_rows,
    groups_of,
    tenant_rates,
    topic_rates,
    topic_rows,
    with_tenants,
    with_topics,
    without_limits,
    without_shared_limits,
)
from headgate.tryout.waiting import Switch, by_name

STEPS = (1, 2, 4, 8)
"""Numbers of steps that are tried, the fewest first."""
_SECOND_US = 1_000_000

Moves = Mapping[str, tuple[RatePair, RatePair]]
"""By name, the limits before and after a step."""


@dataclass(frozen=True)
class Course:
    """How a limit comes down. rates: what it is now, then after each step.

    at_us: when the trace was at its worst for it, and the steps were tried. is_safe: nothing failed at any of them;
    if not, the most steps are shown that were tried.
    """

    name: str
    rates: tuple[RatePair, ...]
    at_us: int
    is_safe: bool


@dataclass(frozen=True)
class Courses:
    """Of every limit that comes down."""

    topics: list[Course]
    tenants: list[Course]


def lowered(recommended: Recommended, runs: Runs) -> Courses:
    """How the limits come down that are higher now than recommended.

    Each step is tried by a run in which it is taken at the end of the name's busiest second, when most is owed: topics
    without any other limit, tenants with the recommended limits of topics in place.
    """
    conf = runs.conf
    free = without_limits(conf)
    set_ = with_topics(without_shared_limits(conf), recommended.topics)
    of_topics = _lowered({name: topic_rates(conf, name) for name in recommended.topics}, recommended.topics)
    of_tenants = _lowered({name: tenant_rates(conf, name) for name in recommended.tenants}, recommended.tenants)
    at_us = {name: _worst_us(recommended.topic_loads[name]) for name in of_topics}
    at_us |= {name: _worst_us(recommended.tenant_loads[name]) for name in of_tenants}
    shared = shares_quotas(with_tenants(conf, recommended.tenants, recommended.own))

    def topics_that_fail(moves: Moves, step: int, steps: int) -> set[str]:
        switches = [Switch(at_us[name], topic_rows({name: after})) for name, (_, after) in moves.items()]
        start = with_topics(free, {name: before for name, (before, _) in moves.items()})
        waited = by_name(runs.waits(start, _about("topics", step, steps), switches), without_partition)
        return {name for name in moves if waited[name].failed}

    def tenants_that_fail(moves: Moves, step: int, steps: int) -> set[str]:
        rates = {name: before for name, (before, _) in moves.items()}
        start = with_tenants(set_, rates, recommended.own)
        switches = []
        for name, (_, after) in sorted(moves.items(), key=lambda move: at_us[move[0]]):
            rates = rates | {name: after}
            if shared:
                switches.append(Switch(at_us[name], groups=groups_of(rates, recommended.own)))
            else:
                switches.append(Switch(at_us[name], group_rows({name: after}, recommended.own)))
        waited = by_name(runs.waits(start, _about("tenants", step, steps), switches), tenant_of)
        return {name for name in moves if waited[name].failed}

    return Courses(
        _courses(of_topics, recommended.topic_loads, at_us, topics_that_fail),
        _courses(of_tenants, recommended.tenant_loads, at_us, tenants_that_fail),
    )


def _about(names: str, step: int, steps: int) -> str:
    return f"lowering {names}, step {step} of {steps}"


def _lowered(now: Rates, recommended: Rates) -> dict[str, tuple[RatePair, RatePair]]:
    """Limits before and after, of names with one that falls; one that rises does so before."""
    moves = {}
    for name, after in recommended.items():
        before = tuple(_higher(*pair) for pair in zip(now[name], after, strict=True))
        if before != after:
            moves[name] = ((before[0], before[1]), after)
    return moves


def _higher(now: int | None, after: int | None) -> int | None:
    return None if now is None or after is None else max(now, after)


def _worst_us(load: Load) -> int:
    return (load.busiest_s[0] + 1) * _SECOND_US


def _courses(
    moves: Moves, loads: Mapping[str, Load], at_us: Mapping[str, int], fail: Callable[[Moves, int, int], set[str]]
) -> list[Course]:
    """A course for each name, with as few steps as will do. fail: which of these moves make publishes fail."""
    found: dict[str, Course] = {}
    waiting = dict(moves)
    for steps in STEPS:
        courses = {name: _course(*move, loads[name], steps) for name, move in waiting.items()}
        failed: set[str] = set()
        for step in range(steps if courses else 0):
            now = {name: (rates[step], rates[step + 1]) for name, rates in courses.items() if name not in failed}
            failed |= fail(now, step + 1, steps)
        found |= {name: Course(name, rates, at_us[name], name not in failed) for name, rates in courses.items()}
        waiting = {name: move for name, move in waiting.items() if name in failed}
    return [found[name] for name in moves]


def _course(before: RatePair, after: RatePair, load: Load, steps: int) -> tuple[RatePair, ...]:
    """Rates that fall by the same factor with each step; one that is not limited yet begins at the busiest second."""
    by_dimension = [_falling(*pair, steps) for pair in zip(before, after, load.busiest, strict=True)]
    return tuple(zip(*by_dimension, strict=True))


def _falling(before: int | None, after: int | None, busiest: int, steps: int) -> Iterable[int | None]:
    if after is None:
        return [before] * (steps + 1)
    top = max(busiest, after) if before is None else before
    between = [rate_at(notch_from(top * (after / top) ** (step / steps))) for step in range(1, steps)]
    return [before, *(max(rate, after) for rate in between), after]
