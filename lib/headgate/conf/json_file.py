"""JSON conf files: values with the line of every key, and checks whose findings name the path inside the file."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.conf.findings import Findings, Place, shown

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_COMMENT: Final = "//"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A parsed file. Its checks return None, having recorded a mistake, for a value that is not as it should be."""

    file: str
    lines: Mapping[Path, int]
    findings: Findings

    def place(self, path: Path) -> Place:
        """Return the place of a path, written `topics."persistent://a/b/c".publishRate`."""
        return Place(self.file, dotted(path), self.lines.get(path))

    def mistake(self, path: Path, got: str, allowed: str, remedy: str) -> None:
        """Record a mistake at a path."""
        self.findings.mistake(self.place(path), got, allowed, remedy)

    def table(self, path: Path, value: object) -> dict[str, Any] | None:
        """Check that a value is an object."""
        if isinstance(value, dict):
            return value
        self.mistake(path, shown(value), "an object", "write { ... }")
        return None

    def closed(self, path: Path, table: Mapping[str, Any], known: Iterable[str]) -> None:
        """Check that an object has no keys but the known ones."""
        names = frozenset(known)
        for key in table:
            if key not in names:
                self.findings.unknown_key(self.place((*path, key)), key, names)

    def integer(self, path: Path, value: object, low: int, high: int, remedy: str) -> int | None:
        """Check that a value is a whole number, written without quotes and fraction, from `low` to `high`."""
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.mistake(path, shown(value), f"an integer from {low} to {high}", remedy)
        return None

    def section(self, table: Mapping[str, Any], key: str, read: Callable[[str, Any], None]) -> None:
        """Give every entry of the object under a top-level key, which may be missing, to `read`."""
        for name, value in (self.table((key,), table.get(key, {})) or {}).items():
            read(name, value)


def dotted(path: Iterable[str]) -> str:
    """Return a path inside a file, its parts joined by dots and quoted where they hold other than A-Z a-z 0-9 _ -."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part) for part in path)


def read_json(text: str, file: str, known: Iterable[str], findings: Findings) -> tuple[JsonFile, dict[str, Any]]:
    """Return a file and its top-level object, which has the known keys alone; empty, with a mistake, if it is not JSON.

    A key that stands twice in one object is a mistake: JSON does not say which of them counts. Comments are left out.
    """
    lines: dict[Path, int] = {}
    source = JsonFile(file, lines, findings)
    try:
        value = without_comments(json.loads(text))
    except json.JSONDecodeError as error:
        findings.mistake(
            Place(file, line=error.lineno),
            f"no JSON ({error.msg.removesuffix(' at')} at column {error.colno})",
            "a JSON object",
            "correct the syntax",
        )
        return source, {}
    except (ValueError, RecursionError) as error:
        got = "brackets thousands deep" if isinstance(error, RecursionError) else "a number of thousands of digits"
        findings.mistake(Place(file), got, "a JSON object", "correct the syntax")
        return source, {}
    for path, line in _keys(text):
        if path[-1].startswith(_COMMENT):
            continue
        if path in lines:
            first = lines[path]
            findings.mistake(
                Place(file, dotted(path), line), "the key twice", f"once (line {first})", "delete one of the two"
            )
        lines.setdefault(path, line)
    table = source.table((), value) or {}
    source.closed((), table, known)
    return source, table


def without_comments(value: Any) -> Any:
    """Return parsed JSON without its comments, at every level: keys that begin with //, whatever their values.

    JSON has no comments, and Pulsar's admin API ignores keys that it does not know.
    """
    if isinstance(value, dict):
        return {key: without_comments(inner) for key, inner in value.items() if not key.startswith(_COMMENT)}
    return [without_comments(item) for item in value] if isinstance(value, list) else value


def _keys(text: str) -> Iterable[tuple[Path, int]]:
    """Yield the path and line of every key of valid JSON, in the file's order; an array's items count from 0."""
    frames: list[str | int | None] = []  # the key or index that is open at each level; None: in an object, before a key
    line, seen = 1, 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == "{":
            frames.append(None)
        elif mark == "[":
            frames.append(0)
        elif mark in "}]":
            frames.pop()
        elif mark == ",":
            top = frames[-1]
            frames[-1] = top + 1 if isinstance(top, int) else None
        elif mark.startswith('"') and frames and frames[-1] is None:
            line, seen = line + text.count("\n", seen, match.start()), match.start()
            frames[-1] = json.loads(mark)
            yield tuple(map(str, frames)), line
