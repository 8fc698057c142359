"""What a reader keeps of one broker's usage of one group and class: its newest rows by epoch (resource-groups 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headgate.core.quota.usage.usage import Usage
from headgate.core.state import PlainData, check_fields


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """A row that the map accepted: values in range, offered not below admitted."""

    epoch: int
    seq: int
    usage: Usage

    def plain(self) -> list[Any]:
        """The row as plain data, which `of_plain` takes."""
        return [self.epoch, self.seq, self.usage.plain()]

    @classmethod
    def of_plain(cls, values: list[Any]) -> Self:
        """The row that `plain` wrote."""
        epoch, seq, usage = values
        return cls(epoch, seq, Usage.of_plain(usage))


@dataclass(frozen=True, slots=True)
class EpochRow:
    """The row of an epoch with the largest seq, and since when the broker has been idle with it.

    idle_since: of an idle row, the epoch of the first idle row after the newest one that is not; None where the row is
    not idle, and where no earlier row is known that was not.
    was_busy: some row of the epoch was not idle.
    """

    row: AcceptedRow
    idle_since: int | None
    was_busy: bool


class UsageHistory:
    """As of any kept epoch: the row with the largest epoch up to it, the largest seq within it. Rows come by seq.

    `last_seq` outlives the rows, so that none of them is accepted again after a removal. `current` is the newest row,
    None where there is none, it is idle, or it was removed.
    """

    __slots__ = ("_rows", "current", "last_seq")

    def __init__(self) -> None:
        self.last_seq: int | None = None
        self.current: AcceptedRow | None = None
        self._rows: list[EpochRow] = []  # by epoch, each once

    def accept(self, row: AcceptedRow, *, current_epoch: int, kept_epochs: int) -> None:
        """Take a row whose seq is above `last_seq`; forget what only epochs need that are older than `kept_epochs`.

        Age is counted from the reader's epoch, or from the newest row's where that is older.
        """
        self.last_seq = row.seq
        self.current = None if row.usage.idle else row
        newest = max(row.epoch, self._rows[-1].row.epoch) if self._rows else row.epoch
        keep_from_epoch = min(current_epoch, newest) - kept_epochs
        if self._rows and row.epoch < self._rows[0].row.epoch <= keep_from_epoch:
            return
        self._insert(row)
        while len(self._rows) > 1 and self._rows[1].row.epoch <= keep_from_epoch:
            del self._rows[0]

    def as_of(self, epoch: int) -> EpochRow | None:
        """The row with the largest epoch <= `epoch`, None without any."""
        return next((entry for entry in reversed(self._rows) if entry.row.epoch <= epoch), None)

    def remove(self) -> None:
        """Forget rows, not `last_seq`."""
        self.current = None
        self._rows = []

    def leave(self, seq: int) -> None:
        """The broker left with this seq: rows are gone, and earlier ones that come later count as reordered."""
        self.remove()
        self.last_seq = seq

    def _insert(self, row: AcceptedRow) -> None:
        """Put the row in its place by epoch; what later ones say of idleness may change with it."""
        if not self._rows or self._rows[-1].row.epoch < row.epoch:
            self._append(row, was_busy=not row.usage.idle)
            return
        if self._rows[-1].row.epoch == row.epoch:
            was_busy = self._rows.pop().was_busy or not row.usage.idle
            self._append(row, was_busy=was_busy)
            return
        same = [entry for entry in self._rows if entry.row.epoch == row.epoch]
        later = [entry for entry in self._rows if entry.row.epoch > row.epoch]
        self._rows = [entry for entry in self._rows if entry.row.epoch < row.epoch]
        was_busy = not row.usage.idle or any(entry.was_busy for entry in same)
        self._append(row, was_busy=was_busy)
        for entry in later:
            self._append(entry.row, was_busy=entry.was_busy)

    def _append(self, row: AcceptedRow, *, was_busy: bool) -> None:
        idle_since: int | None = None
        if row.usage.idle:
            before = self._rows[-1] if self._rows else None
            if was_busy or (before is not None and not before.row.usage.idle):
                idle_since = row.epoch
            elif before is not None:
                idle_since = before.idle_since
        self._rows.append(EpochRow(row, idle_since, was_busy))

    def state(self) -> PlainData:
        """Everything kept, as plain data, a copy."""
        return {
            "last_seq": self.last_seq,
            "current": None if self.current is None else self.current.plain(),
            "rows": [[entry.row.plain(), entry.idle_since, entry.was_busy] for entry in self._rows],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild what `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, ("last_seq", "current", "rows"))
        history = cls()
        history.last_seq = state["last_seq"]
        history.current = None if state["current"] is None else AcceptedRow.of_plain(state["current"])
        history._rows = [
            EpochRow(AcceptedRow.of_plain(row), idle_since, was_busy) for row, idle_since, was_busy in state["rows"]
        ]
        return history
