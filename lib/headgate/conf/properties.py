"""Java properties files, as java.util.Properties reads them, with the line of every key."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import javaproperties

from headgate.conf.findings import Findings, Place

_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
# Escapes are consumed in pairs, so that the second backslash of an escaped backslash starts nothing.
_ESCAPE: Final = re.compile(r"\\(?:(?P<bad>u(?![0-9A-Fa-f]{4}))|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a key with its escapes resolved, and the line, from 1, on which its entry starts."""

    value: str
    line: int


def read_properties(content: bytes, file: str, findings: Findings) -> Mapping[str, Entry]:
    r"""Return the entries of a properties file by key; of duplicates the last one wins, as in Java.

    Bytes are ISO-8859-1; those of UTF-16, and a byte order mark, which Java takes for a part of the first key, are
    mistakes. A `\u` that four hexadecimal digits do not follow is a mistake, as Java refuses the whole
    file for it; comments may hold anything.
    """
    if content.startswith(BOM_UTF8):
        content = content.removeprefix(BOM_UTF8)
        findings.mistake(Place(file, line=1), "a byte order mark", "ISO-8859-1 without one", "save the file without it")
    text = content.decode("iso-8859-1")
    bad_lines: set[int] = set()

    def mend(match: re.Match[str]) -> str:
        if match["bad"] is None:
            return match[0]
        bad_lines.add(1 + len(_NEWLINE.findall(text, 0, match.start())))
        return "u"

    entries: dict[str, Entry] = {}
    line = 1
    for element in javaproperties.parse(_ESCAPE.sub(mend, text)):
        after = line + len(_NEWLINE.findall(element.source))
        if isinstance(element, javaproperties.KeyValue):
            entries[element.key] = Entry(element.value, line)
            for bad in sorted(bad_lines & set(range(line, max(after, line + 1)))):
                findings.mistake(
                    Place(file, element.key, bad),
                    "a broken \\u escape",
                    "\\u and four hexadecimal digits",
                    "complete it, or double the backslash",
                )
        line = after
    if any("\0" in key for key in entries):
        findings.mistake(Place(file), "NUL bytes, as UTF-16 has", "ISO-8859-1", "save the file as ISO-8859-1 or ASCII")
        return {}
    return entries
