"""The cache that brokers have now: the keys of entry-cache 12 in an operator's broker.conf."""

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from headgate.conf.findings import Findings
from headgate.conf.properties import Entry, read_properties
from headgate.core.cache.settings import CacheSettings, CacheSettingsError
from headgate.errors import ConfError

_TYPES = {declared.metadata["setting"].key: declared.type for declared in fields(CacheSettings)}


def present_values(conf_dir: str | Path) -> dict[str, object]:
    """What broker.conf in a folder says of entry caches, by key; what `CacheSettings.of` reads.

    Raises ConfError for a folder or file that cannot be read, and with every value that is not allowed.
    """
    file = Path(conf_dir) / "broker.conf"
    findings = Findings()
    try:
        entries = read_properties(file.read_bytes(), str(file), findings)
    except OSError as error:
        raise ConfError([f"{file}: got {error.strerror}; allowed: a readable file; correct --conf-dir"]) from error
    if findings.mistakes:
        raise ConfError(findings.mistakes)
    given = {key: entry for key, entry in entries.items() if key in _TYPES and entry.value.strip()}
    values = {key: _typed(key, entry) for key, entry in given.items()}
    try:
        CacheSettings.of(values)
    except CacheSettingsError as error:
        raise ConfError([f"{file}: {mistake}" for mistake in error.mistakes]) from error
    return values


def _typed(key: str, entry: Entry) -> object:
    """The text as the type that the key has; as it is where it is none of that type, for the message."""
    text, kind = entry.value.strip(), _TYPES[key]
    kinds: tuple[Any, ...] = get_args(kind) or (kind,)
    try:
        if bool in kinds:
            return {"true": True, "false": False}.get(text.lower(), text)
        return int(text) if int in kinds else float(text) if float in kinds else text
    except ValueError:
        return text
