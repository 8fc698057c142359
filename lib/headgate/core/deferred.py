"""Time of an object that several events reach: it never runs backwards, and due work runs first (rate-limiters 3.1)."""

from collections.abc import Sequence
from typing import Protocol

from headgate.core.numbers import MAX, int64


class DeferredWork(Protocol):
    """Something with at most one piece of work waiting for an instant."""

    def due_ns(self) -> int | None:
        """The instant the work is due, None without work; MAX stands for never."""

    def run_due(self, at_ns: int) -> None:
        """Do the work that is due at `at_ns`. What it leaves to do is due later than `at_ns`."""


def enter(now_ns: int, high_ns: int) -> int:
    """The instant at which an operation at `now_ns` acts: the highest seen, so a late one is never an error.

    Raises InvalidArgument only where `now_ns` is no integer of 64 bits.
    """
    return max(int64(now_ns, "now_ns"), high_ns)


def run_all_due(owners: Sequence[DeferredWork], until_ns: int) -> None:
    """Run all work due at or before `until_ns`, in the order (due time, position of its owner in `owners`).

    Each piece runs at its own due time; work created on the way that is due by then runs too.
    """
    while owners:
        due_ns, position = min((_due_or_never(owner), position) for position, owner in enumerate(owners))
        if due_ns > until_ns or due_ns == MAX:
            return
        owners[position].run_due(due_ns)


def _due_or_never(owner: DeferredWork) -> int:
    due_ns = owner.due_ns()
    return MAX if due_ns is None else due_ns
