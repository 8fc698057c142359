"""The table `enforced`: who may set limits, and what each was before (clusters 3.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

import pyarrow as pa

from headgate.cluster.running import is_running
from headgate.cluster.schemas import ENFORCED
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.ledger import PUSH, RELEASED, Entry, Line, open_entries
from headgate.errors import ClusterError
from headgate.tables.delta import Tables

LEASE, ALIVE, ENDED, NOT_ENFORCEABLE = "lease", "alive", "ended", "not_enforceable"
RENEWED_US: Final = 10_000_000
"""So often a holder says that it is alive."""
SILENT_S: Final = 25
"""A holder that says nothing for so long is dead, whatever the clocks say."""
_ATTEMPTS: Final = 20
_HOLDER = "SELECT by, epoch, action, at_us FROM t WHERE epoch > 0 ORDER BY epoch DESC, at_us DESC LIMIT 1"
"""Whatever a holder writes says that it is alive; what others record has no epoch."""
_LINES = "SELECT path, action, before, after, found FROM t WHERE action IN ('push', 'released') ORDER BY epoch, at_us"


@dataclass(frozen=True, slots=True)
class Step:
    """A line to be written: of a push or a release."""

    resource: str
    path: str = ""
    action: str = PUSH
    before: str | None = None
    after: str | None = None
    found: str | None = None
    reason: str | None = None


class LeaseLostError(ClusterError):
    """Somebody else has the lease: nothing may be set or put back any more."""


class Ledger:
    """Only one process at a time writes, and nothing is set in a cluster before it is here.

    The holder has the largest epoch; whoever takes the lease takes the next one, and each write fails that comes after
    that. Raises ClusterError where somebody else has it, TableError where the table cannot be read or written.

    name: of this process. now_us: never goes back.
    """

    def __init__(self, tables: Tables, name: str, now_us: Callable[[], int]) -> None:
        self._tables, self._name, self._now_us = tables, name, now_us
        self._epoch = 0
        self._written_us = 0
        self._writes = True

    def stop_writing(self) -> None:
        """For the end, where the table cannot be read or written: from now on nothing is written, and no lease minded.

        The next holder finds what is put back among what was set, and puts it back once more, which changes nothing.
        """
        self._writes = False

    def take(self, stop: Event, tell: Callable[[str], None]) -> bool:
        """Take the lease: at once where nobody has it, else once its holder has been silent for SILENT_S.

        It is refused at once where the holder runs on this machine, and has said so lately.

        False if `stop` was set while it waited.
        """
        for _ in range(_ATTEMPTS):
            version, holder = self._holder()
            if holder is not None and holder["action"] != ENDED and (runs := is_running(holder["by"])) is not False:
                if runs and self._now_us() - holder["at_us"] < SILENT_S * SECOND_US:
                    raise _alive(holder)
                tell(f"{holder['by']} had limits set here; waiting {SILENT_S} s whether it still does")
                if stop.wait(SILENT_S):
                    return False
                version, again = self._holder()
                if again != holder:
                    raise _alive(holder)
            self._epoch = 1 + (holder["epoch"] if holder else 0)
            if self._tables.append_to("enforced", self._rows([Step("", action=LEASE)]), version):
                return True
        raise ClusterError("others take the lease of this --output again and again; stop all but one")

    def open(self) -> dict[str, Entry]:
        """What was set and not put back, by path."""
        rows = self._tables.select("enforced", _LINES).to_pylist()
        return open_entries(Line(**row) for row in rows)

    def write(self, steps: Sequence[Step]) -> None:
        """Write down what is about to be set, or what was put back."""
        if not self._writes:
            return
        for _ in range(_ATTEMPTS):
            version, holder = self._holder()
            if holder is None or holder["epoch"] != self._epoch:
                raise LeaseLostError(
                    f"{holder and holder['by']} has taken the lease of this --output; this process stops"
                )
            if self._tables.append_to("enforced", self._rows(steps), version):
                return
        raise ClusterError("others write to the table enforced again and again; stop all but one")

    def renew(self) -> None:
        """Say that this process is alive, if it has not lately."""
        if self._now_us() - self._written_us >= RENEWED_US:
            self.write([Step("", action=ALIVE)])

    def end(self) -> None:
        """Give the lease back."""
        self.write([Step("", action=ENDED)])

    def _holder(self) -> tuple[int, Mapping[str, Any] | None]:
        version = self._tables.version("enforced")
        rows = self._tables.select("enforced", _HOLDER).to_pylist()
        return version, next(iter(rows), None)

    def _rows(self, steps: Sequence[Step]) -> pa.Table:
        at_us = max(self._now_us(), self._written_us + 1)
        self._written_us = at_us + len(steps)
        common = {"by": self._name, "epoch": self._epoch}
        rows = [
            {field: getattr(step, field) for field in Step.__slots__} | common | {"at_us": at_us + place}
            for place, step in enumerate(steps)
        ]
        return pa.Table.from_pylist(rows, ENFORCED)


def _alive(holder: Mapping[str, Any]) -> ClusterError:
    return ClusterError(f"{holder['by']} enforces limits with this --output, and is alive; stop it first, or leave it")


__all__ = ["NOT_ENFORCEABLE", "PUSH", "RELEASED", "LeaseLostError", "Ledger", "Step"]
