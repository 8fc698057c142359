"""A line of JSON as an object, number by number as it is written; or why it is none."""

import json
import re
from typing import Any

from headgate.rows.shown import double_text

MOST_DEPTH = 500
"""Lists and objects in one another."""
NO_JSON = "the line is not a JSON object"
MORE_JSON = "the line holds more than one JSON object"
JSON_SPACE = " \t\r\n"
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')


class Number(str):
    """A number as it is shown."""

    __slots__ = ()


class _NoNumber(str):
    """NaN or an infinity: JSON has no such number, so it is shown as text."""

    __slots__ = ()


def _whole(text: str) -> Number:
    """As readers of columns show it, which know no negative zero."""
    return Number("0" if text == "-0" else text)


_DECODER = json.JSONDecoder(
    parse_int=_whole, parse_float=lambda text: Number(double_text(float(text))), parse_constant=_NoNumber
)


def object_of(line: str | None) -> dict[str, Any] | str:
    """The object of a line, of a key that stands twice the last value; or why it is none."""
    if line is None or _is_too_deep(line):
        return NO_JSON
    text = line.strip(JSON_SPACE)
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return NO_JSON
    if not isinstance(value, dict):
        return NO_JSON
    return value if end == len(text) else MORE_JSON


def _is_too_deep(line: str) -> bool:
    if opened(line) <= MOST_DEPTH:
        return False
    depth = deepest = 0
    for character in _STRINGS.sub("", line):
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest > MOST_DEPTH


def opened(line: str) -> int:
    """How many lists and objects begin there, at most."""
    return line.count("[") + line.count("{")
