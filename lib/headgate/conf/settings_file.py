"""Reads TOML files into models, and says what is wrong with them in the words of the other conf files."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from headgate.conf.findings import Findings, Place, shown
from headgate.conf.json_file import dotted
from headgate.conf.settings import Section, Settings, is_secret, model_of

_LISTED: Final = re.compile(r"\s*\[\[\s*(?P<name>[\w-]+)\s*\]\]")
_HEADER: Final = re.compile(r"\s*\[\s*(?P<section>[\w.-]+(?:\s*\.\s*[\w-]+)*)\s*\]")
_KEY: Final = re.compile(r"\s*(?P<key>[\w.-]+|\"[^\"]*\"|'[^']*')\s*=")
_AT: Final = re.compile(r" \(at line (?P<line>[0-9]+), column (?P<column>[0-9]+)\)\Z")
_AT_END: Final = " (at end of document)"


Model = TypeVar("Model", bound=Section)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A parsed file, and the line of each key that has one to itself: `section.key`, `name[0].key` under `[[name]]`."""

    file: str
    table: dict[str, Any]
    lines: Mapping[str, int]
    findings: Findings

    def place(self, key: str) -> Place:
        """Where a key is."""
        return Place(self.file, key, self.lines.get(key))

    def read(self, model: type[Model], table: dict[str, Any], before: str = "") -> Model:
        """Return what a table of the file says; what is wrong goes to `findings`, and its key keeps the default.

        model: every field has a default. before: what precedes the table's keys in the file.
        """
        while True:  # without the wrong keys again: a rule for several keys is looked at once each of them is right
            try:
                return model.model_validate(table)
            except ValidationError as error:
                # One wrong value gives an error for each type of a union: the first one of a path counts.
                errors = reversed(error.errors(include_url=False))
                details = {_field_path(model, detail["loc"]): detail for detail in errors}
            for path, detail in reversed(details.items()):
                place = self.place(before + dotted(path))
                section = model_of(model, path[:-1]) or model
                self._report(detail, section, path[-1], _taken_out(table, path), place)

    def _report(self, detail: ErrorDetails, section: type[Section], key: str, got: str, place: Place) -> None:
        if detail["type"] == "extra_forbidden":
            self.findings.unknown_key(place, key, section.model_fields)
        elif detail["type"] == "span":
            allowed, remedy = "event_time_from before event_time_until", "exchange or correct them"
            self.findings.mistake(place, detail["msg"], allowed, remedy)
        else:
            info = section.model_fields[key]
            default = info.get_default(call_default_factory=True)
            remedy = "correct it"
            if default is None:
                remedy += f", or remove the line{section.NONE_MEANS}"
            elif not isinstance(default, Section | dict | list):
                remedy += f", or remove the line for the default ({_written(default)})"
            self.findings.mistake(place, got, str(info.description), remedy)


def read_toml(text: str, file: str, findings: Findings) -> TomlFile:
    """Return a file as it is; empty, with a mistake, if it is not TOML."""
    try:
        return TomlFile(file, tomllib.loads(text), _lines(text), findings)
    except (ValueError, RecursionError) as error:
        place, got = _syntax_error(str(error), text, file)
        findings.mistake(place, got, "TOML", "correct the syntax")
        return TomlFile(file, {}, {}, findings)


def read_settings(text: str, file: str, findings: Findings) -> Settings:
    """Return the settings in a headgate.toml; what is wrong goes to `findings`, and its key keeps the default."""
    source = read_toml(text, file, findings)
    return source.read(Settings, source.table)


def _syntax_error(said: str, text: str, file: str) -> tuple[Place, str]:
    """Take the line out of what Python's parser said; one of 3.11 has it in its words alone."""
    if at := _AT.search(said):
        return Place(file, line=int(at["line"])), f"{said[: at.start()]} at column {at['column']}"
    if said.endswith(_AT_END):
        return Place(file, line=max(1, len(text.splitlines()))), f"{said.removesuffix(_AT_END)} at the end of the file"
    return Place(file), said


def _field_path(model: type[Section], loc: tuple[int | str, ...]) -> tuple[Any, ...]:
    """Return the path down to a field of a model; what pydantic adds for the parts of a field's value is left out."""
    path: list[int | str] = []
    for part in loc:
        path.append(part)
        if model_of(model, tuple(path)) is None:
            break
    return tuple(path)


def _taken_out(table: dict[str, Any], path: tuple[Any, ...]) -> str:
    """Remove the value at a path and return it as a message may show it, without what looks like a secret."""
    *parents, key = path
    for parent in parents:
        table = table[parent]
    value = table.pop(key)
    if isinstance(value, dict):
        return shown(_hidden(value))
    return f"a {type(value).__name__}" if key == "options" else shown(value)


def _hidden(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    def hidden(key: str, inner: object) -> object:
        if isinstance(inner, dict):
            return _hidden(inner, f"{key}.")
        return "**********" if is_secret(key) else inner

    return {key: hidden(prefix + key, inner) for key, inner in value.items()}


def _written(value: object) -> str:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)


def _lines(text: str) -> dict[str, int]:
    """Return the line of every dotted key that stands on a line of its own, as all do in the shipped file."""
    lines: dict[str, int] = {}
    section = ""
    counts: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if listed := _LISTED.match(line):
            name = f"{listed['name']}[{counts[listed['name']]}]"
            counts[listed["name"]] += 1
            lines.setdefault(listed["name"], number)
            lines[name], section = number, f"{name}."
        elif header := _HEADER.match(line):
            section = re.sub(r"\s", "", header["section"]) + "."
            lines.setdefault(section[:-1], number)
        elif key := _KEY.match(line):
            lines.setdefault(section + key["key"].strip("\"'"), number)
    return lines
