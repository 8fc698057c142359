"""What to tell of Spark's failures: the cause in one line. All of it, some hundred lines, is in Spark's log."""

import re

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException

from headgate.store_errors import said

_WORKER_DIED = "Python worker exited unexpectedly"
_DAMAGED = (
    "MISSING_STATE_DIRECTORY",
    "MISSING_METADATA_FILE",
    "CHECKSUM_VERIFICATION_FAILED",
    "UNEXPECTED_FILE_SIZE",
    "CANNOT_READ_STREAMING_STATE_FILE",
    "CANNOT_READ_CHECKPOINT",
    "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
    "INVALID_CHANGE_LOG_READER_VERSION",
    "MALFORMED_LOG_FILE",
)
_CUT_STATE = re.compile(
    r"\[CANNOT_LOAD_STATE_STORE\..*^Caused by: java\.io\.EOFException"
    r"(?:: (?:Stream ended prematurely|reached end of stream after [^\n]*|Unexpected end of ZLIB[^\n]*))?$",
    re.MULTILINE | re.DOTALL,
)
"""What Spark says of a file of the state that is cut and has no checksum of Hadoop's, such as one on a store. Ends of
connections have other words.
"""
_OF_CUT_STATE = "a file of the state ends too early"
_DAMAGE = re.compile(
    r"^(?:\w+: )?(?:Checksum error: |(?:Failed to read log file .*)?(?:Incomplete log file|Log file was malformed)|"
    rf"\[[\w.]*(?:{'|'.join(_DAMAGED)})\])"
)
"""Of a file of the checkpoint, which stays as it is: what was damaged on its way is read again by the next start."""
_OF_GOING_ON = "The next start on the same checkpoint goes on where the tables stand."
_LOG = "Spark's log has more; it is in .cache/logs, or on stderr with `headgate job`."
_OF_DAMAGE = (
    "A file is damaged or missing, and no start goes on until it is put back from a copy. If it is of the checkpoint "
    "and there is none, start with a new --output and --checkpoint, and read the input again."
)
_STATE = "StateError: "
SPLIT_BROKEN_OFF = re.compile("UNFINISHED_REPARTITION|ABANDONED_REPARTITION")
_OF_SPLIT = (
    "jobs/state.py was splitting the state and was broken off: repeat it with the same --partitions, then start the "
    "job."
)
_NAMED = re.compile(
    r"^(?:Caused by: |: )?(?:[\w$]+\.)*([\w$]+(?:Error|Exception)): (?!Traceback)(.*\S(?:\n[ \x1b\[31m]*↳.*)*)",
    re.MULTILINE,
)
"""With the lines in which delta-rs goes on: the last of them is the cause."""
_QUERY = "=== Streaming Query ==="

_INTERRUPT = re.compile(r"\bjava\.(?:\w+\.)*(?:ClosedByInterrupt|Interrupted|InterruptedIO)Exception\b")

SPARK_ERRORS = (PySparkException, Py4JError)


def in_words(failure: Exception) -> str:
    """The cause of one of SPARK_ERRORS, and what to do. Of a query's errors the last, or one that tells of damage."""
    cause = _cause(failure)
    if (refusal := _refusal(cause)) is not None:
        return refusal + _LOG
    if isinstance(failure, StreamingQueryException):
        return f"the query failed: {cause}\n{_OF_GOING_ON} {_LOG}"
    return f"Spark cannot run the job: {cause}\n{_LOG}"


def is_refused(failure: Exception) -> bool:
    """Whether the cause is one that no other start gets over by itself: state of another version, a split half done, a
    damaged file.
    """
    return _refusal(_cause(failure)) is not None


def _refusal(cause: str) -> str | None:
    """What is told of it before where the log is; None: another start may do."""
    if cause.startswith(_STATE):
        return f"{cause.removeprefix(_STATE)}\n"
    if SPLIT_BROKEN_OFF.search(cause):
        return f"{cause}\n{_OF_SPLIT} "
    is_damage = cause == _OF_CUT_STATE or _DAMAGE.search(cause)
    return f"the query failed: {cause}\n{_OF_DAMAGE} " if is_damage else None


def _cause(failure: Exception) -> str:
    if not isinstance(failure, StreamingQueryException):
        return first_line(failure)
    story = str(failure).partition(_QUERY)[0]
    if _WORKER_DIED in story:
        return "a Python worker of Spark was killed, by somebody or for want of memory"
    if _CUT_STATE.search(story):
        return _OF_CUT_STATE
    named = [f"{name}: {_in_one_line(text)}" for name, text in _NAMED.findall(story)]
    if named:
        return next(filter(_DAMAGE.search, named), named[-1])
    return story.strip().partition("\n")[0]


def _in_one_line(text: str) -> str:
    return said(OSError(text)) if "\n" in text else text


def is_interrupt(error: Exception) -> bool:
    """Whether one of SPARK_ERRORS comes from a stop of the query, and tells nothing of what was being read."""
    return _INTERRUPT.search(str(error)) is not None


def first_line(error: Exception) -> str:
    """What is wrong, in one line: of an error of Java, its first cause."""
    if not isinstance(error, Py4JJavaError):
        return (str(error).splitlines() or [type(error).__name__])[0]
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.toString()).splitlines()[0]
