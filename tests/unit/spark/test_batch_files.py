"""What is told of input files that cannot be read. No JVM."""

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from headgate.spark.input import batch_files
from headgate.spark.input.batch_files import PlannedFiles, Taken


class Lines:
    """Of no file can lines be counted."""

    def __init__(self, error):
        self._error = error

    def count(self, _path):
        raise self._error

    def is_compressed(self, _path):
        return True


class Relation:
    """As long as what was taken of it."""

    def location(self):
        return self

    def sizeInBytes(self):  # noqa: N802  Spark's name
        return 0


@pytest.mark.parametrize("name", ["_of_parquet", "_of_text"])
def test_a_file_that_a_stop_kept_from_being_read_is_not_lost(name, monkeypatch):
    """The batch is run again; what cannot be read for another reason is told of."""

    def losses(words):
        error = Py4JError(words)
        monkeypatch.setattr(batch_files, "parquet_rows", lambda *_: (_ for _ in ()).throw(error))
        monkeypatch.setattr(batch_files, "text_lines", lambda _: Lines(error))
        return list(getattr(batch_files, name)(None, PlannedFiles(Relation(), ["a"]), Taken({}, 0)))

    with pytest.raises(Py4JError):
        losses("An error occurred.\n: java.nio.channels.ClosedByInterruptException\n\tat a.b")
    with pytest.raises(Py4JError):
        losses("Lost task 0.0 (TID 1) (h executor driver): java.io.InterruptedIOException: getFileStatus on s3a://b/a")
    (loss,) = losses("java.io.EOFException: the end of /InterruptedException.json\n")
    assert ("a", "java.io.EOFException: the end of /InterruptedException.json") == (loss.path, loss.why)
