"""Addresses of object stores, without one: what is refused, what Spark is told, and what is said of an error."""

import errno
import re
import socket
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow.fs as pafs
import pytest

from headgate import folders
from headgate.cli import main
from headgate.cluster.schemas import OF_COLLECTOR
from headgate.errors import AwayError, ConfError, InputError, Mistakes, TableError, TransientError
from headgate.folders import copied, folder_at
from headgate.places import check_places, check_writable, sole_use
from headgate.quota.groups import presence
from headgate.quota.tables.delta import opened
from headgate.quota.tables.schemas import RG_GROUPS
from headgate.replay.folders import load_folders
from headgate.spark.job import FAILED, WRONG, exit_status
from headgate.store_errors import is_away, remedy, said
from headgate.stores import (
    Patience,
    check_address,
    check_reachable,
    file_system,
    file_system_of,
    hadoop_settings,
    is_there,
    joined,
    without_slashes,
)
from headgate.tables.delta import Tables
from stub_store import SECRET, at, refusing, slow_down

_OF_DELTA_RS = (
    "Generic S3 error\n          \x1b[31m↳\x1b[0m Error performing GET http://x/b?list-type=2 - non-2xx status code\n"
    "            \x1b[31m↳\x1b[0m 403 Forbidden\n             \x1b[31m↳\x1b[0m <?xml version='1.0'?><Error>"
    "<Code>SignatureDoesNotMatch</Code><Message>The signatures\n ↳ differ.</Message>"
    "<AWSAccessKeyId>AKID</AWSAccessKeyId>"
    "<StringToSign>AWS4-HMAC-SHA256\n8e7c0c</StringToSign></Error>"
)


def test_plain_http_to_a_store_has_to_be_asked_for(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    with pytest.raises(
        InputError, match=r"--output: s3a://b/o is to be reached at http://store:9000, .* AWS_ALLOW_HTTP"
    ):
        check_address("s3a://b/o", "--output")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    check_address("s3a://b/o", "--output")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "s3a://b/a%20b",
            "where %20 reads as something else to delta-rs; allowed is an address without #, ? and % before",
        ),
        ("s3a://b/a%c3b/d", "where %c3 reads"),
        ("s3a://b/a#b", "where # reads"),
        ("gs://b/a?b", "where ? reads"),
        ("S3A://b/a", "allowed are s3a://, abfss://, gs://; give s3a://b/a"),
        ("S3A:/b/a", "allowed are s3a://, abfss://, gs://; give s3a://b/a"),
        ("S3://b/a", "allowed are s3a://, abfss://, gs://; give s3a://b/a"),
        ("s3a:///a", "allowed is s3a://BUCKET/FOLDER"),
        ("s3a://b/a/../c", "allowed is s3a://BUCKET/FOLDER without empty names, . and .."),
        ("s3a://b/.", "allowed is s3a://BUCKET/FOLDER without empty names, . and .."),
        ("s3a://b//a", "allowed is s3a://BUCKET/FOLDER without empty names, . and .."),
    ],
)
def test_an_address_that_does_not_mean_the_same_to_all_who_read_it_is_refused(place, said):
    with pytest.raises(InputError, match=re.escape(f"--output: got {place}") + "[,;] " + re.escape(said)):
        check_address(place, "--output")


@pytest.mark.parametrize(
    ("place", "option"),
    [
        ("s3a://b", "--output"),
        ("s3a://b/", "--output"),
        ("s3a://b/odd job/mü=1%x/.hidden", "--output"),
        ("s3a://b/hour=10%3A00/part-?.json", "--input"),
        ("s3a://b/hour=10%3A00", "PATH"),
        ("out/a#b?%20", "--output"),
        ("topic#1", "--input"),
    ],
)
def test_other_addresses_and_what_is_none_are_taken(place, option, monkeypatch):
    """Inputs are not read with delta-rs: to Spark and pyarrow % is a character, and ? is a pattern of Spark's."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    check_address(place, option)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("s3a://b/a/", "s3a://b/a"),
        ("s3a://b/a//", "s3a://b/a"),
        ("s3a://b/", "s3a://b"),
        ("s3a://b/a", "s3a://b/a"),
        ("s3a://", "s3a://"),
        ("s3a:///", "s3a:///"),
        ("/", "/"),
        ("out/", "out/"),
    ],
)
def test_slashes_at_the_end_of_an_address_are_left_out(given, expected):
    assert expected == without_slashes(given)


def test_a_table_is_found_by_what_delta_rs_calls_it(tmp_path):
    """It encodes what a URL cannot hold; in the file system the path is as it was given."""
    files, root = file_system_of("s3a://b/odd%20job/m%C3%BC=1%25x/control/")
    assert ("s3", "b/odd job/mü=1%x/control") == (files.type_name, root)
    files, root = file_system_of((tmp_path / "1%25x").as_uri())
    assert ("local", str(tmp_path / "1%25x")) == (files.type_name, root)


def test_spark_is_told_of_the_endpoint_and_the_region_and_of_no_key():
    environment = {"AWS_ENDPOINT_URL": "http://s", "AWS_DEFAULT_REGION": "eu", "AWS_SECRET_ACCESS_KEY": "hidden"}
    found = hadoop_settings(environment)
    del found["fs.s3a.aws.credentials.provider"]
    expected = {"fs.s3a.endpoint": "http://s", "fs.s3a.path.style.access": "true", "fs.s3a.endpoint.region": "eu"}
    assert expected == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_OF_DELTA_RS, "the store answered SignatureDoesNotMatch: The signatures differ"),
        (
            "Generic S3 error\n  ↳ Error performing GET http://x/b\n   ↳ Connection refused",
            "Generic S3 error: Connection refused",
        ),
        ("no such table.\nlast line", "no such table"),
        ("", "OSError"),
    ],
)
def test_an_error_is_one_line_without_what_a_store_quotes_of_the_request(text, expected):
    assert expected == said(OSError(text))


def test_places_of_files_are_paths_or_addresses(tmp_path):
    """Of another file than asked for: a path is normalized, an address is not."""
    assert ("s3a://b/conf/x", "conf/x") == (joined("s3a://b/conf/", "x"), joined("./conf/", "x"))
    files, root = file_system((tmp_path / "a b").as_uri())
    assert ("local", str(tmp_path / "a b")) == (files.type_name, root)


def test_what_is_written_appears_whole_and_what_is_gone_is_none(tmp_path):
    folder = folder_at(str(tmp_path / "new"))
    assert ([], None, None) == (folder.names(), folder.read("a"), folder.stamp("a"))
    folder.make()
    folder.write("a", b"1", time_s=5)
    assert (["a"], b"1", 5_000_000_000) == (folder.names(), folder.read("a"), folder.stamp("a")[0])
    folder.remove("a")
    folder.remove("a")
    assert [] == folder.names()


def test_a_link_that_leads_nowhere_is_no_missing_file_and_its_removal_an_edit(tmp_path):
    folder = folder_at(str(tmp_path))
    (tmp_path / "a").symlink_to("gone")
    with pytest.raises(OSError, match=r"^a link to gone, where nothing is$"):
        folder.read("a")
    before = folder.stamp("a")
    folder.remove("a")
    assert (None, None) == (folder.read("a"), folder.stamp("a"))
    assert before is not None


@pytest.mark.parametrize("command", [("sql", "s3a://b/o", "SHOW TABLES"), ("serve", "s3a://b/o", "--port", "0")])
@pytest.mark.usefixtures("no_store")
def test_a_command_ends_with_1_where_the_store_does_not_answer_and_says_so_in_one_line(command, capsys):
    assert main(command) == 1
    line = capsys.readouterr().err
    assert re.match(r"headgate: .*s3a://b/o cannot be reached: .*NETWORK_CONNECTION.*; check the address,", line)
    assert 1 == len(line.splitlines())
    assert SECRET not in line


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (503, "SlowDown", AwayError, "SLOW_DOWN"),
        (500, "InternalError", AwayError, "INTERNAL_FAILURE"),
        (502, "", AwayError, "HTTP status 502"),
        (403, "SignatureDoesNotMatch", InputError, "SIGNATURE_DOES_NOT_MATCH during ListObjectsV2 operation: So it is"),
        (403, "InvalidAccessKeyId", InputError, "INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: So it is"),
        (403, "AccessDenied", InputError, "ACCESS_DENIED during ListObjectsV2 operation: So it is"),
        (404, "NoSuchBucket", InputError, "there is no bucket b"),
    ],
)
def test_a_store_that_refuses_is_told_from_one_that_is_away(status, code, kind, words, monkeypatch):
    with refusing(monkeypatch, status, code), pytest.raises(InputError, match=re.escape(words)) as raised:
        check_reachable("s3a://b/o", "--output")
    assert kind is raised.type


@pytest.mark.parametrize("size", [2, 107, 109, 500])
def test_a_file_of_a_store_that_wants_fewer_requests_is_asked_for_again_however_small_it_is(size, monkeypatch):
    """Pyarrow repeats a request only if the store's error, here of 108 bytes, fits into what was asked for."""
    monkeypatch.setattr("headgate.stores._FIRST_PAUSE_S", 0)
    content = b"x" * size
    with slow_down(monkeypatch, content, refusals=2) as methods:
        assert content == folder_at("s3a://b/conf", Patience(3, 20)).read("policies.json")
        assert 3 == methods.count("GET")


def test_a_copy_of_a_store_that_wants_fewer_requests_is_whole(monkeypatch, tmp_path):
    monkeypatch.setattr("headgate.stores._FIRST_PAUSE_S", 0)
    with slow_down(monkeypatch, b"{}", refusals=2), copied("s3a://b/trace.json") as copy:
        assert b"{}" == Path(copy).read_bytes()


def test_a_store_that_goes_on_refusing_is_away(monkeypatch):
    monkeypatch.setattr("headgate.stores._FIRST_PAUSE_S", 0)
    folder = pytest.raises(OSError, match=r"AWS Error INTERNAL_FAILURE .*: 3 times the store answered with an error")
    with slow_down(monkeypatch, b"{}", refusals=9) as methods, folder as raised:
        folder_at("s3a://b/conf", Patience(3, 20)).read("policies.json")
    assert (3, True) == (methods.count("GET"), is_away(raised.value))


def test_what_no_error_of_headgate_tells_of_a_store_that_is_away_is_told_all_the_same(capsys):
    def read():
        raise OSError("AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate.")

    assert FAILED == exit_status("job", read)
    line = "job: an object store does not answer: AWS Error SLOW_DOWN during GetObject operation: Please reduce your "
    assert capsys.readouterr().err.startswith(f"{line}request rate; check the address, the store's endpoint")


_PUT = "Generic S3 error: Error performing PUT http://x/b/o/part-0.parquet in 6.1s, after 2 retries, max_retries: 2, "
_GET = (
    "External error: Failed to fetch metadata for file o/timeout/part-0.parquet: Object Store error: Generic S3 error: "
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{_PUT}retry_timeout: 9s  - Server returned non-2xx status code: 503 Service Unavailable: <Error/>", True),
        ("Generic S3 error\n  ↳ Error performing GET http://x/b\n   ↳ 502 Bad Gateway", True),
        ("Generic S3 error: Error performing GET http://x/b - HTTP error: operation timed out", True),
        (
            f"{_PUT}retry_timeout: 9s  - Server returned non-2xx status code: 403 Forbidden: <Error>timed out</Error>",
            False,
        ),
        ("Generic S3 error: Error performing GET http://x/b/timeout/o - non-2xx status code: 403 Forbidden", False),
        (f"{_GET}Error performing GET http://x/b - non-2xx status code: 403 Forbidden", False),
        ("listing objects under key 'timeout/o' in bucket 'b': AWS Error ACCESS_DENIED during ListObjectsV2", False),
        (
            "listing objects under key 'o' in bucket 'request-timeout': AWS Error ACCESS_DENIED during List",
            False,
        ),
        ("Generic LocalFileSystem error: Unable to copy data to file: Connection timed out (os error 110)", False),
        ("operation timed out", False),
        ("Generic S3 error\n  ↳ Error performing PUT http://x/b\n   ↳ 501 Not Implemented", False),
    ],
)
def test_a_store_is_away_by_what_it_answers_not_by_how_places_are_called(text, expected):
    """Whether rows or a commit are written, pyarrow or delta-rs reads: each has words of its own."""
    assert expected == is_away(OSError(text))


def test_an_input_that_is_not_there_needs_no_other_credentials(monkeypatch):
    nothing = pytest.raises(InputError, match=r"^nothing is at s3a://b/o/\*.json; give a file or a folder")
    with refusing(monkeypatch, 404, "", only="nothing"), nothing, copied("s3a://b/o/*.json"):
        pass


def test_a_file_that_is_gone_says_nothing_against_the_store():
    answer = "404 Not Found: <Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"
    gone = OSError(
        f"Object at location o/t/a.parquet not found: Error performing GET http://127.0.0.1/b in 1ms - {answer}"
    )

    assert "otherwise" == remedy(gone, "otherwise")


def test_a_disk_is_no_store():
    assert "otherwise" == remedy(OSError("Generic LocalFileSystem error: Unable to copy data to file"), "otherwise")
    full = OSError("Could not create local directory: /o/counters\n  ↳ Read-only file system (os error 30)")
    assert "make space on the disk, or make it writable" == remedy(full, "otherwise")
    assert "Could not create local directory: /o/counters: Read-only file system (os error 30)" == said(full)


def test_an_address_without_its_slashes_is_no_folder():
    with pytest.raises(InputError, match=r"^--output: got s3:b/a; allowed are s3a://, abfss://, gs://; give s3a://b/a"):
        check_reachable("s3:b/a", "--output")
    with pytest.raises(InputError, match="give s3a://b/a"):
        check_reachable("S3:b/a", "--output")


def test_an_output_without_a_name_is_refused():
    """To delta-rs it is the root of the disk."""
    with pytest.raises(InputError, match=r"^--output: got ''; allowed is a path or an address in UTF-8 "):
        check_reachable("", "--output")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("a\nb", "without control characters"),
        ("a\udcff", "in UTF-8 and without control characters"),
        ("file:out", "allowed is file:/// with a whole path; give out, or file:///PATH"),
        ("file://out", "give /out, or file:///PATH"),
        ("file:", "give PATH, or file:///PATH"),
        ("file://", "allowed is file:/// with a whole path"),
        ("FILE:///tmp/out", "give /tmp/out, or file:///PATH"),
        ("n" * 300, "File name too long; correct it"),
        ("file:///" + "n" * 300, "File name too long; correct it"),
        ("loop", "Too many levels of symbolic links; correct it"),
    ],
)
def test_a_path_that_libraries_read_in_ways_of_their_own_or_not_at_all_is_refused(place, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=re.escape(words)):
        check_reachable(place, "--output")


@pytest.mark.parametrize("place", ["file:/", "file:///", "file:/tmp/out", "file:///tmp/out", "設定　一", "file"])
def test_a_path_that_all_libraries_read_alike_may_be_given(place):
    check_reachable(place, "--output")


def test_links_in_a_circle_are_refused_wherever_a_place_is_given(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    words = re.escape("Too many levels of symbolic links; correct it")
    for places in ((str(loop), "cp"), ("out", f"file://{loop}")):
        with pytest.raises(InputError, match=words):
            check_places("in", *places, files=True)
    with pytest.raises(ConfError, match=words):
        load_folders([str(loop)])


def test_a_copy_that_finds_no_space_is_no_matter_of_the_store(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(folders, "_copy", full)
    told = pytest.raises(TransientError, match=r"^s3a://b/o cannot be copied to /.*; make space there, or set TMPDIR$")
    with told, copied("s3a://b/o"):
        pass


def test_what_is_larger_than_the_disk_is_not_copied(monkeypatch, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_bytes(bytes(3 << 20))
    monkeypatch.setattr(folders, "file_system", lambda *_: (pafs.LocalFileSystem(), str(tmp_path / "in")))
    with copied("s3a://b/in") as path:
        assert Path(path, "a.json").read_bytes() == bytes(3 << 20)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    told = pytest.raises(
        TransientError,
        match=r"^s3a://b/in cannot be copied to /.*: it has 3.0 MiB, and 1.0 MiB are free there; make space there",
    )
    with told, copied("s3a://b/in"):
        pass


def test_a_command_that_finds_no_space_says_so_in_a_line_after_what_it_has_printed(monkeypatch, capfd, tmp_path):
    def full(*_):
        sys.stdout.write("before\n")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headgate.report.tables_command.listed", full)
    monkeypatch.setattr("os.dup2", lambda *_: None)  # it would close this process's own
    assert main(["tables", str(tmp_path)]) == 1
    printed = capfd.readouterr()
    assert printed.out == "before\n"
    assert printed.err == (
        "headgate: output or a temporary file cannot be written: [Errno 28] No space left on device; make space on the "
        "disk, or make it writable\n"
    )


def test_no_room_for_temporary_files_at_all_is_a_full_disk(monkeypatch, capfd):
    def of_a_job():
        with sole_use("out"):
            return 0

    with monkeypatch.context() as patch:  # pytest needs temporary files, too
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc"])
        assert FAILED == exit_status("job", of_a_job)
    assert "job: output or a temporary file cannot be written: " in capfd.readouterr().err


def test_what_is_no_place_at_all_is_told_where_a_file_system_is_asked_for():
    with pytest.raises(InputError, match=r"got foo://b/conf; allowed are a path and an address with s3a://"):
        folder_at("foo://b/conf")


def test_a_job_ends_with_1_where_a_table_is_away_and_with_2_where_the_store_refuses_it(monkeypatch, no_store):
    def open_table():
        Tables("s3a://b/o", OF_COLLECTOR)
        return 0

    assert FAILED == exit_status("job", open_table)
    with refusing(monkeypatch, 403, "SignatureDoesNotMatch"):
        assert WRONG == exit_status("job", open_table)


def test_a_store_that_takes_a_request_and_does_not_answer_is_given_up_on_in_time(monkeypatch):
    """delta-rs alone waits 30 s."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at(monkeypatch, silent.getsockname()[1])
        began_s = time.monotonic()
        with pytest.raises(TableError, match="timed out"):
            opened("s3a://b/o/rg_groups", RG_GROUPS, None, Patience(1, 1, 1))
        assert time.monotonic() - began_s < 20


@pytest.mark.parametrize(
    ("status", "code", "only", "remedy"),
    [
        (403, "AccessDenied", "PUT", "grant these credentials the right to write there"),
        (403, "SignatureDoesNotMatch", "", "check the address, the store's endpoint and the credentials"),
        (404, "NoSuchBucket", "", "check the address, the store's endpoint and the credentials"),
    ],
)
def test_where_the_store_refuses_a_table_no_new_folder_is_advised(status, code, only, remedy, monkeypatch):
    with refusing(monkeypatch, status, code, only), pytest.raises(TableError, match=re.escape(remedy)) as raised:
        Tables("s3a://b/o", OF_COLLECTOR)
    assert "new folder" not in str(raised.value)


def test_a_table_that_cannot_be_on_a_disk_has_the_advice_of_a_new_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="give an --output to write to: a new folder"):
        Tables(tmp_path / "file", OF_COLLECTOR)


def test_a_store_that_goes_away_while_mistakes_are_looked_for_is_told_alone():
    mistakes = Mistakes()
    with mistakes.collected():
        raise InputError("a mistake")
    with pytest.raises(AwayError), mistakes.collected():
        raise AwayError("the store is away")
    with pytest.raises(InputError, match=r"^a mistake$"):
        mistakes.raise_all()
    assert is_away(AwayError("the store is away"))


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Generic LocalFileSystem error\n  ↳ Unable to copy data\n   ↳ No space left on device (os error 28)", FAILED),
        ("[Errno 30] Read-only file system: '/o/control'", FAILED),
        ("[Errno 13] Permission denied: '/o/control'", WRONG),
    ],
)
def test_a_job_may_start_again_where_a_disk_is_full_or_read_only(words, status):
    def write():
        raise TableError("rows of No space left on device cannot be written") from OSError(words)

    assert status == exit_status("job", write)


def test_a_disk_that_is_full_at_the_start_is_waited_for(tmp_path, monkeypatch):
    """It may be the only mistake of several things that are looked at."""
    monkeypatch.setattr("headgate.places.LEAST_FREE_BYTES", 1 << 62)

    def start():
        mistakes = Mistakes()
        with mistakes.collected():
            check_writable(str(tmp_path))
        mistakes.raise_all()

    assert FAILED == exit_status("job", start)


def test_what_a_store_says_of_a_tenant_that_is_looked_for_is_said_without_what_it_quotes(monkeypatch):
    """Its answer quotes keys and signatures."""
    with (
        refusing(monkeypatch, 403, "SignatureDoesNotMatch"),
        pytest.raises(TableError, match=r"^the table s3a://b/o cannot be read: the store answered SignatureDoesNotMat"),
    ):
        presence._has_rows("s3a://b/o", "SELECT 1", None)


def test_whether_something_is_there_is_an_error_of_headgate_where_the_store_refuses(monkeypatch):
    refused = pytest.raises(InputError, match=r"s3a://b/o/enforced cannot be reached: .*ACCESS_DENIED")
    with refusing(monkeypatch, 403, "AccessDenied"), refused:
        is_there("s3a://b/o/enforced")
