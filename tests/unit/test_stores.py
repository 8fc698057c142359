"""Addresses of object stores, without one: what is refused, what Spark is told, and what is said of an error."""

import pytest

from headgate.errors import InputError
from headgate.stores import check_address, file_system, folder_at, hadoop_settings, joined, said

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
