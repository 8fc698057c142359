"""The scenarios of the quota benchmark as traces: what brokers are offered and what happens (resource-groups 12.1).

f is the quota divided by the number of brokers; rates are truncated to integers. The second half is the last N div 2
brokers; a percentage is a half's total, split evenly. A trace has 92 rounds, its event is at round 20.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from _chance import Chance

from headgate.conformance.oracles.quota_rounds.trace import (
    Crash,
    Event,
    Heal,
    MemberLost,
    Partition,
    QuotaSet,
    Round,
    Trace,
)
from headgate.core.numbers import at_least
from headgate.errors import InvalidArgument

QUOTA = 10_000
ROUNDS = 92
EVENT_ROUND = 20
BROKER_COUNTS = (2, 3, 5, 20, 100)
LOSS_PERCENTS = (0, 10, 30)
STALENESS = (1, 2, 3)

Losses = Sequence[frozenset[tuple[int, int]]]
Demand = list[int]


class Group(StrEnum):
    """What a scenario shows: the answer to a step, to a failure, to demand that keeps moving (resource-groups 12.1)."""

    STEP = "step"
    FAILURE = "failure"
    TRACKING = "tracking"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The brokers of a scenario: `brokers` N >= 2, `quota` a second."""

    brokers: int
    quota: int

    @property
    def halves(self) -> tuple[int, int]:
        """How many brokers the first and the second half have."""
        return self.brokers - self.brokers // 2, self.brokers // 2

    def percent(self, first: int, second: int) -> Demand:
        """Each half's total in percent of the quota, split evenly."""
        sizes = self.halves
        return self._by_half(first * self.quota // (100 * sizes[0]), second * self.quota // (100 * sizes[1]))

    def tenths(self, first: int, second: int) -> Demand:
        """What each broker of a half is offered, in tenths of f."""
        return self.parts_of_300(30 * first, 30 * second)

    def parts_of_300(self, first: int, second: int) -> Demand:
        """What each broker of a half is offered, in parts of f of which 300 are f."""
        whole = 300 * self.brokers
        return self._by_half(first * self.quota // whole, second * self.quota // whole)

    def one_and_rest(self, one: int, rest: int) -> Demand:
        """What the first broker and each other one is offered, in tenths of the quota."""
        return [one * self.quota // 10] + [rest * self.quota // 10] * (self.brokers - 1)

    def _by_half(self, first: int, second: int) -> Demand:
        sizes = self.halves
        return [first] * sizes[0] + [second] * sizes[1]


@dataclass(frozen=True, slots=True)
class Scenario:
    """group: what it shows. demands: of all rounds, by crowd and seed. events: by crowd, in their rounds."""

    group: Group
    demands: Callable[[Crowd, int], list[Demand]]
    events: Callable[[Crowd], Mapping[int, tuple[Event, ...]]] = lambda _: {}


def _step(before: Callable[[Crowd], Demand], after: Callable[[Crowd], Demand]) -> Callable[[Crowd, int], list[Demand]]:
    return lambda crowd, _: [before(crowd)] * EVENT_ROUND + [after(crowd)] * (ROUNDS - EVENT_ROUND)


def _steady(always: Callable[[Crowd], Demand]) -> Callable[[Crowd, int], list[Demand]]:
    return lambda crowd, _: [always(crowd)] * ROUNDS


def _ramp(crowd: Crowd, _seed: int) -> list[Demand]:
    """The first half 1.5 f, the second rises from 0.2 f to 3 f within 30 rounds from the event."""
    return [crowd.parts_of_300(450, 60 + 28 * min(max(number - EVENT_ROUND, 0), 30)) for number in range(ROUNDS)]


def _bursts(crowd: Crowd, seed: int) -> list[Demand]:
    """Each broker changes between 3 f and 0.1 f in one of eight rounds: spells are geometric with a mean of 8."""
    chance = Chance(seed, crowd.brokers)
    high, low = crowd.tenths(30, 30)[0], crowd.tenths(1, 1)[0]
    busy = [chance.happens(1, 2) for _ in range(crowd.brokers)]
    demands = []
    for _ in range(ROUNDS):
        demands.append([high if broker else low for broker in busy])
        busy = [broker is not chance.happens(1, 8) for broker in busy]
    return demands


def _halve(crowd: Crowd) -> Mapping[int, tuple[Event, ...]]:
    return {EVENT_ROUND: (QuotaSet(crowd.quota // 2),)}


def _vanish(crowd: Crowd) -> Mapping[int, tuple[Event, ...]]:
    """A fifth of the brokers crashes; membership says so one round later."""
    vanished = range(crowd.brokers - max(1, crowd.brokers // 5), crowd.brokers)
    return {EVENT_ROUND: tuple(map(Crash, vanished)), EVENT_ROUND + 1: tuple(map(MemberLost, vanished))}


def _part(crowd: Crowd) -> Mapping[int, tuple[Event, ...]]:
    """The halves cannot hear each other for 30 rounds."""
    first = crowd.halves[0]
    sides = frozenset(range(first)), frozenset(range(first, crowd.brokers))
    return {EVENT_ROUND: (Partition(sides),), EVENT_ROUND + 30: (Heal(),)}


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "fair7030": Scenario(Group.STEP, _step(lambda crowd: crowd.percent(70, 30), lambda crowd: crowd.tenths(14, 14))),
    "shift8020": Scenario(Group.STEP, _step(lambda crowd: crowd.percent(70, 30), lambda crowd: crowd.percent(80, 20))),
    "join": Scenario(Group.STEP, _step(lambda crowd: crowd.tenths(30, 0), lambda crowd: crowd.tenths(30, 30))),
    "wake": Scenario(
        Group.STEP, _step(lambda crowd: crowd.one_and_rest(12, 0), lambda crowd: crowd.one_and_rest(12, 10))
    ),
    "leave": Scenario(Group.STEP, _step(lambda crowd: crowd.tenths(30, 30), lambda crowd: crowd.tenths(30, 0))),
    "mixed": Scenario(Group.STEP, _step(lambda crowd: crowd.tenths(5, 5), lambda crowd: crowd.tenths(3, 40))),
    "quota2": Scenario(Group.STEP, _steady(lambda crowd: crowd.tenths(3, 40)), _halve),
    "crash": Scenario(Group.FAILURE, _steady(lambda crowd: crowd.tenths(30, 30)), _vanish),
    "partition": Scenario(Group.FAILURE, _steady(lambda crowd: crowd.tenths(30, 30)), _part),
    "ramp": Scenario(Group.TRACKING, _ramp),
    "bursty": Scenario(Group.TRACKING, _bursts),
}


def scenario(name: str, brokers: int, lost: Losses | None = None, seed: int = 0, quota: int = QUOTA) -> Trace:
    """The trace of a scenario; equal arguments give equal traces on every machine.

    Arguments: `name` one of SCENARIOS; `brokers` N, 2 and above; `lost` as `losses` gives it, None: nothing is lost;
    `seed` >= 0 of the bursts, which alone depend on it; `quota` a second, >= 0. Raises InvalidArgument for an unknown
    name or fewer brokers. Source: resource-groups 12.1.
    """
    if name not in SCENARIOS:
        raise InvalidArgument(f"name: got {name!r}, allowed are {', '.join(SCENARIOS)}")
    crowd = Crowd(at_least(2, brokers, "brokers"), at_least(0, quota, "quota"))
    chosen = SCENARIOS[name]
    events = chosen.events(crowd)
    rounds = [
        Round(demand, events.get(number, ()), frozenset() if lost is None else lost[number])
        for number, demand in enumerate(chosen.demands(crowd, seed))
    ]
    return Trace(brokers=brokers, quota=quota, rounds=tuple(rounds))


def losses(brokers: int, percent: int, seed: int) -> Losses:
    """For each round the (from, to) whose report is lost: each pair by itself, with `percent` of 100; never one's own.

    Traces of the same size share it. Source: resource-groups 12.1.
    """
    if percent == 0:
        return [frozenset()] * ROUNDS
    chance = Chance(seed, brokers * 101 + percent)
    pairs = [(sender, receiver) for sender in range(brokers) for receiver in range(brokers) if sender != receiver]
    return [frozenset(pair for pair in pairs if chance.happens(percent, 100)) for _ in range(ROUNDS)]


def seeds(brokers: int, loss_percent: int) -> range:
    """The seeds of a cell of the benchmark: six with loss, two for 100 brokers; one without. resource-groups 12.1"""
    if loss_percent == 0:
        return range(1)
    return range(2 if brokers >= BROKER_COUNTS[-1] else 6)
