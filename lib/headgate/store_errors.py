"""What libraries say of object stores and disks: whether one is away or full, what was answered, and what to do."""

import errno
import re
from collections.abc import Callable

from headgate.errors import AwayError, HeadgateError, InputError, TableError, TransientError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ANSWER = re.compile(r"<Code>(\w+)</Code>\s*(?:<Message>([^<]*)</Message>)?", re.DOTALL)
_OF_STORE = re.compile(r"AWS Error|Generic (?!LocalFileSystem)\w+ error|Error performing [A-Z]+ https?:")
_NAMES = re.compile(r"https?://\S+|\bfile \S+|\b(?:key|bucket) '[^']*'|<(?:\?xml|Error)\b.*", re.DOTALL)
"""What an error quotes: places, which may be called anything, and the answer, whose status stands before it."""
_AWAY = re.compile(
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|HTTP status 50[0234]|"
    r"connection refused|error sending request|timed out|\btimeout\b|(?:^\W*|status code: )50[0234]\b",
    re.IGNORECASE | re.MULTILINE,
)
_OF_DISK = re.compile(
    "No space left on device|Disk quota exceeded|Read-only file system|No usable temporary directory found"
)
_ERRNOS_OF_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_NO_RIGHT_TO_WRITE = re.compile(r"Error performing (?:PUT|POST|DELETE) .*<Code>AccessDenied</Code>", re.DOTALL)
_NO_SUCH_KEY = "<Code>NoSuchKey</Code>"
"""The store is there, and a file of what was looked at is not."""
_PREFIX = "Generic "
"""With which delta-rs begins what it says of a store or a disk, on a line that says no more."""
_REMEDY = (
    "check the address, the store's endpoint and the credentials in the environment, profile or role (docs/deploy.md, "
    '"Object stores")'
)


def unreached(what: str, error: Exception) -> InputError:
    """What to raise from an error of a library: AwayError where it says that a store does not answer."""
    kind = AwayError if is_away(error) else InputError
    return kind(f"{what} cannot be reached: {said(error)}; {_REMEDY}")


def unreadable(place: str, error: Exception) -> TableError:
    """What to raise where a table cannot be read."""
    otherwise = (
        "it may be damaged, or of another version of headgate; see to it that its files are there and can be read"
    )
    return TableError(f"the table {place} cannot be read: {said(error)}; {remedy(error, otherwise)}")


def is_away(error: BaseException) -> bool:
    """Whether an error, or that of a library which it was raised from, says that a store does not answer: a connection
    is refused, times out, or brings an error of the store's own.
    """
    return _is(error, AwayError, _says_away)


def is_transient(error: BaseException) -> bool:
    """Whether a later start may do with nothing else changed: a store is away, or a disk full or read-only."""
    return _is(error, TransientError, lambda cause: _says_away(cause) or is_of_disk(cause))


def _is(error: BaseException, kind: type[HeadgateError], says: Callable[[BaseException], bool]) -> bool:
    """Of headgate's own errors the kind counts, or what it was raised from; of a library's what it says."""
    if not isinstance(error, HeadgateError):
        return says(error)
    cause = error.__cause__
    return isinstance(error, kind) or (cause is not None and _is(cause, kind, says))


def _says_away(error: BaseException) -> bool:
    return _is_of_store(error) and bool(_AWAY.search(_NAMES.sub("", _COLOURS.sub("", str(error)))))


def is_of_disk(error: BaseException) -> bool:
    """Whether an error of a library says that a disk is full or read-only."""
    return getattr(error, "errno", None) in _ERRNOS_OF_DISK or bool(_OF_DISK.search(str(error)))


def _is_of_store(error: BaseException) -> bool:
    return bool(_OF_STORE.search(str(error)))


def transient_line(error: OSError) -> str:
    """What to tell of a transient error of a library that no error of headgate's tells of."""
    what = "output or a temporary file cannot be written" if is_of_disk(error) else "an object store does not answer"
    return f"{what}: {said(error)}; {remedy(error, '')}"


def remedy(error: BaseException, otherwise: str) -> str:
    """What to do about an error of a library where a store or a disk is its cause, else `otherwise`."""
    if is_of_disk(error):
        return "make space on the disk, or make it writable"
    if not _is_of_store(error) or _NO_SUCH_KEY in str(error):
        return otherwise
    return "grant these credentials the right to write there" if _NO_RIGHT_TO_WRITE.search(str(error)) else _REMEDY


def said(error: BaseException) -> str:
    """What an error of a library says in one line, without a full stop; of a store what it answered.

    What a store quotes of a request, signatures and names of keys, is left out.
    """
    text = _COLOURS.sub("", str(error))
    if answer := _ANSWER.search(text):
        words = " ".join((answer[2] or "").replace("↳", " ").split()).rstrip(".")
        return f"the store answered {answer[1]}" + f": {words}" * bool(words)
    lines = [line.strip(" ↳|") for line in text.splitlines() if line.strip(" ↳|")] or [type(error).__name__]
    has_cause_last = len(lines) > 1 and (_PREFIX in lines[0] or _OF_DISK.search(lines[-1]))
    line = ": ".join(dict.fromkeys([lines[0], lines[-1]])) if has_cause_last else lines[0]
    return line.rstrip(".:")
