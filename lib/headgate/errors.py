"""Every error that headgate raises on purpose, in one tree.

A message says what is wrong, where, what was got, what is allowed and what to do about it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class HeadgateError(Exception):
    """Root of the tree: raised by headgate, never by a bug. The command line prints its message without a traceback."""


class Mistakes:
    """What several checks found wrong, to be told together."""

    def __init__(self) -> None:
        self._found: list[HeadgateError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """An error that headgate raises in the block is kept, and the block ends there; AwayError is raised at once."""
        try:
            yield
        except AwayError:  # nobody can tell what else is wrong
            raise
        except HeadgateError as error:
            self._found.append(error)

    def raise_all(self) -> None:
        """Raise HeadgateError with everything that was kept, conf under one heading; a single error as it is, since its
        type may decide the exit status.
        """
        of_conf = [error for error in self._found if isinstance(error, ConfError)]
        told: list[HeadgateError] = [error for error in self._found if not isinstance(error, ConfError)]
        if of_conf:
            mistakes = [mistake for error in of_conf for mistake in error.mistakes]
            told.insert(0, ConfError(mistakes, [warning for error in of_conf for warning in error.warnings]))
        if len(told) == 1:
            raise told[0]
        if told:
            raise HeadgateError("\n".join(map(str, told)))


class CoreError(HeadgateError):
    """A refused operation of the pure core. The call has changed no limiter state."""

    code: str


class InvalidArgument(CoreError):
    """An argument outside its range, an unknown name, type or operation (rate-limiters.md 1)."""

    code = "invalid_argument"


class BadAllocation(InvalidArgument):
    """An allocation that was refused as a whole. `code` is the spec's name of the mistake (resource-groups.md 16)."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"{code}: {message}")


class WireError(CoreError):
    """Bytes that are no message of the protocol, or not all of one. `code` is the spec's name (throttle-protocol 5)."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"{code}: {message}")


class BadArgument(CoreError):
    """A size pass that is asked to free nothing (entry-cache.md 6)."""

    code = "bad_argument"


class Closed(CoreError):
    """An operation on a classic window that was closed (rate-limiters.md 7)."""

    code = "closed"


class ConfError(HeadgateError):
    """One or more mistakes in conf files; all of them are reported at once.

    `mistakes` holds one finished line each: file, line or key, what was got, what is allowed. `warnings` are lines
    about what may be one.
    """

    def __init__(self, mistakes: Sequence[str], warnings: Sequence[str] = ()) -> None:
        self.mistakes, self.warnings = tuple(mistakes), tuple(warnings)
        count = len(self.mistakes)
        heading = f"{count} mistake{'s' if count != 1 else ''} in the configuration:"
        lines = [f"  {mistake}" for mistake in self.mistakes] + [f"warning: {warning}" for warning in self.warnings]
        super().__init__("\n".join([heading, *lines]))


class InputError(HeadgateError):
    """The input as a whole cannot be read (missing path, unknown format). Single bad rows are dead letters instead."""


class TransientError(InputError):
    """Nothing is wrong with what was asked for: the same start does once a disk has space, or a store answers."""


class AwayError(TransientError):
    """An object store does not answer: what was asked of it may be right."""


class StateError(HeadgateError):
    """A checkpoint cannot be used: its state is of another version or other settings, or another job has it."""


class TableError(HeadgateError):
    """A table is missing, is not what headgate wrote, or cannot be read or written; or a query of it is refused."""


class NotFoundError(TableError):
    """The tables have nothing of the name or the time that was asked about."""


class EndpointError(HeadgateError):
    """The endpoint of a job's metrics, or the port of the gate, cannot be opened where it should be."""


class ClusterError(HeadgateError):
    """A running cluster does not answer, refuses, or is not what cluster.toml says; `status` is that of the answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class AdminError(HeadgateError):
    """A change of resource groups was refused and nothing changed; `status` is that of the admin API."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class PageError(HeadgateError):
    """A view of the page has nothing to show, or is asked for what is not there; `status` is that of the answer."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class ConformanceError(HeadgateError):
    """A vector file cannot be replayed: unreadable, unknown format number or unknown kind."""
