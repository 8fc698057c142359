"""What a limit was before it was set, so that it can be put back (clusters 3.3)."""

from collections.abc import Iterable
from typing import NamedTuple

PUSH, RELEASED = "push", "released"


class Entry(NamedTuple):
    """A limit that was set. before: what the operator has there, None for no limit.

    ours: what was set since, and may be there. last: of that.
    """

    before: str | None
    ours: frozenset[str]
    last: str


def pushed(entry: Entry | None, before: str | None, after: str, found: str | None) -> Entry:
    """The entry once `after` is to be set as well.

    found: what was there before that; None where an earlier change may still come. Once one of ours was found there,
    those before it are ours no more: the operator may set the same again.
    """
    ours = frozenset[str]() if entry is None else entry.ours
    if found is not None and found in ours:
        ours = frozenset({found})
    return Entry(before, ours | {after}, after)


class Line(NamedTuple):
    """A line of the ledger, in which limits are text. before, after and found: of a push, as `pushed` takes them."""

    path: str
    action: str
    before: str | None
    after: str | None
    found: str | None = None


def open_entries(lines: Iterable[Line]) -> dict[str, Entry]:
    """By path: what was set and not released since. lines: oldest first; of other actions are ignored."""
    found: dict[str, Entry] = {}
    for path, action, before, after, was_found in lines:
        if action == RELEASED:
            found.pop(path, None)
        elif action == PUSH and after is not None:
            found[path] = pushed(found.get(path), before, after, was_found)
    return found


def operators(current: str | None, entry: Entry | None) -> str | None:
    """The operator's own limit, None for none, where `current` is in force.

    What is in force is ours only if it is what was set. Anything else the operator has set since, and it stays.
    A push that was broken off between ledger and cluster left what was there. Source: clusters 3.3
    """
    return entry.before if entry is not None and current in entry.ours else current
