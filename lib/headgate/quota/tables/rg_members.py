"""rg_members: who is a broker, in which life, and whether it is up (resource-groups 5.3)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from headgate.arrow.schemas import table_of
from headgate.core.quota.rates import WEIGHT_MAX
from headgate.core.quota.usage.usage_map import Member
from headgate.core.quota.usage.usage_row import is_count
from headgate.errors import TableError
from headgate.quota.tables.delta import COMMIT_RETRIES, wrong_row
from headgate.quota.tables.schemas import MEMBERS


class MemberState(StrEnum):
    """What a broker is: it takes part, nobody hears of it any more, it shut down."""

    UP = "up"
    LOST = "lost"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """The newest row of a broker. incarnation: wall clock when this life began, ms. weight: 1 to 1000."""

    broker_id: int
    name: str
    incarnation: int
    weight: int
    state: str
    version: int


class RowTable(Protocol):
    """Rows of a table, appended only by whoever has seen all before them (delta.Table)."""

    @property
    def location(self) -> str: ...
    def refresh(self) -> int: ...
    def select(self) -> pa.Table: ...
    def append_pinned(self, rows: pa.Table) -> bool: ...


class MemberTable:
    """Brokers by id, each with its newest row; the id of a name never changes. Any number of writers at once.

    Raises TableError where the table cannot be read or written.
    """

    def __init__(self, table: RowTable) -> None:
        self._table = table
        self._read: tuple[int, dict[int, MemberRow]] = (-1, {})

    def read(self) -> dict[int, MemberRow]:
        """The brokers as of now; the same object as before if nobody wrote."""
        version = self._table.refresh()
        if version != self._read[0]:
            self._read = version, newest_rows(self._table)
        return self._read[1]

    def join(self, weights: Mapping[str, int], incarnation_ms: int) -> dict[str, MemberRow]:
        """Begin a life of each of these brokers, before its first usage row; the rows by name.

        A name that is new gets the next id, from 0. A life that would not be newer than the last one, by a clock that
        went back, begins 1 ms after it. weights: 1 to 1000, by the broker's name.
        """

        def joined(known: Mapping[int, MemberRow], version: int) -> list[MemberRow]:
            by_name = {row.name: row for row in known.values()}
            next_id = max(known, default=-1) + 1
            rows = []
            for name, weight in sorted(weights.items()):
                before = by_name.get(name)
                broker_id = next_id if before is None else before.broker_id
                next_id += before is None
                incarnation = incarnation_ms if before is None else max(incarnation_ms, before.incarnation + 1)
                rows.append(MemberRow(broker_id, name, incarnation, weight, MemberState.UP, version))
            return rows

        return {row.name: row for row in self._write(joined)}

    def leave(self, lives: Mapping[int, int]) -> None:
        """These brokers shut down. lives: incarnation by id; a broker that began another life since is left alone."""
        self._end(lives, MemberState.LEFT)

    def lose(self, lives: Mapping[int, int]) -> list[str]:
        """These brokers are heard of no more, as `leave`; the names of those that were up until now."""
        return [row.name for row in self._end(lives, MemberState.LOST)]

    def _end(self, lives: Mapping[int, int], state: MemberState) -> list[MemberRow]:
        def ended(known: Mapping[int, MemberRow], version: int) -> list[MemberRow]:
            rows = (known[broker_id] for broker_id in sorted(_in_life(known, lives)))
            return [replace(row, state=state, version=version) for row in rows]

        return self._write(ended)

    def _write(self, change: Callable[[Mapping[int, MemberRow], int], list[MemberRow]]) -> list[MemberRow]:
        """Append what `change` makes of the brokers and the next version, again as long as others come before."""
        for _ in range(COMMIT_RETRIES):
            known = self.read()
            rows = change(known, max((row.version for row in known.values()), default=0) + 1)
            if not rows or self._table.append_pinned(table_of(map(astuple, rows), MEMBERS)):
                return rows
        raise TableError(f"the table {self._table.location} cannot be written: others always came before; try again")


def newest_rows(table: RowTable) -> dict[int, MemberRow]:
    """The newest row of each broker in a table as it was loaded. Raises TableError where it cannot be read."""
    rows = [_checked(MemberRow(**row)) for row in table.select().to_pylist()]
    return {row.broker_id: row for row in sorted(rows, key=lambda row: row.version)}


def _checked(row: MemberRow) -> MemberRow:
    """The row, if a writer of headgate's could have made it: people may edit the table."""
    allowed: dict[str, tuple[bool, str]] = {
        "broker_id": (is_count(row.broker_id), "0 and above"),
        "name": (isinstance(row.name, str), "a name"),
        "incarnation": (is_count(row.incarnation), "0 and above"),
        "weight": (is_count(row.weight) and 1 <= row.weight <= WEIGHT_MAX, f"1 to {WEIGHT_MAX}"),
        "state": (row.state in set(MemberState), ", ".join(MemberState)),
        "version": (is_count(row.version), "0 and above"),
    }
    wrong = [
        f"{column} {getattr(row, column)!r}, allowed: {what}" for column, (holds, what) in allowed.items() if not holds
    ]
    if wrong:
        raise TableError(wrong_row("rg_members", f"the broker {row.name!r}", row.version, wrong))
    return row


def members_up(rows: Mapping[int, MemberRow]) -> dict[int, Member]:
    """C, the brokers that are up, for `UsageMap.set_members`."""
    return {
        broker_id: Member(row.incarnation, row.weight) for broker_id, row in rows.items() if row.state == MemberState.UP
    }


def _in_life(known: Mapping[int, MemberRow], lives: Mapping[int, int]) -> Collection[int]:
    return {
        broker_id
        for broker_id, incarnation in lives.items()
        if broker_id in known
        and known[broker_id].incarnation == incarnation
        and known[broker_id].state == MemberState.UP
    }
