"""Quota sharing in rounds: every scenario, size, loss and staleness, ours beside Pulsar's formula and PIP-82's texts.

    python tests/benchmarks/quota_scenarios.py [--quick] [--processes 2]

A trace has 92 rounds with an event at round 20 (resource-groups 12.1), is played in the array form of the rounds and
measured beside the exact max-min split of every round (12.2). A cell is a scenario, number of brokers, loss, staleness,
profile and mode; over its seeds the rounds, overshoot and Jain's index are the worst, all else is the mean.
`--quick` plays few sizes with one seed; its results are not kept.
"""

import itertools
import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from _bench import Results, parser
from _quota_checks import overshoot_of_seeds, rows_of_unattached, unexplained_limits
from _quota_rounds import Played, play
from quota_traffic import (
    BROKER_COUNTS,
    EVENT_ROUND,
    LOSS_PERCENTS,
    QUOTA,
    ROUNDS,
    SCENARIOS,
    STALENESS,
    Group,
    losses,
    scenario,
    seeds,
)

from headgate.conformance.oracles.quota_rounds import rounds
from headgate.conformance.oracles.quota_rounds.measures import Measures, measure
from headgate.conformance.oracles.quota_rounds.trace import GONE, PlayedRound, RoundParameters
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters

OURS = ((Profile.MAX_MIN, Mode.FAST), (Profile.MAX_MIN, Mode.STRICT))
THEIRS = tuple((profile, Mode.FAST) for profile in Profile if profile is not Profile.MAX_MIN)
FAST, STRICT = OURS
ARRAYS_FROM = 5
NOT_REACHED = ROUNDS - EVENT_ROUND
"""Stands for an error that stays too large until the trace ends."""


class Cell(NamedTuple):
    """What a row of the benchmark is about."""

    scenario: str
    brokers: int
    loss: int
    staleness: int
    profile: Profile
    mode: Mode

    @property
    def rule(self) -> tuple[Profile, Mode]:
        return self.profile, self.mode

    @property
    def group(self) -> Group:
        return SCENARIOS[self.scenario].group


class Task(NamedTuple):
    """Traces that lose the same reports: all scenarios, staleness and rules of one size, loss and seed."""

    brokers: int
    loss: int
    seed: int
    staleness: tuple[int, ...] = STALENESS


class Trial(NamedTuple):
    """One trace of a cell. target_gap: as `Played`.

    limits_sum: the largest sum of limits in a round before the event, and from it on, in quotas.
    """

    cell: Cell
    seed: int
    measures: Measures
    limits_sum: tuple[float, float]
    target_gap: int


@dataclass(frozen=True)
class Row:
    """A cell over its seeds."""

    cell: Cell
    rounds_to_10: int
    rounds_to_1: int
    overshoot: float
    utilisation: float
    useful: float
    jain: float
    jaggedness: float
    limits_sum: tuple[float, float]

    @classmethod
    def of(cls, cell: Cell, trials: Sequence[Trial]) -> "Row":
        measures = [trial.measures for trial in trials]
        return cls(
            cell,
            max(_rounds(one.rounds_to_10) for one in measures),
            max(_rounds(one.rounds_to_1) for one in measures),
            max(one.worst_overshoot for one in measures),
            statistics.fmean(one.utilisation for one in measures),
            statistics.fmean(one.useful_share for one in measures),
            min(one.jain_end for one in measures),
            statistics.fmean(one.jaggedness for one in measures),
            (max(trial.limits_sum[0] for trial in trials), max(trial.limits_sum[1] for trial in trials)),
        )

    def values(self) -> dict[str, Any]:
        """As it is printed and kept; None where an error stays too large."""
        to_10, to_1 = (None if rounds == NOT_REACHED else rounds for rounds in (self.rounds_to_10, self.rounds_to_1))
        measured = (self.overshoot, self.utilisation, self.useful, self.jain, self.jaggedness)
        names = ("overshoot", "utilisation", "useful", "jain", "jaggedness")
        head = self.cell._asdict() | {"to10": to_10, "to1": to_1}
        return head | {name: round(value, 4) for name, value in zip(names, measured, strict=True)}


def tasks(quick: bool) -> list[Task]:
    """Long ones first, so that all processes end together."""
    if quick:
        return [Task(BROKER_COUNTS[0], loss, 0, (STALENESS[0], STALENESS[-1])) for loss in LOSS_PERCENTS]
    return [
        Task(brokers, loss, seed)
        for brokers, loss in itertools.product(reversed(BROKER_COUNTS), reversed(LOSS_PERCENTS))
        for seed in seeds(brokers, loss)
    ]


def trials(task: Task) -> list[Trial]:
    """All traces of a task."""
    lost = losses(task.brokers, task.loss, task.seed)
    found = []
    for name in SCENARIOS:
        trace = scenario(name, task.brokers, lost, task.seed)
        for staleness, (profile, mode) in itertools.product(task.staleness, OURS + THEIRS):
            parameters = RoundParameters(StepParameters(profile=profile, mode=mode), staleness)
            # for a few brokers arrays take longer than what they do; targets are those of max_min alone
            few = task.brokers < ARRAYS_FROM and profile is not Profile.MAX_MIN
            played = Played(rounds.play(trace, parameters), 0) if few else play(trace, parameters)
            measures = measure(played.rounds, [1] * task.brokers, EVENT_ROUND)
            cell = Cell(name, task.brokers, task.loss, staleness, profile, mode)
            found.append(Trial(cell, task.seed, measures, _limits_sums(played.rounds), played.target_gap))
    return found


def played_tasks(quick: bool, processes: int) -> list[Trial]:
    if processes == 1:
        return [trial for task in tasks(quick) for trial in trials(task)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return [trial for found in pool.imap_unordered(trials, tasks(quick)) for trial in found]


def rows_of(found: Iterable[Trial]) -> list[Row]:
    """One row a cell, in the order of the specification's tables."""
    by_cell: dict[Cell, list[Trial]] = {}
    for trial in found:
        by_cell.setdefault(trial.cell, []).append(trial)
    order = {name: number for number, name in enumerate(SCENARIOS)}
    rules = OURS + THEIRS
    cells = sorted(by_cell, key=lambda cell: (order[cell.scenario], *cell[1:4], rules.index(cell.rule)))
    return [Row.of(cell, by_cell[cell]) for cell in cells]


def _rounds(value: int | None) -> int:
    return NOT_REACHED if value is None else value


def _limits_sums(played: Sequence[PlayedRound]) -> tuple[float, float]:
    sums = [
        sum(limit for limit in one.limits if limit not in {None, GONE}) / one.quota if one.quota else 0.0
        for one in played
    ]
    return max(sums[:EVENT_ROUND]), max(sums[EVENT_ROUND:])


class Rows:
    """Questions about all rows; `where` conditions are on cells."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def where(self, *conditions: Callable[[Cell], bool]) -> list[Row]:
        return [row for row in self._rows if all(condition(row.cell) for condition in conditions)]

    def steps(self, rules: Sequence[tuple[Profile, Mode]], *, loss: int, staleness: int | None = None) -> list[Row]:
        return self.where(
            lambda cell: cell.group is Group.STEP and cell.rule in rules and cell.loss == loss,
            lambda cell: staleness in {None, cell.staleness},
        )

    def named(self, name: str, *, loss: int | None = None) -> list[Row]:
        return self.where(lambda cell: cell.scenario == name and cell.rule in OURS and loss in {None, cell.loss})


def report_targets(results: Results, rows: Rows) -> None:
    """Targets 1 and 3 to 9 of resource-groups 12.3, in their order; 10, 12 and 14 are those of `main`."""
    for rule, views in ((FAST, 1), (STRICT, 2)):
        late = [row.rounds_to_1 - views * row.cell.staleness for row in rows.steps([rule], loss=0)]
        times = "" if views == 1 else f"{views} "
        name = f"1: steps, no loss, {rule[1]}: rounds to 1 % beyond {times}s, worst cell"
        results.target(name, "rounds", [max(late)], at_most=0)
    for rule in OURS:
        worst = max(row.rounds_to_1 for row in rows.steps([rule], loss=30))
        results.target(f"1: steps, 30 % loss, {rule[1]}: rounds to 1 %, worst cell", "rounds", [worst], at_most=25)
    worst_overshoot = _percent(max(row.overshoot for row in rows.steps(OURS, loss=0)))
    results.target("3: steps, no loss, both modes: worst overshoot", "%", [worst_overshoot], at_most=5)
    for loss, bound in ((10, 10), (30, 25)):
        worst_overshoot = _percent(max(row.overshoot for row in rows.steps([STRICT], loss=loss)))
        results.target(f"4: steps, {loss} % loss, strict: worst overshoot", "%", [worst_overshoot], at_most=bound)
    for loss, staleness, bound in ((0, 1, 99), (30, 3, 96)):
        mean = _percent(statistics.fmean(row.useful for row in rows.steps([FAST], loss=loss, staleness=staleness)))
        name = f"5: steps, {loss} % loss, staleness {staleness}, fast: mean useful share"
        results.target(name, "%", [mean], at_least=bound)
    for loss in LOSS_PERCENTS:
        worst_jain = min(row.jain for row in rows.steps(OURS, loss=loss))
        name = f"6: steps, {loss} % loss, both modes: Jain at end, worst cell"
        results.target(name, "", [worst_jain], at_least=0.999)
    for rule in OURS:
        crashed = [row.rounds_to_1 for row in rows.named("crash", loss=0) if row.cell.rule == rule]
        results.target(f"7: crash, no loss, {rule[1]}: rounds to 1 %, worst cell", "rounds", [max(crashed)], at_most=1)
    for loss, (part, when) in itertools.product(LOSS_PERCENTS, enumerate(("before the event", "from the event on"))):
        largest = max(row.limits_sum[part] for row in rows.named("partition", loss=loss))
        name = f"8: partition, {loss} % loss, both modes: largest sum of limits in a round {when}"
        results.target(name, "Q", [largest], at_most=1.05)
    for loss, bound in ((0, 99), (30, 97)):
        for rule in OURS:
            mean = _percent(statistics.fmean(r.useful for r in rows.named("ramp", loss=loss) if r.cell.rule == rule))
            results.target(f"9: ramp, {loss} % loss, {rule[1]}: mean useful share", "%", [mean], at_least=bound)


def report_tables(results: Results, rows: Rows) -> None:
    """The aggregates by rule: of steps by loss, then of each scenario."""
    columns = (
        *("rule", "loss", "cells within 1 % in the trace", "rounds to 1 %, median", "worst"),
        *("worst overshoot", "useful share", "worst Jain at end", "jaggedness"),
    )
    lines = [
        [name_of(rule), f"{loss} %", *summary(rows.steps([rule], loss=loss))]
        for rule, loss in itertools.product(OURS + THEIRS, LOSS_PERCENTS)
    ]
    results.table("The seven step scenarios, all sizes and staleness 1 to 3.", columns, lines)
    for name, chosen in SCENARIOS.items():
        lines = [
            [name_of(rule), *summary(rows.where(lambda cell, r=rule, n=name: cell.scenario == n and cell.rule == r))]
            for rule in OURS + THEIRS
        ]
        title = f"`{name}` ({chosen.group}), all sizes, losses and staleness."
        results.table(title, (columns[0], *columns[2:]), lines)


def summary(chosen: Sequence[Row]) -> list[str]:
    """The columns of both kinds of tables."""
    reached = [row for row in chosen if row.rounds_to_1 < NOT_REACHED]
    to_1 = [row.rounds_to_1 for row in chosen]
    return [
        f"{len(reached)} of {len(chosen)}",
        _shown(statistics.median_high(to_1)),
        _shown(max(to_1)),
        f"{_percent(max(row.overshoot for row in chosen)):.1f} %",
        f"{_percent(statistics.fmean(row.useful for row in chosen)):.1f} %",
        f"{min(row.jain for row in chosen):.4f}",
        f"{statistics.fmean(row.jaggedness for row in chosen):.2f}",
    ]


def name_of(rule: tuple[Profile, Mode]) -> str:
    profile, mode = rule
    return f"headgate, {mode}" if profile is Profile.MAX_MIN else str(profile)


def _shown(rounds: int) -> str:
    return "never" if rounds == NOT_REACHED else str(rounds)


def _percent(part: float) -> float:
    return 100 * part


def notes(quick: bool) -> Iterator[str]:
    """What the numbers do not say by themselves."""
    yield (
        f"An error that stays above 1 % until the trace ends counts as {NOT_REACHED} rounds. Independent loss is "
        "harsher than a table, whose readers see the same commits. `pulsar` and `pip82_*` do not depend on the "
        "mode."
    )
    yield (
        "Target 12 is asked of the tables and the meter, target 14 of rg_limits written for the steps by one job "
        "for all brokers; neither is asked of the streaming job here."
    )
    yield (
        "Target 8 is about the partition itself. Before it, with loss, sums of limits exceed the quota in the first "
        "rounds of a trace, when a broker that has not heard of anybody yet takes itself to be alone in the group. "
        "Target 9 names no mode: strict needs two views for a raise and is just below it without loss."
    )
    above = overshoot_of_seeds(range(5 if quick else 400), bound=0.25)
    yield (
        "Target 4 at 30 % loss is missed in one place, `wake` with 3 brokers, staleness 1, seed 1, and the rule is "
        f"at fault, not how seeds are made: of {above.seeds} seeds {_percent(above.ours):.1f} % exceed 25 % with "
        f"the draws of chance.py, and {_percent(above.independent):.1f} % with those of another generator (PCG64); "
        f"the worst has {_percent(above.worst):.0f} %. Brokers 1 and 2 wake in one round and lose each other's "
        "reports of that round and of the next, which happens in 0.3^4 = 0.8 % of traces. Broker 0 has heard both "
        "and comes down to its third. Each of the two sees broker 0 give way and itself alone ask for it, so both "
        "take half of the quota: 10,000 / 3 + 5,000 + 5,000. What the gate assumes of missing members (20 % of "
        "one's own claim) does not help here: it is asked of members of M, and a broker that was idle until now is "
        "in nobody's M before it is heard. The excess ends with the first report that arrives. A table has no such "
        "loss: a commit is read by all or by none."
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="few sizes, one seed")
    options.add_argument("--processes", type=int, default=2, metavar="N")
    arguments = options.parse_args()
    run(quick=arguments.quick, processes=arguments.processes)


def run(*, quick: bool, processes: int) -> list[Row]:
    """Play everything and report it; the rows."""
    with Results(
        "quota_scenarios",
        "Quota sharing in rounds, beside Pulsar's formula and PIP-82",
        about=__doc__.split("\n\n")[2].replace("\n", " ") + f" Q is {QUOTA:,}.",
    ) as results:
        found = played_tasks(quick, processes)
        rows = rows_of(found)
        for row in rows:
            results.row(row.values())
        report_targets(results, Rows(rows))
        gap = max(trial.target_gap for trial in found if trial.cell.rule in OURS)
        results.target("10: targets of a view summed, largest distance from Q", "units", [gap], at_most=0)
        results.target("12: nothing attached: rows and evaluations", "", [rows_of_unattached()], at_most=0)
        with tempfile.TemporaryDirectory() as folder:
            results.target(
                "14: limits that rg_limits does not explain", "", [unexplained_limits(folder, quick=quick)], at_most=0
            )
        report_tables(results, Rows(rows))
        for text in notes(quick):
            results.note(text)
    return rows


if __name__ == "__main__":
    main()
