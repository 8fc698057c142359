"""The throttle tracker, step by step (rate-limiters 5)."""

import pytest

from headgate.core.publish.throttle_tracker import ThrottleTracker, ThrottleType
from headgate.errors import InvalidArgument, StateError

REQUESTS, THREAD, TOPIC, GROUP, BROKER, BUFFER, COOLDOWN = ThrottleType
CONNECTION, TYPE, DROPPED = "ConnectionStateChanged", "TypeStateChanged", "Dropped"


def test_the_order_of_types_is_fixed():
    assert list(ThrottleType) == [
        "ConnectionMaxPendingPublishRequestsExceeded",
        "IOThreadMaxPendingPublishBytesExceeded",
        "TopicPublishRate",
        "ResourceGroupPublishRate",
        "BrokerPublishRate",
        "ConnectionOutboundBufferFull",
        "ConnectionPauseReceivingCooldownRateLimit",
    ]
    assert [kind for kind in ThrottleType if kind.is_counter] == [TOPIC, GROUP]


def test_counters_count_and_flags_drop():
    tracker = ThrottleTracker()
    steps = [
        ("mark", BROKER, CONNECTION, False, 1),
        ("mark", BROKER, DROPPED, False, 1),
        ("mark", GROUP, TYPE, False, 2),
        ("mark", GROUP, TYPE, False, 3),
        ("unmark", BROKER, TYPE, False, 2),
        ("unmark", BROKER, DROPPED, False, 2),
        ("unmark", GROUP, TYPE, False, 1),
        ("unmark", TOPIC, DROPPED, False, 1),
        ("unmark", GROUP, CONNECTION, True, 0),
        ("unmark", GROUP, DROPPED, True, 0),
    ]
    for operation, kind, result, auto_read, total in steps:
        assert getattr(tracker, operation)(kind) == result
        assert (tracker.auto_read, tracker.total) == (auto_read, total)
    assert tracker.metrics() == {"paused": 1, "resumed": 1, "throttled_connections": 0}


def test_a_closed_connection_counts_on_but_is_not_read_again():
    tracker = ThrottleTracker()
    tracker.mark(TOPIC)
    tracker.close()

    assert tracker.unmark(TOPIC) == CONNECTION
    assert tracker.mark(REQUESTS) == CONNECTION
    assert (tracker.auto_read, tracker.counts()) == (False, {REQUESTS: 1})
    assert tracker.metrics() == {"paused": 1, "resumed": 0, "throttled_connections": 1}


def test_throttled_connections_follows_the_first_type_alone():
    tracker = ThrottleTracker()
    tracker.mark(REQUESTS)
    tracker.mark(REQUESTS)
    tracker.mark(THREAD)
    assert tracker.throttled_connections == 1
    tracker.unmark(REQUESTS)
    tracker.unmark(REQUESTS)
    assert tracker.throttled_connections == 0


def test_counts_are_in_the_fixed_order_also_after_loading():
    tracker = ThrottleTracker()
    for kind in (COOLDOWN, TOPIC, REQUESTS):
        tracker.mark(kind)

    assert list(ThrottleTracker.from_state(tracker.state()).counts()) == [REQUESTS, TOPIC, COOLDOWN]


def test_unknown_types_and_states_are_refused():
    tracker = ThrottleTracker()
    for operation in (tracker.mark, tracker.unmark):
        with pytest.raises(InvalidArgument, match="BrokerPublishRate"):
            operation("NoSuchType")
    with pytest.raises(InvalidArgument):
        ThrottleTracker(active=1)
    with pytest.raises(StateError):
        ThrottleTracker.from_state({"counts": []})
