"""What does not work just now, by cause, told once when it begins and once when it ends (resource-groups 10, 15)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from headgate.errors import TableError

LOG = logging.getLogger(__name__)


class Cause(StrEnum):
    """Why the loop goes on with less than it should have: the label of `headgate_rg_degraded`."""

    USAGE_READ = "usage_read"
    USAGE_APPEND = "usage_append"
    GROUPS = "groups"
    ATTACHMENTS = "attachments"
    MEMBERS = "members"
    LIMITS = "limits"
    UPKEEP = "upkeep"
    NO_TRANSPORT = "no_transport"
    SUPERSEDED = "superseded"


class Degraded:
    """The causes that hold now. A cause is logged when it begins and when it ends, however often it is met."""

    def __init__(self) -> None:
        self._causes: dict[Cause, str] = {}

    def __contains__(self, cause: Cause) -> bool:
        return cause in self._causes

    def begin(self, cause: Cause, why: str) -> None:
        """The cause holds; `why` is for the log."""
        if cause not in self._causes:
            LOG.warning("resource groups degraded (%s): %s", cause, why)
        self._causes[cause] = why

    def end(self, cause: Cause) -> None:
        """The cause holds no longer."""
        if self._causes.pop(cause, None) is not None:
            LOG.warning("resource groups no longer degraded (%s)", cause)

    @contextmanager
    def attempt(self, cause: Cause) -> Iterator[None]:
        """What fails inside for a table begins the cause and goes no further; what ends well ends it."""
        try:
            yield
        except TableError as error:
            self.begin(cause, str(error))
        else:
            self.end(cause)

    def gauges(self) -> dict[str, int]:
        """1 for each cause that holds, 0 for the others."""
        return {str(cause): int(cause in self._causes) for cause in Cause}
