"""What the broker side of the throttle protocol decides by: profile, overrides, and Pulsar's own key."""

from dataclasses import replace

import pytest

from headgate.conf import Conf, Settings, protocol_settings
from headgate.conf.settings import ProtocolSettings
from headgate.core.protocol.settings import BrokerSettings, PauseMode, ViolationPolicy

DEFAULT = BrokerSettings(doubling_extensions=True)
LITERAL = BrokerSettings.of({"profile": "literal", "doubling_extensions": True})


def conf(**keys) -> Conf:
    return Conf(settings=Settings(protocol=ProtocolSettings(**keys)))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, DEFAULT),
        ({"doubling_extensions": False}, BrokerSettings()),
        ({"watermark_delay_ms": 5000, "fan_out": "topic"}, DEFAULT),
        ({"profile": "literal"}, LITERAL),
        ({"profile": "literal", "violation_policy": "pause"}, replace(LITERAL, violation_policy=ViolationPolicy.PAUSE)),
        ({"pause_mode": "second_boundary"}, replace(DEFAULT, pause_mode=PauseMode.SECOND_BOUNDARY)),
        ({"hard_floor_pause_ms": 7}, replace(DEFAULT, hard_floor_pause_ms=7)),
    ],
)
def test_keys_override_the_profile(keys, expected):
    assert expected == protocol_settings(conf(**keys))


@pytest.mark.parametrize(("wait_ms", "is_on"), [(100, True), (1, True), (0, False), (-1, False)])
def test_brokers_conf_says_how_long_a_receipt_is_awaited(wait_ms, is_on):
    given = conf()
    settings = protocol_settings(replace(given, broker=replace(given.broker, throttle_receipt_wait_ms=wait_ms)))

    assert (wait_ms, is_on) == (settings.receipt_wait_ms, settings.is_on)
