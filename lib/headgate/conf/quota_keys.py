"""The keys of quota sharing in broker.conf (resource-groups 14): Pulsar's own, and headgate's with its prefixes."""

import re
from collections.abc import Mapping
from typing import Final

from headgate.conf.findings import Findings, Place
from headgate.conf.properties import Entry
from headgate.core.quota.settings import KEYS, PREFIXES, QuotaSettings, mistakes_in, warnings_in

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_LIST: Final = "resourceGroupAdminTokens"
_SWITCHES: Final = {"true": True, "false": False}


def read_quota_settings(entries: Mapping[str, Entry], file: str, findings: Findings) -> QuotaSettings:
    """The settings in the entries of a broker.conf; blank values are defaults. What is wrong goes to `findings`."""
    values = {name: _value(name, entry.value.strip()) for name, entry in entries.items() if is_quota_key(name)}
    mistakes = list(mistakes_in(values))
    for mistake in mistakes:
        place = Place(file, mistake.key, entries[mistake.key].line)
        if mistake.key in KEYS:
            findings.mistake(place, mistake.got, mistake.allowed, mistake.remedy)
        else:
            findings.unknown_key(place, mistake.key, KEYS)
    findings.warnings += [f"{file}: {warning}" for warning in warnings_in(values)]
    return QuotaSettings() if mistakes else QuotaSettings.of(values)


def is_quota_key(name: str) -> bool:
    return name.startswith(PREFIXES)


def _value(name: str, text: str) -> object:
    """The text as the value that it spells; None for the default."""
    if not text:
        return None
    if name == _LIST:
        return [part.strip() for part in text.split(",")]
    if _INTEGER.fullmatch(text):
        return int(text)
    return _SWITCHES.get(text.lower(), text)
