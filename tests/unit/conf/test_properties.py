"""broker.conf is read as java.util.Properties reads it."""

from typing import Any

import pytest

from headgate.conf.findings import Findings
from headgate.conf.properties import Entry, read_properties


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", {}),
        (b"a=1", {"a": Entry("1", 1)}),
        (b"a:1\nb 2\nc\n", {"a": Entry("1", 1), "b": Entry("2", 2), "c": Entry("", 3)}),
        (b"  a \t= 1 \r\n\r\nb = 2\r", {"a": Entry("1 ", 1), "b": Entry("2", 3)}),
        (b"# a=1\n! b=2\n   # c=3\nd=4", {"d": Entry("4", 4)}),
        (b"a=1\\\n   2\\\n   3\nb=4", {"a": Entry("123", 1), "b": Entry("4", 4)}),
        (b"a=1\na=2\n", {"a": Entry("2", 2)}),
        (b"a\\=b=c\\:d\\u0041\\t", {"a=b": Entry("c:dA\t", 1)}),
        (b"a=\\\\u12", {"a": Entry("\\u12", 1)}),
        (b"a=\xe9", {"a": Entry("\u00e9", 1)}),
        (b"# comment \\\na=1", {"a": Entry("1", 2)}),
        (b"# \0\na=1", {"a": Entry("1", 2)}),
    ],
)
def test_entries_are_those_of_java(content: bytes, expected: dict[str, Entry]) -> None:
    findings = Findings()
    assert expected == read_properties(content, "broker.conf", findings)
    assert findings.mistakes == []


@pytest.mark.parametrize(
    ("content", "expected", "mistake"),
    [
        (
            "a=1".encode("utf-16"),
            {},
            "broker.conf: got NUL bytes, as UTF-16 has; allowed: ISO-8859-1; save the file as ISO-8859-1 or ASCII",
        ),
        (
            "a=1".encode("utf-8-sig"),
            {"a": Entry("1", 1)},
            "broker.conf line 1: got a byte order mark; allowed: ISO-8859-1 without one; save the file without it",
        ),
    ],
)
def test_another_encoding_is_a_mistake_which_would_lose_limits(content: bytes, expected: Any, mistake: str) -> None:
    findings = Findings()
    assert expected == read_properties(content, "broker.conf", findings)
    assert [mistake] == findings.mistakes


def test_a_broken_unicode_escape_is_a_mistake_and_the_other_keys_are_still_read() -> None:
    findings = Findings()
    entries = read_properties(b"# c:\\users\npath=1\\\n\\users\nb=2\n", "broker.conf", findings)
    assert Entry("2", 4) == entries["b"]
    assert findings.mistakes == [
        (
            "broker.conf line 3: path: got a broken \\u escape; allowed: \\u and four hexadecimal digits; "
            "complete it, or double the backslash"
        )
    ]
