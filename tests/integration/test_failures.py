"""What a user reads when a query fails: one line with the cause, one with what to do, no traceback."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import StateError, TableError
from headgate.spark.failures import in_words
from headgate.spark.job import FAILED, WRONG, exit_status

Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def failure_of(spark: SparkSession, folder: Path, step: Step, sink: Callable[[DataFrame, int], None]) -> str:
    """What is told of a query that takes one file through `step`, on a worker, into `sink`, on the driver."""
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("a line\n")
    lines = spark.readStream.format("text").load(str(folder / "in")).mapInArrow(step, "value string")
    query = lines.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint"))
    with pytest.raises(StreamingQueryException) as failed:
        query.trigger(availableNow=True).start().awaitTermination()
    return in_words(failed.value)


def as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


UNLOADED = "x.BError: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error\n\tat a.b(C.java:1)\nCaused by: "
CUT = (
    "",
    ": Stream ended prematurely",
    ": reached end of stream after reading 3 bytes; 4 bytes expected",
    ": Unexpected end of ZLIB input stream",
)
LOG = "Spark's log has more; it is in .cache/logs, or on stderr with `headgate job`."


def told(cause: str) -> list[str]:
    advice = f"The next start on the same checkpoint goes on where the tables stand. {LOG}"
    return [f"the query failed: {cause}", advice]


def test_state_that_a_worker_refuses_is_told_without_a_word_of_going_on(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise StateError("the state has version 9, this headgate reads 1 to 3")

    expected = ["the state has version 9, this headgate reads 1 to 3", LOG]
    assert expected == failure_of(spark, tmp_path, refuse, lambda frame, _id: frame.toArrow()).splitlines()


def test_an_error_while_tables_are_written_is_told_by_its_name_and_message(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(_frame: DataFrame, _batch_id: int) -> None:
        raise TableError("the table marks is gone")

    assert told("TableError: the table marks is gone") == failure_of(spark, tmp_path, as_it_is, refuse).splitlines()


def test_an_error_of_spark_itself_is_told_by_its_last_cause(spark: SparkSession, tmp_path: Path) -> None:
    def divide(frame: DataFrame, _batch_id: int) -> None:
        frame.selectExpr("raise_error(concat('no place for ', value))").toArrow()

    shown = failure_of(spark, tmp_path, as_it_is, divide).splitlines()
    assert "no place for a line" in shown[0]
    assert 2 == len(shown)


@pytest.mark.parametrize(
    ("story", "cause"),
    [
        (
            "ended\n\tat A.b(C.java:1)\nCaused by: java.io.IOException: No space left on device\n\tat D",
            "IOException: No space left on device",
        ),
        (
            "OSError: Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m A\n   \x1b[31m↳\x1b[0m No space left\n\tat A",
            "OSError: Generic LocalFileSystem error: No space left",
        ),
        ("something happened\nand more\n\n=== Streaming Query ===\na.BError: in the plan", "something happened"),
    ],
)
def test_of_a_chain_of_causes_the_last_is_told(story: str, cause: str) -> None:
    assert told(cause) == in_words(StreamingQueryException(message=story)).splitlines()


@pytest.mark.parametrize(
    ("kind", "story", "words"),
    [
        (StreamingQueryException, "ended\nCaused by: java.io.IOException: No space left on device", None),
        (StreamingQueryException, "ended\nheadgate.errors.StateError: the state has version 2\n", "has version 2"),
        (StreamingQueryException, "Caused by: java.lang.IllegalStateException: Incomplete log file 3\n", "is damaged"),
        (
            StreamingQueryException,
            "Caused by: x.IllegalStateException: Failed to read log file file:/a b/offsets/3. Incomplete log file\n",
            "is damaged",
        ),
        (
            StreamingQueryException,
            "x.BError: Failed to read log file c/3. Log file was malformed: failed",
            "is damaged",
        ),
        (StreamingQueryException, "x.BError: [MALFORMED_LOG_FILE] Log file was malformed", "is damaged"),
        *((StreamingQueryException, f"{UNLOADED}java.io.EOFException{text}\n", "ends too early") for text in CUT),
        (StreamingQueryException, f"{UNLOADED}java.io.EOFException: SSL peer shut down incorrectly\n", None),
        (StreamingQueryException, "x.JsonEOFException: Unexpected end-of-input in field name\n", None),
        (StreamingQueryException, "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot", "from a copy"),
        (StreamingQueryException, "x.ChecksumException: Checksum error: file:/c/metadata at 0 exp: 1", "from a copy"),
        (StreamingQueryException, "x.TableError: rows of /checksums/incomplete log file/t cannot be written: x", None),
        (StreamingQueryException, "x.RetryableException: Data read has a different checksum than expected", None),
        (
            StreamingQueryException,
            "x.SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE]\nCaused by: a.BError: C",
            "from a copy",
        ),
        (
            StreamingQueryException,
            "x.SparkException: [CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED]",
            "from a copy",
        ),
        (StreamingQueryException, "x.BError: [CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE] Copied", "from a copy"),
        (StreamingQueryException, "x.BError: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT] C", "from a copy"),
        (StreamingQueryException, "x.BError: [CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT] Cannot", "from a copy"),
        (StreamingQueryException, "x.BError: [INVALID_CHANGE_LOG_READER_VERSION] The", "from a copy"),
        (PySparkException, "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location", "from a copy"),
        (StreamingQueryException, "[STREAMING_UNFINISHED_REPARTITION_DETECTED] 6 is", "with the same --partitions"),
    ],
)
def test_what_no_other_start_gets_over_is_a_refusal(
    kind: type[PySparkException], story: str, words: str | None
) -> None:
    failure = kind(message=story)

    def fail() -> int:
        raise failure

    assert (WRONG if words else FAILED) == exit_status("job", fail)
    assert (words or "goes on where the tables stand") in in_words(failure)


def test_what_spark_cannot_begin_ends_with_status_1_and_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise PySparkException(message='No FileSystem for scheme "nofs"')

    assert exit_status("job", fail) == FAILED
    told = [
        'job: Spark cannot run the job: No FileSystem for scheme "nofs"',
        "Spark's log has more; it is in .cache/logs, or on stderr with `headgate job`.",
    ]
    assert told == capsys.readouterr().err.splitlines()
