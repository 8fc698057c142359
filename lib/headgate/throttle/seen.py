"""What counts the topics of a group once an epoch."""

from dataclasses import dataclass, field

from headgate.core.kernels.domain_types import NONE, Ints
from headgate.throttle.columns import no_ints


@dataclass
class Seen:
    """Topics, each with its group then, that had traffic in the newest epoch with traffic of any group.

    Both by position, topic among topics and group among limiters or levels.
    """

    epoch: int = NONE
    topic: Ints = field(default_factory=no_ints)
    group: Ints = field(default_factory=no_ints)
