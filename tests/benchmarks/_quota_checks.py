"""What the scenarios alone do not show: nothing attached, explained limits, and whether chance itself is to blame."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from _quota_rounds import play
from quota_traffic import EVENT_ROUND, QUOTA, ROUNDS, SCENARIOS, Losses, losses, scenario

from headgate.conformance.oracles.quota_rounds.measures import measure
from headgate.conformance.oracles.quota_rounds.trace import RoundParameters
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView
from headgate.core.quota.evaluation.step import first_limit, step
from headgate.core.quota.evaluation.step_parameters import CellLimit, Mode, Reason, StepParameters
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.meter import UsageMeter
from headgate.core.quota.usage.usage_report import MeterParameters
from headgate.core.topic_names import topic_of
from headgate.quota.tables.delta import opened
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.schemas import RG_LIMITS

BROKERS = 5
EPOCH_MS = 1000
FIRST_EPOCH = 1_728_000_000


def rows_of_unattached() -> int:
    """How many rows and evaluations come of traffic while groups exist and nothing is attached to them (target 12)."""
    tables = ConfigTables.of([ResourceGroup(1, "gold", (100, None, None, None), version=1)], [])
    meter = UsageMeter(MeterParameters(EPOCH_MS), created_ms=0)
    for number in range(100):
        topic = topic_of(f"acme/orders/topic-{number}")
        group = None if topic is None else tables.resolve(topic).group
        if group is not None:
            meter.count((tables.groups[group].group_id, 0), number, (1, 100), (1, 100))
    rows = sum(len(cut.rows) for cut in meter.advance(60 * EPOCH_MS))
    return rows + len(tables.attached_groups())


def unexplained_limits(folder: str, *, quick: bool) -> int:
    """How many limits differ from what rg_limits says of their epoch, or have a row that lacks something (target 14).

    One job evaluates all brokers of the step scenarios, a group each, and appends what changed to a table.
    """
    names = ["mixed"] if quick else [name for name, one in SCENARIOS.items() if one.group == "step"]
    settings = QuotaSettings()
    tables = QuotaTables(Locations.of(folder, settings), settings)
    in_force: dict[tuple[int, int], list[CellLimit]] = {}
    for group, name in enumerate(names, 1):
        for broker, outcomes in enumerate(_outcomes(name)):
            in_force[group, broker] = outcomes
    tables.limits.append(
        [row for (group, broker), outcomes in in_force.items() for row in _changes(group, broker, outcomes)]
    )
    return _differences(in_force, opened(f"{folder}/{RG_LIMITS.name}", RG_LIMITS, EPOCH_MS).select().to_pylist())


def _outcomes(name: str) -> list[list[CellLimit]]:
    """Of each broker, round by round: everybody sees the last round of everybody."""
    parameters, quota = StepParameters(), QUOTA
    outcomes: list[list[CellLimit]] = [[] for _ in range(BROKERS)]
    view: CellView | None = None
    used: set[int] = set()
    for number, round_ in enumerate(scenario(name, BROKERS).rounds):
        if name == "quota2" and number == EVENT_ROUND:
            quota //= 2
        members = []
        for broker, demand in enumerate(round_.demand):
            before = outcomes[broker][-1].limit if outcomes[broker] else None
            now = (
                first_limit(parameters, quota, broker, dict.fromkeys(range(BROKERS), 1))
                if view is None
                else step(parameters, quota, broker, before, view)
            )
            outcomes[broker].append(now)
            used |= {broker} if demand else set()
            admitted = demand if now.limit is None else min(demand, now.limit)
            row = CellRow(number, admitted, demand, now.limit, demand == 0)
            members.append(CellMember(broker, 1, number, missing=False, active=broker in used, row=row))
        view = CellView(number, tuple(members))
    return outcomes


def _changes(group: int, broker: int, outcomes: Sequence[CellLimit]) -> Iterable[LimitRow]:
    for number, outcome in enumerate(outcomes):
        before = outcomes[number - 1] if number else None
        if before is None or (before.limit, before.reason) != (outcome.limit, outcome.reason):
            yield LimitRow(FIRST_EPOCH + number, broker, group, 0, 0, outcome)


def _differences(in_force: dict[tuple[int, int], list[CellLimit]], rows: list[dict]) -> int:
    said = {(row["group_id"], row["broker_id"], row["epoch"]): row for row in rows}
    explained = ("target", "safe", "demand", "missing", "silent", "report_age", "reason")
    wrong = 0
    for ((group, broker), outcomes), number in itertools.product(in_force.items(), range(ROUNDS)):
        epochs = (FIRST_EPOCH + back for back in range(number, -1, -1))
        row = next((said[group, broker, epoch] for epoch in epochs if (group, broker, epoch) in said), None)
        holds = row is not None and row["limit"] == outcomes[number].limit and row["reason"] in set(Reason)
        wrong += not holds or any(row[name] is None for name in explained)
    return wrong


class Exceeding(NamedTuple):
    """How many of the seeds exceed a bound, as parts of 1, with our draws and with those of an independent generator.

    worst: the largest overshoot of either.
    """

    seeds: int
    ours: float
    independent: float
    worst: float


def overshoot_of_seeds(seeds: range, bound: float) -> Exceeding:
    """The worst overshoot of `wake`, 3 brokers, strict, staleness 1, 30 % loss, for many seeds."""
    ours = [_overshoot(losses(3, 30, seed)) for seed in seeds]
    independent = [_overshoot(_independent_losses(3, 0.3, seed)) for seed in seeds]
    count = len(seeds)
    parts = [sum(value > bound for value in values) / count for values in (ours, independent)]
    return Exceeding(count, *parts, max(ours + independent))


def _overshoot(lost: Losses) -> float:
    parameters = RoundParameters(StepParameters(profile=Profile.MAX_MIN, mode=Mode.STRICT))
    played = play(scenario("wake", 3, lost), parameters)
    return measure(played.rounds, [1] * 3, EVENT_ROUND).worst_overshoot


def _independent_losses(brokers: int, part: float, seed: int) -> Losses:
    chance = np.random.default_rng(seed)
    pairs = list(itertools.permutations(range(brokers), 2))
    return [
        frozenset(pair for pair, draw in zip(pairs, chance.random(len(pairs)), strict=True) if draw < part)
        for _ in range(ROUNDS)
    ]
