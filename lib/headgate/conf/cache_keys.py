"""The keys of the entry cache in broker.conf (entry-cache 12): Pulsar's own, and headgate's with their prefix."""

import re
from collections.abc import Mapping
from typing import Any, Final

from headgate.conf.findings import Findings, Place
from headgate.conf.properties import Entry
from headgate.core.cache.settings import IGNORED_KEYS, KEYS, PREFIX, WORD_KEYS, mistakes_in

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)")
_SWITCHES: Final = {"true": True, "false": False}


def is_cache_key(name: str) -> bool:
    """Whether the entry cache reads, accepts or refuses a key."""
    return name.startswith(PREFIX) or name in KEYS or name in IGNORED_KEYS


def read_cache_values(entries: Mapping[str, Entry], file: str, findings: Findings) -> dict[str, Any]:
    """The values that a broker.conf gives to keys of the cache, as `CacheSettings.of` reads them.

    Blank values are defaults, and left out. What is wrong goes to `findings`; then there are no values.
    """
    written = {name: entry for name, entry in entries.items() if is_cache_key(name) and entry.value.strip()}
    values = {name: _value(name, entry.value.strip()) for name, entry in written.items() if name not in IGNORED_KEYS}
    mistakes = mistakes_in(values)
    for mistake in mistakes:
        place = Place(file, mistake.key, written[mistake.key].line if mistake.key in written else None)
        if mistake.key in KEYS:
            findings.mistake(place, mistake.got, mistake.allowed, mistake.remedy)
        else:
            findings.unknown_key(place, mistake.key, [key for key in KEYS if key.startswith(PREFIX)])
    return {} if mistakes else values


def _value(name: str, text: str) -> object:
    """The text as the value that it spells; a word that may look like a number stays one."""
    if name in WORD_KEYS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else _SWITCHES.get(text.lower(), text)
