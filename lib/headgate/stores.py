"""Places on disks and on object stores: the one part that knows what Spark, delta-rs and pyarrow want of them.

A place is a path, or an address: s3a://BUCKET/KEY, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, gs://BUCKET/KEY.
delta-rs and Spark take these as they are. Who may read and write is found as the libraries of each store do: in the
environment, profiles and roles of machines. headgate reads no credentials, and keeps none.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from unicodedata import category
from urllib.parse import unquote

from headgate.errors import InputError
from headgate.store_errors import unreached

if TYPE_CHECKING:
    import pyarrow.fs as pafs

SCHEMES = ("s3a", "abfss", "gs")
ENDPOINT, ALLOW_HTTP = "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CONNECT_S = 5
_ANSWER_LOST = "Failed to flush response stream"
"""What pyarrow says where a store answers with an error that is longer than the bytes that were asked for. It does not
send such a request again, whatever the error was.
"""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0

T = TypeVar("T")


class Patience(NamedTuple):
    """How long a store is waited for. attempts: of a request, before S3 counts as failed. answer_s: for each one.
    transfer_s: for each one of delta-rs with all that it brings or takes.
    """

    attempts: int
    answer_s: int
    transfer_s: int = 30

    @property
    def of_delta(self) -> dict[str, str]:
        """The same as storage options of delta-rs."""
        return {
            "max_retries": str(self.attempts - 1),
            "retry_timeout": f"{self.attempts * self.answer_s}s",
            "timeout": f"{self.transfer_s}s",
        }


PATIENT, AT_FIRST = Patience(10, 60), Patience(3, 20)
BRIEF = Patience(3, 3)
"""For somebody who waits for a page, and for what is tried again soon."""
BRIEF_IF_SMALL = BRIEF._replace(transfer_s=BRIEF.attempts * BRIEF.answer_s)
"""For somebody who waits for a table of some KiB."""

_OF_OTHERS = {
    "s3": "s3a",
    "s3n": "s3a",
    "gcs": "gs",
    "abfs": "abfss",
    "wasbs": "abfss",
    "az": "abfss",
    "azure": "abfss",
}
_READ = ("--input", "PATH")
"""Options with what Spark and pyarrow read: to them % is a character, and Spark has patterns with ?."""
_MISREAD = (re.compile("%[0-9A-Fa-f]{2}|[#?]"), "#, ? and % before two hexadecimal digits")
_MISREAD_IN_INPUT = (re.compile("#"), "#")
"""What delta-rs takes for another character, or for the end of the path: it would write and read elsewhere."""


def local_path(place: str) -> Path | None:
    """The folder on this machine, None for one elsewhere."""
    local = without_file(place)
    return None if scheme_of(local) else Path(os.path.realpath(local))  # Path.resolve ends at links in a circle


def without_file(place: str) -> str:
    """The path that file:///PATH or file:/PATH has; any other place as it is."""
    return re.sub("^file:(//)?(?=/(?!/))", "", place)


def scheme_of(place: str) -> str:
    """Of an address, in small letters; empty for a path."""
    found = re.match("([a-z0-9+.-]+):/", place, re.IGNORECASE)
    return found[1].lower() if found else ""


def is_stored(place: str) -> bool:
    """Whether the place is on an object store."""
    return scheme_of(place) in {*SCHEMES, *_OF_OTHERS}


def without_slashes(place: str) -> str:
    """An address of a store without slashes at its end; any other place as it is."""
    return place.rstrip("/") if is_stored(place) and place.partition("://")[2].strip("/") else place


def check_address(place: str, option: str) -> None:
    """Raise InputError for an address of a store that Spark, delta-rs and pyarrow would not all understand alike.

    option: how it was given.
    """
    if not is_stored(place):
        return
    scheme = _OF_OTHERS.get(scheme_of(place), scheme_of(place))
    if not place.startswith(f"{scheme}://"):
        meant = f"{scheme}://{place.partition(':')[2].lstrip('/')}"
        raise InputError(f"{option}: got {place}; allowed are {_allowed()}; give {meant}")
    bucket, _, key = place.partition("://")[2].partition("/")
    *above, last = key.rstrip("/").split("/")
    if not bucket or {"", ".", ".."} & set(above) or last in {".", ".."}:
        raise InputError(
            f"{option}: got {place}; allowed is {scheme}://BUCKET/FOLDER without empty names, . and ..; correct it"
        )
    misread, without = _MISREAD_IN_INPUT if option in _READ else _MISREAD
    if found := misread.search(place):
        raise InputError(
            f"{option}: got {place}, where {found[0]} reads as something else to delta-rs; allowed is an address "
            f"without {without}; give another, or rename the folder"
        )
    endpoint = os.environ.get(ENDPOINT, "")
    if scheme == "s3a" and endpoint.startswith("http://") and os.environ.get(ALLOW_HTTP, "").lower() != "true":
        raise InputError(
            f"{option}: {place} is to be reached at {endpoint}, where everybody on the way can read along; allowed is "
            f"https://, or http:// with {ALLOW_HTTP}=true; set {ENDPOINT} or {ALLOW_HTTP}"
        )


def check_reachable(place: str, option: str) -> None:
    """Raise InputError for a place on a store whose bucket is not there or refuses, AwayError for a store that does not
    answer. On a disk, for a path that cannot be meant, such as an empty one or links in a circle.
    """
    check_address(place, option)
    if option not in _READ:
        _check_meant(place, option)
    if not is_stored(place):
        return
    import pyarrow.fs as pafs  # noqa: PLC0415  heavy

    try:
        files, root = file_system(place, AT_FIRST)
        # A list of nothing: other than the next request, it is answered with words where it is refused.
        files.get_file_info(pafs.FileSelector(f"{root}/.headgate", allow_not_found=True))
        found = files.get_file_info(root.partition("/")[0])
    except (OSError, ValueError) as error:
        raise unreached(f"{option}: {place}", error) from error
    if found.type.name == "NotFound":
        raise InputError(f"{option}: {place}: there is no bucket {root.partition('/')[0]}; create it, or correct it")


def _allowed() -> str:
    return ", ".join(f"{one}://" for one in SCHEMES)


def _check_meant(place: str, option: str) -> None:
    """Raise InputError for what is no path to one of those who read it, and no address of a store."""
    if not place.strip() or any(category(character) in {"Cc", "Cs"} for character in place):
        raise InputError(
            f"{option}: got {place!r}; allowed is a path or an address in UTF-8 and without control characters; "
            "correct it"
        )
    scheme, colon, rest = place.partition(":")
    scheme = scheme.lower()
    if place.startswith("~") or place != place.strip():
        raise InputError(
            f"{option}: got {place!r}, where ~ or a space at an end is read differently by the libraries; give a "
            "folder without it, such as one that begins with / or ./"
        )
    if colon and not is_stored(place) and (known := _OF_OTHERS.get(scheme, scheme)) in SCHEMES:
        raise InputError(f"{option}: got {place}; allowed are {_allowed()}; give {known}://{rest}")
    if colon and scheme == "file" and without_file(place) == place:
        path = re.sub("^/+", "/", rest) or "PATH"
        raise InputError(f"{option}: got {place}; allowed is file:/// with a whole path; give {path}, or file:///PATH")
    if not is_stored(place):
        _check_path(place, option)
    if scheme_of(place) not in {"", "file", *SCHEMES}:
        raise InputError(f"{option}: got {place}; allowed are a path and an address with {_allowed()}; correct it")


def _check_path(place: str, option: str) -> None:
    try:
        Path(without_file(place)).stat()
    except OSError as error:
        if error.errno in {errno.ENAMETOOLONG, errno.ELOOP}:
            raise InputError(f"{option}: got {place}: {error.strerror}; correct it") from error


def file_system(place: str, patience: Patience = PATIENT) -> tuple["pafs.FileSystem", str]:
    """Pyarrow's file system of a place, and the path in it. patience: for S3. Raises InputError for any other place."""
    import pyarrow.fs as pafs  # noqa: PLC0415  heavy

    if not place.startswith("file:") and (local := local_path(place)) is not None:
        return pafs.LocalFileSystem(), str(local)
    _check_meant(place, "a place")
    if scheme_of(place) == "s3a":
        return _s3(os.environ.get(ENDPOINT), patience), place.partition("://")[2].rstrip("/")
    files, root = pafs.FileSystem.from_uri(place)
    return files, root.rstrip("/")


def file_system_of(table_uri: str, patience: Patience = PATIENT) -> tuple["pafs.FileSystem", str]:
    """The same of a table by its `DeltaTable.table_uri`, where delta-rs encodes characters as in a URL."""
    return file_system(unquote(table_uri) if scheme_of(table_uri) == "s3a" else table_uri, patience)


@cache
def _s3(endpoint: str | None, patience: Patience) -> "pafs.FileSystem":
    import pyarrow.fs as pafs  # noqa: PLC0415  heavy

    return pafs.S3FileSystem(
        endpoint_override=endpoint,
        connect_timeout=min(_CONNECT_S, patience.answer_s),
        request_timeout=patience.answer_s,
        allow_delayed_open=True,  # one request for a small file
        retry_strategy=pafs.AwsStandardS3RetryStrategy(patience.attempts),
    )


def content_of(files: "pafs.FileSystem", path: str, patience: Patience = PATIENT) -> bytes:
    """What a file holds, read as `asked_again` reads. patience: that of `files`.

    Raises FileNotFoundError where it is not there, OSError where it cannot be read.
    """
    return asked_again(partial(_content, files, path), patience)


def _content(files: "pafs.FileSystem", path: str) -> bytes:
    with files.open_input_file(path) as file:
        content: bytes = file.read()
    return content


def asked_again(read: Callable[[], T], patience: Patience) -> T:
    """What `read` returns. A store that refuses a request for a few bytes is asked as often as for many.

    read: reads from pyarrow's file system with this patience; it is run again from its start, after pauses of 0.1 s,
    0.2 s and so on up to 5 s. Raises OSError.
    """
    lost = None
    for attempt in range(patience.attempts):
        if attempt:
            time.sleep(min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S))
        try:
            return read()
        except OSError as error:
            if _ANSWER_LOST not in str(error):
                raise
            lost = error
    raise OSError(
        f"AWS Error INTERNAL_FAILURE during GetObject operation: {patience.attempts} times the store answered with an "
        "error, which its library does not pass on"
    ) from lost


_CREDENTIALS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)


def hadoop_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What Spark's S3A has to be told, since it knows no AWS_ variables but the keys.

    Credentials are those of Spark's driver where it has some in its environment, else of each machine.
    """
    settings = {"fs.s3a.aws.credentials.provider": ",".join(_CREDENTIALS)}
    if endpoint := environment.get(ENDPOINT):
        settings |= {"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"}
    if region := next((environment[name] for name in _REGIONS if environment.get(name)), None):
        settings["fs.s3a.endpoint.region"] = region
    return settings


def checkpoint_settings(place: str) -> dict[str, str]:
    """What Spark has to be told of a checkpoint there: on S3 a file is one upload, which the store takes whole or not
    at all, since to rename is to copy.
    """
    manager = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": manager} if scheme_of(place) == "s3a" else {}


def joined(place: str | Path, name: str) -> str:
    """Where the file of that name in a folder is."""
    return f"{place.rstrip('/')}/{name}" if isinstance(place, str) and scheme_of(place) else str(Path(place, name))


def is_there(place: str, patience: Patience = PATIENT) -> bool:
    """Whether a file or a folder is at a place. patience: for S3. Raises InputError where a store does not say."""
    if (local := local_path(place)) is not None:
        return local.exists()
    files, root = file_system(place, patience)
    try:
        return bool(files.get_file_info(root).type.name != "NotFound")
    except OSError as error:
        raise unreached(place, error) from error
