"""What a collector asks of a cluster, whatever its kind."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from headgate.core.clusters.counters import Counted, Increase

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A broker's entry cache as it says itself. Rates are of its last statistics period (a minute by default)."""

    hits_per_s: float
    misses_per_s: float
    used_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerLook(Generic[R]):
    """What a broker told of all topics, as the cluster's `counting` takes it; None: another broker has the topic.

    cache: None where it has none. version: of its program; None: it does not say.
    """

    readings: Mapping[Counted, R]
    cache: CacheUse | None = None
    version: str | None = None

    @property
    def topics(self) -> set[str]:
        """Those with counters in some direction."""
        return {topic for (topic, _), reading in self.readings.items() if reading is not None}


class Counting(Protocol):
    """Turns what brokers tell into what came."""

    def look(self, at_us: int, broker: str, readings: Mapping[Counted, Any], /) -> list[Increase]:
        """What came since the broker's look before. Raises InvalidArgument for a time that is not after that."""


class Cluster(Protocol):
    """A running cluster that is only looked at. Every method raises ClusterError where it cannot be had."""

    def name(self) -> str:
        """What the cluster calls itself: the same from whichever broker."""

    def brokers(self) -> Sequence[str]:
        """The brokers that are there, by the names under which `look` asks them."""

    def look(self, broker: str) -> BrokerLook[Any]:
        """Ask one broker. Called from several threads at a time."""

    def counting(self, told: Iterable[Increase], looked: Mapping[str, int]) -> Counting:
        """From where a collector left off; both are empty if there was none.

        told: the last row of each broker, topic and direction. looked: when each broker was looked at last.
        """
