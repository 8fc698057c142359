"""The shipped headgate.toml and the table of its keys in docs/configuration.md, made of the settings.

python -m headgate.conf.reference      writes both
"""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from headgate.conf.findings import INT32_MAX, INT64_MAX, MAX_MS
from headgate.conf.settings import DURATION, Meaning, Section, Settings
from headgate.core.protocol.settings import BrokerSettings

ROOT = Path(__file__).parents[3]
FILE, PAGE = ROOT / "conf" / "headgate.toml", ROOT / "docs" / "configuration.md"
WIDTH = 120
_HEAD = """\
# How the pipeline reads, keys and runs. Every value below is the default: a line that is removed changes nothing.
# Unknown keys are refused. Made of lib/headgate/conf/settings.py; also in docs/configuration.md.
"""
_FAR = re.compile(rf" to (?:{INT32_MAX}|{INT64_MAX}|{MAX_MS})$|, from \S+Z to \S+Z$")
_ROWS = re.compile(rf"(?:^\| `(?:{'|'.join(Settings.model_fields)})\..*\n)+", re.MULTILINE)


def shipped_file() -> str:
    """headgate.toml with every key, its default, what is allowed and what it means."""
    return _HEAD + "".join(_tables(Settings, ""))


def page_rows() -> str:
    """The rows of the page's table, one a key."""
    return "".join(
        f"| `{name}` | {_default(name, info)} | {_allowed(info)} | {meaning.text}{meaning.more} |\n"
        for name, info, meaning in _keys(Settings, "")
    )


def _tables(section: type[Section], name: str) -> Iterator[str]:
    """The tables of a section and of those inside it."""
    keys = [(key, info) for key, info in section.model_fields.items() if not _is_section(info)]
    if keys:
        purpose = (section.__doc__ or "").split("\n")[0].partition(": ")[2]
        yield f"\n[{name}]\n{_comment(_sentence(purpose))}"
    for key, info in keys:
        yield _line(f"{name}.{key}", info)
    for key, info in section.model_fields.items():
        if _is_section(info):
            yield from _tables(info.annotation, f"{name}.{key}".strip("."))  # type: ignore[arg-type]


def _line(name: str, info: FieldInfo) -> str:
    """A key with its comment; one whose default is the profile's stands in a comment."""
    meaning, key = _meaning(info), name.rpartition(".")[2]
    if meaning.example:
        return f"\n[{name}]\n{_comment(f'{_sentence(meaning.text)}, for example:')}# {meaning.example}\n"
    text = _sentence(meaning.text)
    mark, value = ("# ", _of_profile(key)) if info.default is None else ("", info.default)
    allowed = "" if info.description == DURATION else f" Allowed: {info.description}."
    return f"{_comment(f'{text}.{allowed}')}{mark}{key} = {_toml(value)}\n"


def _sentence(text: str) -> str:
    """As it stands in a comment."""
    return text[:1].upper() + text[1:].replace("`", "")


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ") + "\n"


def _keys(section: type[Section], name: str) -> Iterator[tuple[str, FieldInfo, Meaning]]:
    for key, info in section.model_fields.items():
        path = f"{name}.{key}".strip(".")
        if _is_section(info):
            yield from _keys(info.annotation, path)  # type: ignore[arg-type]
        else:
            yield path, info, _meaning(info)


def _is_section(info: FieldInfo) -> bool:
    return isinstance(info.annotation, type) and issubclass(info.annotation, Section)


def _meaning(info: FieldInfo) -> Meaning:
    return next(one for one in info.metadata if isinstance(one, Meaning))


def _default(name: str, info: FieldInfo) -> str:
    if info.default == {}:
        return "none"
    if info.default is not None:
        return f"`{_toml(info.default)}`"
    key = name.rpartition(".")[2]
    of_profiles = [_of_profile(key), *([BrokerSettings.LITERAL[key]] if key in BrokerSettings.LITERAL else [])]
    return "; literal: ".join(f"`{_toml(value)}`" for value in of_profiles)


def _of_profile(key: str) -> Any:
    return getattr(BrokerSettings(), key)


def _allowed(info: FieldInfo) -> str:
    """Without the bounds that nobody meets; a message has them."""
    return "ms" if info.description == DURATION else _FAR.sub("", str(info.description)).removeprefix("an integer ")


def _toml(value: Any) -> str:
    return json.dumps(value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value)


def page_with_rows(page: str) -> str:
    """The page with the rows as they are to be."""
    return _ROWS.sub(lambda _: page_rows(), page, count=1)


if __name__ == "__main__":
    FILE.write_text(shipped_file(), "utf-8")
    PAGE.write_text(page_with_rows(PAGE.read_text("utf-8")), "utf-8")
