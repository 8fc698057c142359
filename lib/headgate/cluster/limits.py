"""Where the limits of a cluster are, and what is said there (clusters 3.1)."""

from collections.abc import Sequence
from typing import Protocol

from headgate.conf.cluster import Resource
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError


class InTheWayError(ClusterError):
    """A limit of the operator's that one of ours would put an end to."""


class Limits(Protocol):
    """Limits of a running cluster. Values are text, None for no limit. Every method raises ClusterError."""

    def averaged_us(self) -> int:
        """Over how long brokers average what they let in; 0: less than a look at them takes."""

    def paths(self, resource: Resource, direction: str) -> Sequence[str]:
        """Where limits are to be set, so that each topic of the resource has one.

        Raises InTheWayError as well.
        """

    def own_path(self, topic: str, direction: str) -> str | None:
        """Where a topic's own limit is, which precedes the others; None: it cannot have one."""

    def read(self, path: str) -> str | None:
        """What is set there, always in the same words."""

    def write(self, path: str, value: str | None) -> None:
        """Set it; None removes it."""

    def limit(self, path: str, value: str) -> Limit:
        """What such a value limits a topic to."""

    def wider_path(self, path: str) -> str | None:
        """Where a limit is that holds for what this place is of, as long as there is none here; None: nowhere."""

    def lowered(self, path: str, value: str | None, wider: str | None, limit: Limit) -> str | None:
        """What to set so that no topic gets more than `limit`, and none more than by the operator's limits.

        value: the operator's in this place; without one, `wider` holds, or what the brokers are started with. It is
        `value` where these limit enough. Raises ClusterError where it cannot be said.
        """
