"""What differs between the files of conf folders, key by key, in the words of the files. The files are valid."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headgate.conf.findings import Findings
from headgate.conf.json_file import without_comments
from headgate.conf.properties import read_properties
from headgate.folders import folder_at

ConfKeys = Mapping[tuple[str, str], str]
"""By file and key, the value as text."""


class ConfChange(NamedTuple):
    """A key that differs; values: in the order of the folders, None where the file does not have it."""

    file: str
    key: str
    values: tuple[str | None, ...]


def conf_keys(folder: str) -> dict[tuple[str, str], str]:
    """Every key that the files of a folder set. Keys of nested values are joined by dots."""
    directory = folder_at(folder)
    keys: dict[tuple[str, str], str] = {}
    for file, read in (
        ("broker.conf", _properties),
        ("headgate.toml", lambda content: tomllib.loads(content.decode("utf-8-sig"))),
        ("policies.json", _json),
        ("resource-groups.json", _json),
    ):
        content = directory.read(file)
        if content is not None:
            values = read(content)
            keys |= {(file, key): value for key, value in _flat("", values)}
    return keys


def conf_changes(confs: Sequence[ConfKeys]) -> list[ConfChange]:
    """The keys that are not the same in all of them; those that all of them set come first, by file and name."""
    names = sorted({name for keys in confs for name in keys})
    changes = [ConfChange(*name, tuple(keys.get(name) for keys in confs)) for name in names]
    differing = [change for change in changes if len(set(change.values)) > 1]
    return sorted(differing, key=lambda change: change.values.count(None))


def _properties(content: bytes) -> Any:
    return {key: entry.value for key, entry in read_properties(content, "broker.conf", Findings()).items()}


def _json(content: bytes) -> Any:
    text = content.decode("utf-8-sig")
    return without_comments(json.loads(text)) if text.strip() else {}


def _flat(prefix: str, values: Any) -> Iterator[tuple[str, str]]:
    is_section = "." not in prefix  # one without anything sets nothing
    if isinstance(values, Mapping) and (values or is_section):
        for key, value in values.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), value)
    elif prefix:
        yield prefix, values if isinstance(values, str) else json.dumps(values, default=str)
