"""A trace of rounds: demand, events and lost reports in, limits and traffic out (resource-groups 18, `rounds`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from headgate.core.numbers import at_least
from headgate.core.quota.evaluation.step_parameters import StepParameters
from headgate.errors import InvalidArgument

GONE: Final = "gone"
Limit = int | Literal["gone"] | None


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """The quota from this round on, a second; None is not limited, 0 blocks."""

    quota: int | None


@dataclass(frozen=True, slots=True)
class Crash:
    """The broker stops; membership still lists it."""

    broker: int


@dataclass(frozen=True, slots=True)
class MemberLost:
    """The broker leaves the membership, and stops."""

    broker: int


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """The broker begins a new life: it enters the membership, runs and has read the table."""

    broker: int


@dataclass(frozen=True, slots=True)
class Partition:
    """From this round on reports pass only within a side; a broker on no side hears itself alone."""

    sides: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Heal:
    """The partition ends."""


Event = QuotaSet | Crash | MemberLost | MemberJoined | Partition | Heal


@dataclass(frozen=True, slots=True)
class Round:
    """demand: offered by each broker, a second, >= 0. lost: (from, to) of this round's reports that never arrive."""

    demand: Sequence[int]
    events: tuple[Event, ...] = ()
    lost: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Trace:
    """All rounds of one cell. Brokers are numbered 0 to `brokers` - 1.

    quota: in round 0, a second; None is not limited. weights: 1 to 1000 each; None: all 1.
    initial: limits of round 0; None: the first limit of 9.2. members: those of round 0; None: all.
    demand_visible: False: arrivals do not show demand, reports carry the throttled flag alone.

    Raises InvalidArgument for a list that has not one entry for each broker.
    """

    brokers: int
    quota: int | None
    rounds: tuple[Round, ...]
    weights: tuple[int, ...] | None = None
    initial: tuple[int | None, ...] | None = None
    members: frozenset[int] | None = None
    demand_visible: bool = True

    def __post_init__(self) -> None:
        columns = [self.weights, self.initial, *(round_.demand for round_ in self.rounds)]
        for column in columns:
            if column is not None and len(column) != self.brokers:
                raise InvalidArgument(f"trace: got a list of {len(column)}, allowed is one entry for each broker")

    def weight_of(self, broker: int) -> int:
        """1 to 1000."""
        return 1 if self.weights is None else self.weights[broker]


@dataclass(frozen=True, slots=True)
class RoundParameters:
    """staleness: s >= 1, epochs between a round and its view. linger_rounds: of 7.3, >= 0. Raises InvalidArgument."""

    step: StepParameters = field(default_factory=StepParameters)
    staleness: int = 1
    linger_rounds: int = 60

    def __post_init__(self) -> None:
        at_least(1, self.staleness, "staleness")
        at_least(0, self.linger_rounds, "linger_rounds")


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """quota: in force. limits, admitted, demand: of each broker, a second; admitted is 0 where it does not run."""

    quota: int | None
    limits: tuple[Limit, ...]
    admitted: tuple[int, ...]
    demand: tuple[int, ...]
