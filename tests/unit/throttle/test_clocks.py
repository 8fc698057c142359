"""When time is told to go on, and up to where."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headgate.conf import LiveSettings
from headgate.throttle.clocks import Clocks
from headgate.throttle.limits.control import FROM_THE_START
from headgate.throttle.schemas import PROGRESS

LIVE = LiveSettings(live_within_ms=60_000, live_lag_ms=2000)
NOW_S = 1000


def clocks(*domains, own=None):
    """Of (key, broker, highest event time in s, whether it is open); those of the broker `busy` have just had rows."""
    rows = [
        {
            "key": key,
            "broker": broker,
            "rows": int(broker == "busy"),
            "event_time_us": int(high_s * 1e6),
            "producers": 0,
            "is_open": is_open,
        }
        for key, broker, high_s, is_open in domains
    ]
    told = Clocks(own)
    told.take(pa.Table.from_pylist(rows, PROGRESS))
    return told


def due(*domains, is_idle, own=None, now_s=NOW_S, **options):
    """(key, broker, time in s) of each tick."""
    ticks = clocks(*domains, own=own).due_ticks(LIVE, now_s * 1_000_000, is_idle=is_idle, **options)
    return [
        (row["key"], row["broker"], (row["effective_time"] - FROM_THE_START) / timedelta(seconds=1)) for row in ticks
    ]


@pytest.mark.parametrize(
    ("domains", "is_idle", "expected"),
    [
        pytest.param([("k", "b", 990, True)], True, [(None, "b", 998)], id="live, idle: the wall clock less the lag"),
        pytest.param([("k", "b", 990, False)], True, [], id="nothing is open"),
        pytest.param([("k", "b", 998, True)], True, [], id="as far as the wall clock less the lag already"),
        pytest.param([("k", "b", 990, True)], False, [], id="input may still come, and no broker is further"),
        pytest.param([("k", "b", 940, True)], True, [], id="recorded: nothing is of the last minute"),
        pytest.param(
            [("k", "busy", 996, True), ("l", "quiet", 990, True)],
            False,
            [(None, "quiet", 994)],
            id="a quiet broker follows the busy ones",
        ),
        pytest.param(
            [("k", "busy", 970, True), ("l", "quiet", 950, True)],
            False,
            [(None, "quiet", 968)],
            id="behind a backlog as well, whatever the wall clock says",
        ),
        pytest.param(
            [("k", "busy", 900, True), ("l", "quiet", 800, True)], False, [], id="recorded brokers do not follow"
        ),
        pytest.param(
            [("k", "b", 995, False), ("l", "b", 990, True)],
            True,
            [(None, "b", 998)],
            id="one tick a broker, for all its keys",
        ),
        pytest.param([], True, [], id="nothing has come yet"),
        pytest.param(
            [("k", "ahead", 9999, True), ("l", "b", 990, True)],
            False,
            [],
            id="a broker that is ahead moves no other",
        ),
        pytest.param(
            [("k", "ahead", 9999, True), ("l", "b", 990, True)], True, [(None, "b", 998)], id="nor holds it back"
        ),
        pytest.param(
            [("k", "other", 999, True), ("l", "busy", 960, True)],
            False,
            [],
            id="who catches up is left alone",
        ),
    ],
)
def test_time_goes_on_where_something_is_open(domains, is_idle, expected):
    assert expected == due(*domains, is_idle=is_idle)


def test_topics_that_are_keys_hear_of_their_brokers_time_though_nothing_is_live():
    domains = [("t0", "b", 500, True), ("t1", "b", 510, True), ("t2", "b", 505, False)]
    assert [("t0", "b", 510)] == due(*domains, is_idle=True, by_topic=True)


@pytest.mark.parametrize(
    ("own", "domains", "is_idle", "expected"),
    [
        pytest.param(None, [("k", "b", 990, False)], True, [(None, "b", 998)], id="one job, nobody publishes"),
        pytest.param(
            None,
            [("k", "b", 990, False), ("l", "c", 980, False)],
            True,
            [(None, "b", 998)],
            id="one job: one broker is enough",
        ),
        pytest.param(
            None, [("k", "busy", 996, False), ("l", "b", 980, False)], False, [], id="one job: the busy one brings time"
        ),
        pytest.param(None, [], True, [], id="one job: nothing has come yet"),
        pytest.param("b", [("k", "b", 990, False)], True, [(None, "b", 998)], id="the own one is quiet"),
        pytest.param("b", [], True, [], id="nothing has come, of nobody: it may be recorded"),
        pytest.param("b", [("k", "c", 996, False)], False, [(None, "b", 994)], id="others alone have traffic"),
        pytest.param(
            "b", [("k", "b", 950, False), ("l", "c", 996, False)], False, [(None, "b", 994)], id="the own one paused"
        ),
        pytest.param(
            "busy",
            [("k", "busy", 950, False), ("l", "c", 996, False)],
            False,
            [],
            id="the own one is behind",
        ),
        pytest.param("b", [("k", "b", 500, False)], True, [], id="recorded"),
        pytest.param("b", [("k", "c", 500, False)], True, [], id="recorded, of others alone"),
        pytest.param("b", [("k", "c", 9999, False)], False, [], id="who is ahead brings no time"),
    ],
)
def test_where_quotas_are_shared_time_goes_on_for_who_is_quiet(own, domains, is_idle, expected):
    assert expected == due(*domains, own=own, is_idle=is_idle, shares=True)


def test_the_own_broker_follows_once_others_alone_have_traffic():
    told = clocks(("k", "busy", 990, False), ("l", "c", 990, False), own="busy")
    later = {"key": "l", "broker": "c", "rows": 0, "event_time_us": 998_000_000, "producers": 0, "is_open": False}
    told.take(pa.Table.from_pylist([later], PROGRESS))
    (tick,) = told.due_ticks(LIVE, NOW_S * 1_000_000, is_idle=False, shares=True)

    assert ("busy", FROM_THE_START + timedelta(seconds=996)) == (tick["broker"], tick["effective_time"])
