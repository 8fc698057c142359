"""What a collector asks of a cluster, whatever its kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.core.clusters.counters import Counted, Reading


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A broker's entry cache as it says itself. Rates are of its last statistics period (a minute by default)."""

    hits_per_s: float
    misses_per_s: float
    used_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerLook:
    """What a broker told: the counters of all its topics. cache: None where it has none."""

    readings: Mapping[Counted, Reading]
    cache: CacheUse | None = None

    @property
    def topics(self) -> set[str]:
        """Those with counters in some direction."""
        return {topic for topic, _ in self.readings}


class Cluster(Protocol):
    """A running cluster that is only looked at. Every method raises ClusterError where it cannot be had."""

    def name(self) -> str:
        """What the cluster calls itself: the same from whichever broker."""

    def brokers(self) -> Sequence[str]:
        """The brokers that are there, by the names under which `look` asks them."""

    def look(self, broker: str) -> BrokerLook:
        """Ask one broker. Called from several threads at a time."""
