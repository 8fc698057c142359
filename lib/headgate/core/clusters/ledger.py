"""What a limit was before it was set, so that it can be put back (clusters 3.3)."""

from collections.abc import Iterable
from typing import NamedTuple

PUSH, RELEASED = "push", "released"


class Entry(NamedTuple):
    """A limit that was set. before: what the operator has there, None for no limit. ours: all that was set since.
    last: of that.
    """

    before: str | None
    ours: frozenset[str]
    last: str


class Line(NamedTuple):
    """A line of the ledger, in which limits are text. before and after: of a push; where it is released, unused."""

    path: str
    action: str
    before: str | None
    after: str | None


def open_entries(lines: Iterable[Line]) -> dict[str, Entry]:
    """By path: what was set and not released since. lines: oldest first; of other actions are ignored."""
    found: dict[str, Entry] = {}
    for path, action, before, after in lines:
        if action == RELEASED:
            found.pop(path, None)
        elif action == PUSH and after is not None:
            ours = found[path].ours if path in found else frozenset[str]()
            found[path] = Entry(before, ours | {after}, after)
    return found


def operators(current: str | None, entry: Entry | None) -> str | None:
    """The operator's own limit, None for none, where `current` is in force.

    What is in force is ours only if it is what was set. Anything else the operator has set since, and it stays.
    A push that was broken off between ledger and cluster left what was there. Source: clusters 3.3
    """
    return entry.before if entry is not None and current in entry.ours else current
