"""Sets limits of a running cluster, and puts them back (clusters 3.3)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from headgate.cluster.ledger import PUSH, RELEASED, Ledger, Step
from headgate.cluster.limits import Limits
from headgate.core.clusters.ledger import operators, pushed
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError

_MOST_AT_ONCE = 16
_SERVER_ERROR = 500
T = TypeVar("T")
Failed = dict[str, str]
"""Why, by path."""


class Pushing:
    """Each limit is in the ledger before it is set, and until it is put back.

    What the operator set is never exceeded, and is put back as it was, or as it was changed to meanwhile. Raises
    TableError, and ClusterError where somebody else has the lease; why a single limit cannot be set is returned.

    writes: how many limits were set.
    """

    def __init__(self, limits: Limits, ledger: Ledger) -> None:
        self._limits, self._ledger = limits, ledger
        self._open = ledger.open()
        self._unanswered: set[str] = set()
        self.writes = 0
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE)

    @property
    def open(self) -> Sequence[str]:
        """Where limits are that were not put back."""
        return list(self._open)

    def in_force(self, paths: Sequence[str]) -> list[Limit]:
        """What was set last in those of the places where it was not put back."""
        last = {path: self._open[path].last for path in paths if path in self._open}
        return [self._limits.limit(path, value) for path, value in last.items()]

    def push(self, step: Step, paths: Sequence[str], limit: Limit, *, again: bool = False) -> Failed:
        """Set a limit in all these places. again: also where it is already. step: what the ledger says of it.

        Where the operator's own limits enough, that is put back.
        """
        read: dict[str, str | None] = {}
        wider_of = {path: self._limits.wider_path(path) for path in paths}
        wider, unread = self._each(self._operators, sorted({path for path in wider_of.values() if path is not None}))

        def planned(path: str) -> Step | None:
            current = read[path] = self._limits.read(path)
            before = operators(current, self._open.get(path))
            where = wider_of[path]
            if where in unread:
                raise ClusterError(unread[where])
            after = self._limits.lowered(path, before, None if where is None else wider[where], limit)
            if after == current:
                self._unanswered.discard(path)
            is_due = after != current or (again and after is not None)
            found = None if path in self._unanswered else current
            return replace(step, path=path, action=PUSH, before=before, after=after, found=found) if is_due else None

        found, failed = self._each(planned, paths)
        due = [one for one in found.values() if one is not None]
        failed |= self.release(step, [one.path for one in due if one.after == one.before])
        steps = [one for one in due if one.after != one.before]
        if steps:
            self._ledger.write(steps)
            for one in steps:
                self._open[one.path] = pushed(self._open.get(one.path), one.before, str(one.after), one.found)
            values = {one.path: one.after for one in steps}
            done, refused = self._each(lambda path: self._set(path, read[path], values[path]), list(values))
            self.writes += len(done)
            failed |= refused
        return failed

    def release(self, step: Step, paths: Sequence[str]) -> Failed:
        """Put back what was there before in these places; what the operator has set since stays."""

        def put_back(path: str) -> None:
            entry = self._open[path]
            current = self._limits.read(path)
            before = operators(current, entry)
            if before != current:
                self._limits.write(path, before)
            is_settled = path not in self._unanswered or current == entry.last
            self._unanswered.discard(path)
            if not is_settled:
                raise ClusterError("an earlier change was not answered, and may still come")

        done, failed = self._each(put_back, [path for path in paths if path in self._open])
        if done:
            self._ledger.write([replace(step, path=path, action=RELEASED) for path in done])
            for path in done:
                del self._open[path]
        return failed

    def note(self, steps: Sequence[Step]) -> None:
        """Write down what sets nothing."""
        self._ledger.write(steps)

    def _operators(self, path: str) -> str | None:
        """The operator's own limit there; None for none."""
        return operators(self._limits.read(path), self._open.get(path))

    def _set(self, path: str, current: str | None, value: str | None) -> None:
        """What is not answered may reach the cluster later, even after it was put back.

        current: what was there when it was decided; the operator may have changed it since.
        """
        if self._limits.read(path) != current:
            raise ClusterError("it was changed meanwhile, and is looked at again")
        try:
            self._limits.write(path, value)
        except ClusterError as error:
            if error.status is None or error.status >= _SERVER_ERROR:
                self._unanswered.add(path)
            raise
        self._unanswered.discard(path)

    def _each(self, of: Callable[[str], T], paths: Sequence[str]) -> tuple[dict[str, T], Failed]:
        """What came of it in each place, and why it failed in the others. Nothing is tried without the lease."""
        failed: Failed = {}

        def tried(path: str) -> tuple[str, T] | None:
            try:
                return path, of(path)
            except ClusterError as error:
                failed[path] = str(error)
                return None

        done: dict[str, T] = {}
        for first in range(0, len(paths), _MOST_AT_ONCE):
            self._ledger.renew()
            done.update(filter(None, self._threads.map(tried, paths[first : first + _MOST_AT_ONCE])))
        return done, failed
