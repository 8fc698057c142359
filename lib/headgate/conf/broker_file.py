"""broker.conf: an operator's file as it is, of which headgate reads the keys it knows."""

import re
from collections.abc import Mapping
from typing import Any, Final

from headgate.conf.broker import BROKER_KEYS, UNUSED_KEYS, BrokerConf, BrokerKey
from headgate.conf.cache_keys import is_cache_key
from headgate.conf.findings import Findings, Place, nearest, shown
from headgate.conf.properties import Entry
from headgate.conf.quota_keys import is_quota_key
from headgate.core.cache.settings import KEYS as CACHE_KEYS

_OWN_PREFIX: Final = "headgate"
# Keys of Pulsar that headgate does not read stay below 0.8; old and misspelt names of those it reads lie above 0.9.
_TYPING_MISTAKE: Final = 0.88
_LIKE: Final = 0.6
_LIKE_A_RATE: Final = re.compile("(publish|dispatch|subscribe|throttl).*rate|rate.*in(msg|message|byte)", re.IGNORECASE)


def read_broker_conf(entries: Mapping[str, Entry], file: str, findings: Findings) -> BrokerConf:
    """Return the settings in the entries of a broker.conf; what is wrong goes to `findings`, its key keeps the default.

    Keys that headgate does not read are ignored, except that one beginning with `headgate` is a mistake and one that
    looks like a typing mistake or a rate is a warning. A blank value is the default; for
    dispatchRateLimiterFactoryClassName it selects the classic limiter (rate-limiters.md 11).
    """
    values: dict[str, Any] = {}
    wrong: set[str] = set()
    for name, entry in entries.items():
        if is_quota_key(name) or is_cache_key(name):
            continue
        key = BROKER_KEYS.get(name)
        if key is None:
            _unknown(name, Place(file, name, entry.line), findings)
            continue
        text = entry.value.strip() or key.blank
        if not text:
            continue
        try:
            values[key.field] = key.read(text)
        except ValueError:
            wrong.add(name)
            findings.mistake(Place(file, name, entry.line), shown(text), key.allowed, _remedy(key))
    conf = BrokerConf(**values)
    _check_together(conf, entries, wrong, file, findings)
    return conf


def _remedy(key: BrokerKey) -> str:
    return f"correct it, or remove the line for the default ({key.default or 'not set'})"


def _unknown(name: str, place: Place, findings: Findings) -> None:
    if name.casefold().startswith(_OWN_PREFIX):
        findings.unknown_key(place, name, [key for key in BROKER_KEYS if key.startswith(_OWN_PREFIX)])
    elif name not in UNUSED_KEYS:
        is_rate = _LIKE_A_RATE.search(name) is not None
        near = nearest(name, (*BROKER_KEYS, *CACHE_KEYS), _LIKE if is_rate else _TYPING_MISTAKE)
        meant = f"if {near} is meant, correct it" if near else "docs/configuration.md has those that it reads"
        if near or is_rate:
            findings.warnings.append(f"{place}: headgate does not read this key; {meant}")


def _check_together(
    conf: BrokerConf, entries: Mapping[str, Entry], wrong: set[str], file: str, findings: Findings
) -> None:
    """Check the keys whose range depends on other keys; a key that is wrong by itself is not reported again."""

    def require(holds: bool, name: str, got: object, allowed: str, remedy: str, *others: str) -> None:
        if holds or wrong.intersection((name, *others)):
            return
        line = entries[name].line if name in entries else None
        findings.mistake(Place(file, name, line), "nothing" if got is None else str(got), allowed, remedy)

    require(
        conf.max_publish_buffer_mib <= 0 or conf.io_threads is not None,
        "numIOThreads",
        conf.io_threads,
        f"an integer from 1 while maxMessagePublishBufferSizeInMB is above 0 (it is {conf.max_publish_buffer_mib})",
        "write the broker's number of IO threads (Pulsar's default is twice its cores)",
        "maxMessagePublishBufferSizeInMB",
    )
    feature = "pulsarChannelPauseReceivingRequestsIfUnwritable"
    cooldown = "pulsarChannelPauseReceivingCooldownMs"
    cooling = conf.pause_receiving_if_unwritable and conf.pause_receiving_cooldown_ms > 0
    for name, value in (
        ("pulsarChannelPauseReceivingCooldownRateLimitPermits", conf.pause_receiving_cooldown_permits),
        ("pulsarChannelPauseReceivingCooldownRateLimitPeriodMs", conf.pause_receiving_cooldown_period_ms),
    ):
        require(
            not cooling or value >= 1,
            name,
            value,
            f"an integer from 1 while {feature} is true and {cooldown} is above 0",
            f"correct it, or set {cooldown} to 0 for no cooldown",
            feature,
            cooldown,
        )
    low, high = "pulsarChannelWriteBufferLowWaterMark", "pulsarChannelWriteBufferHighWaterMark"
    require(
        not conf.pause_receiving_if_unwritable
        or conf.write_buffer_low_water_mark_bytes <= conf.write_buffer_high_water_mark_bytes,
        low,
        conf.write_buffer_low_water_mark_bytes,
        f"up to {high} ({conf.write_buffer_high_water_mark_bytes}) while {feature} is true",
        "lower it, or raise the high mark",
        high,
        feature,
    )
