"""Unloads of bundles in a domain: when each runs, what limits it, and what batches do not change."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.unload_limiter import UnloadLimiter
from headgate.throttle.form import Rules
from unit.throttle.domains import (
    changes_block,
    events_block,
    limit,
    picture,
    step_through,
    tick_block,
    unload_limit,
    unloads_block,
)
from unit.throttle.drawn import quick
from unit.throttle.rows import SECOND_US, START_US, event, unload

START_NS, SECOND_NS, MS_US, MS_NS = START_US * 1000, SECOND_US * 1000, 1000, 1_000_000
MAX = 2**63 - 1
ONE_A_SECOND = unload_limit(1, 60_000)


def ran(rows, *changes):
    return step_through([[changes_block(changes), unloads_block(rows)]], Rules()).unloads


def times(rows):
    """Starts and ends, in ms after START_US, and outcomes."""
    return [
        ((row["start_ns"] - START_NS) / MS_NS, (row["end_ns"] - START_NS) / MS_NS, row["outcome"][0]) for row in rows
    ]


def asked(*times_and_durations):
    """Rows of (time, duration), both in ms."""
    return [unload(at * MS_US, duration_ms=ms, seq=seq) for seq, (at, ms) in enumerate(times_and_durations)]


@pytest.mark.parametrize(
    ("limits", "rows", "expected"),
    [
        pytest.param(
            [],
            [(0, 1000), (0, 500), (100, 10), (5000, 20)],
            [(0, 1000, "d"), (1000, 1500, "d"), (1500, 1510, "d"), (5000, 5020, "d")],
            id="one after another",
        ),
        pytest.param(
            [],
            [(0, 60_000), (0, 60_001), (0, MAX)],
            [(0, 60_000, "d"), (60_000, 120_000, "t"), (120_000, 180_000, "t")],
            id="awaited for a minute where nothing is said",
        ),
        pytest.param(
            [unload_limit(0, 800)], [(0, 800), (0, 801)], [(0, 800, "d"), (800, 1600, "t")], id="up to the time-out"
        ),
        pytest.param(
            [ONE_A_SECOND],
            [(0, 10), (0, 10), (0, 10), (10_000, 10), (10_000, 10), (10_000, 10)],
            [(at, at + 10, "d") for at in (0, 1000, 2000, 10_000, 10_010, 11_000)],
            id="so many starts a second, the first without credit",
        ),
        pytest.param(
            [unload_limit(2, 800)],
            [(0, 700), (0, 900), (0, 0), (0, 0)],
            [(0, 700, "d"), (700, 1500, "t"), (1500, 1500, "d"), (1500, 1500, "d")],
            id="whatever comes last",
        ),
    ],
)
def test_an_unload_starts_when_the_one_before_has_ended_and_a_permit_is_due(limits, rows, expected):
    assert expected == times(ran(asked(*rows), *limits))


def test_a_row_says_who_asked_when_it_ran_exactly_and_under_which_limits():
    rows = [unload(0, "acme/ns0/b", seq=7), unload(1, "acme/ns1/c", seq=8, duration_ms=0)]
    third = ran(rows, unload_limit(3, 100))[1]

    assert (START_US + 1, "broker-1", "acme/ns1/c", 8, "done", 3, 100) == (
        round(third["event_time"].timestamp() * 1e6),
        *(third[name] for name in ("broker", "bundle", "seq", "outcome", "starts_per_s", "timeout_ms")),
    )
    assert (333_333_333, 333_333_333, 333_332_333) == (
        third["start_ns"] - START_NS,
        third["end_ns"] - START_NS,
        third["waited_ns"],
    )
    assert [333_333] * 2 == [round(third[name].timestamp() * 1e6) - START_US for name in ("start_time", "end_time")]


def test_limits_hold_from_their_time_on_before_unloads_of_that_instant_and_rewrite_nothing():
    changes = [
        unload_limit(0, 3000),
        unload_limit(0, 500, at_us=2 * SECOND_US),
        unload_limit(1, 500, at_us=3 * SECOND_US, seq=1),
        unload_limit(None, None, at_us=3 * SECOND_US, seq=2),
    ]
    rows = ran(asked((0, 2500), (1000, 2500), (2000, 2500), (3000, 2500)), *changes)

    assert [(0, 2500, "d"), (2500, 5000, "d"), (5000, 5500, "t"), (5500, 8000, "d")] == times(rows)
    assert [(0, 3000), (0, 3000), (0, 500), (0, 60_000)] == [(row["starts_per_s"], row["timeout_ms"]) for row in rows]


def test_limits_are_of_every_broker_or_of_one():
    rows = [unload(0, seq=seq, broker=broker, duration_ms=0) for broker in ("a", "b") for seq in range(2)]
    starts = {
        broker: [
            row["start_ns"] - START_NS
            for row in ran(rows, unload_limit(1, 9), unload_limit(4, 9, broker="b", seq=1))
            if row["broker"] == broker
        ]
        for broker in ("a", "b")
    }

    assert {"a": [0, SECOND_NS], "b": [0, SECOND_NS // 4]} == starts


def test_credit_is_cut_by_a_smaller_number_also_where_nothing_is_unloaded_meanwhile():
    """Of two permits that are left after idleness one stays, whatever comes after the smaller number."""
    idle = asked((0, 0), (9000, 0))
    changes = [unload_limit(1, 99, at_us=9_100 * MS_US), unload_limit(3, 99, at_us=9_200 * MS_US, seq=1)]
    batches = [
        [changes_block([unload_limit(3, 99)]), unloads_block(idle)],
        *([changes_block([change]), tick_block(9_300 * MS_US)] for change in changes),
        [unloads_block([unload(9_300 * MS_US, seq=9 + number, duration_ms=0) for number in range(4)])],
    ]
    starts = [start for start, *_ in times(step_through(batches, Rules()).unloads)[2:]]

    assert [9300, 9300, pytest.approx(9300 + 100 / 3), pytest.approx(9300 + 1100 / 3)] == starts


def test_a_late_unload_acts_at_the_domains_clock_and_has_waited_since_its_own_time():
    batches = [
        [unloads_block([unload(0, duration_ms=1)]), tick_block(9 * SECOND_US)],
        [unloads_block([unload(SECOND_US, seq=1, duration_ms=1)])],
    ]
    late = step_through(batches, Rules()).unloads[1]

    assert (9 * SECOND_NS, 8 * SECOND_NS) == (late["start_ns"] - START_NS, late["waited_ns"])


def test_a_brokers_first_unload_acts_at_the_domains_clock_too():
    batches = [[events_block([event(0)]), tick_block(9 * SECOND_US)], [unloads_block(asked((1000, 5)))]]

    assert [(9000, 9005, "d")] == times(step_through(batches, Rules()).unloads)


def test_a_late_limit_holds_for_unloads_from_the_domains_clock_on():
    """Of several the last that comes, which rewrites nothing."""
    late = [unload_limit(0, 300, at_us=SECOND_US), unload_limit(0, 400, at_us=2 * SECOND_US, seq=1)]
    batches = [
        [unloads_block(asked((3000, 500)))],
        [changes_block(late), unloads_block([unload(SECOND_US // 2, seq=9, duration_ms=500)])],
    ]

    assert [(3000, 3500, "d"), (3500, 3900, "t")] == times(step_through(batches, Rules()).unloads)


def test_a_first_publish_brings_no_limit_of_unloads_back_that_another_has_replaced():
    changes = [unload_limit(1, 100), unload_limit(2, 200, at_us=5 * SECOND_US, seq=1)]
    first = [changes_block(changes), events_block([event(3 * SECOND_US)]), tick_block(6 * SECOND_US)]
    row = step_through([first, [unloads_block([unload(7 * SECOND_US)])]], Rules()).unloads[0]

    assert (2, 200) == (row["starts_per_s"], row["timeout_ms"])


def test_with_a_hold_back_unloads_wait_and_keep_the_domain_open():
    rules = Rules(hold_back_ms=1000)
    first = [unloads_block([unload(5, seq=1)])]
    early = step_through([first], rules)
    late = step_through([first, [unloads_block([unload(0)])], [tick_block(2 * SECOND_US)]], rules)

    assert ([], True) == (early.unloads, early.state.domains["broker-1"].is_open)
    assert [0, 1] == [row["seq"] for row in late.unloads]
    assert not late.state.domains["broker-1"].is_open


def test_an_unload_is_decided_as_it_comes_and_leaves_nothing_open():
    outcome = step_through([[unloads_block(asked((0, 50_000), (0, 50_000), (0, 50_000)))]], Rules())

    assert [0, 50_000, 100_000] == [start for start, *_ in times(outcome.unloads)]
    assert not outcome.state.domains["broker-1"].is_open


def test_unloads_and_publishes_do_not_know_each_other():
    changes = [ONE_A_SECOND, limit("default", messages=1)]
    publishes, unloads = [event(at, seq=at) for at in range(4)], [unload(at, seq=at) for at in range(4)]
    both = step_through([[changes_block(changes), events_block(publishes), unloads_block(unloads)]], Rules())
    one, other = (
        step_through([[changes_block(changes), block]], Rules())
        for block in (events_block(publishes), unloads_block(unloads))
    )

    assert (one.marks, other.unloads) == (both.marks, both.unloads)
    assert one.marks


TIMES = st.integers(0, 40).map(lambda at: at * SECOND_US // 4)
UNLOADS = st.lists(st.tuples(TIMES, st.sampled_from([0, 1, 250, 700, 3000, MAX])), max_size=30).map(
    lambda drawn: [unload(at, seq=seq, duration_ms=ms) for seq, (at, ms) in enumerate(sorted(drawn))]
)
LIMITS = st.lists(
    st.builds(
        lambda limit, at, broker: unload_limit(*limit, at_us=at, broker=broker),
        st.sampled_from([(0, 500), (1, 500), (3, 2000), (7, 60_000), (None, None)]),
        TIMES,
        st.sampled_from([None, "broker-1", "broker-2"]),
    ),
    max_size=5,
).map(lambda changes: [replace(change, seq=seq) for seq, change in enumerate(changes)])
BOUNDED = st.lists(
    st.builds(lambda n, at: unload_limit(n, 500, at_us=at), st.sampled_from([1, 2, 5]), TIMES), max_size=4
)


@quick
@given(UNLOADS, LIMITS, st.sampled_from([0, 400]), st.data())
def test_neither_batches_nor_ticks_nor_the_state_between_them_change_when_an_unload_runs(
    rows, limits, hold_back_ms, data
):
    rules = Rules(hold_back_ms=hold_back_ms)
    end = [tick_block(60 * SECOND_US, finish=True)]
    changes = changes_block([unload_limit(2, 900), *limits])
    whole = step_through([[changes, unloads_block(rows)], end], rules, stored=False)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [rows[low:high] for low, high in pairwise([0, *cuts, len(rows)])]
    batches = [[unloads_block(part), tick_block(part[-1]["event_time_us"] - START_US)] for part in parts if part]
    cut = step_through([[changes], *batches, end], rules)

    assert replace(whole, state=None) == replace(cut, state=None)
    assert picture(whole.state) == picture(cut.state)


@quick
@given(UNLOADS, LIMITS)
def test_unloads_run_when_the_limiter_of_their_broker_says(rows, limits):
    changes = [change for change in limits if change.broker != "broker-2"]
    operations = [(change.effective_us, 0, change.seq, change) for change in changes]
    operations += [(row["event_time_us"], 1, row["seq"], row) for row in rows]
    limiter, in_force, expected = None, (2, 900), []
    for at_us, is_unload, _, what in sorted(operations, key=lambda operation: operation[:3]):
        if not is_unload:
            in_force = (0, 60_000) if what.starts_per_s is None else (what.starts_per_s, what.timeout_ms)
            if limiter:
                limiter.update(*in_force, at_us * 1000)
            continue
        limiter = limiter or UnloadLimiter(in_force[0], timeout_ms=in_force[1], created_ns=at_us * 1000)
        expected.append(limiter.unload(min(what["duration_ms"] * MS_NS, MAX), at_us * 1000))

    decided = ran(rows, unload_limit(2, 900), *limits)
    assert expected == [(row["start_ns"], row["end_ns"], row["outcome"]) for row in decided]


@quick
@given(UNLOADS, BOUNDED)
def test_i15_unloads_never_overlap_and_any_window_holds_so_many_starts(rows, limits):
    """Where limits change, the largest one bounds a window."""
    decided = ran(rows, ONE_A_SECOND, *limits)
    most = max((change.starts_per_s for change in limits), default=1)

    assert all(before["end_ns"] <= after["start_ns"] for before, after in pairwise(decided))
    assert all(0 <= row["waited_ns"] and row["start_ns"] <= row["end_ns"] for row in decided)
    for first, row in enumerate(decided):
        for count, last in enumerate(decided[first:], start=1):
            assert count <= most * (Fraction(last["start_ns"] - row["start_ns"], SECOND_NS) + 1) + 2
