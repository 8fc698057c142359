"""Limit changes that a key keeps for brokers yet to come: few, and nobody can tell (docs/tables.md, control)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.kernels.columns import NO_VALUE
from headgate.throttle import key_operator
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import HISTORY_US, SPARE_CHANGES
from headgate.throttle.limits.changes import in_order, without_superseded
from headgate.throttle.limits.effective_limits import EffectiveLimits
from unit.throttle.domains import changes_block, events_block, limit, step_through, tick_block
from unit.throttle.drawn import all_rules, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, START_US, event

MANY = 3 * SPARE_CHANGES
BROKERS = [BROKER, "broker-2", "broker-3", "broker-4"]


def default_by_second(first_s, last_s):
    """The limit of all topics is 1 + s messages a second from second s on."""
    changes = [limit("default", messages=1 + s, at_us=s * SECOND_US, seq=s) for s in range(first_s, last_s)]
    return changes_block(changes)


def rate_of_new_broker(batches, at_us, rules):
    """Messages a second that a topic of a broker without earlier events gets at `at_us`, and the state behind it."""
    last = [[events_block([event(at_us, broker="new")])], [tick_block(at_us, broker="new", finish=True)]]
    outcome = step_through([*batches, *last], rules)
    return int(outcome.state.domains["new"].limiters["rate"][0, 0]), outcome.state


@quick
@given(limit_changes(most=20, moves=10), st.integers(0, 8 * SECOND_US), st.integers(0, 4 * SECOND_US))
def test_what_is_left_makes_the_same_limits_from_the_horizon_on(changes, horizon_us, later_us):
    left = without_superseded(changes, START_US + horizon_us)
    at_us = START_US + horizon_us + later_us
    books = [
        EffectiveLimits.from_changes(in_order(change for change in some if change.effective_us <= at_us))
        for some in (changes, left)
    ]

    assert sorted(books[0].changes(), key=repr) == sorted(books[1].changes(), key=repr)
    assert [c for c in changes if c.effective_us > at_us] == [c for c in left if c.effective_us > at_us]
    assert all(left.count(change) <= changes.count(change) for change in left)


@quick
@given(st.data(), traffic(), limit_changes(most=20, moves=10), all_rules(hold_back_ms=0))
def test_brokers_that_come_in_the_order_of_time_cannot_tell_that_changes_were_dropped(data, rows, changes, rules):
    """The strictest horizon: right at the highest time heard of, with nothing to spare."""
    place = st.integers(0, len(rows))
    of_row = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    rows = [row | {"broker": BROKERS[min(n, i // 8)]} for i, (row, n) in enumerate(zip(rows, of_row, strict=True))]
    ends = [0, *sorted(data.draw(st.lists(place, max_size=6))), len(rows)]
    batches = [[events_block(rows[start:end])] for start, end in pairwise(ends)]
    for change in changes:
        batches[data.draw(st.integers(0, len(batches) - 1))].append(changes_block([change]))
    batches = [[block for block in batch if block.rows] for batch in batches]
    batches.append([tick_block(60 * SECOND_US, finish=True)])

    kept = step_through(batches, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_operator, "HISTORY_US", 0)
        patch.setattr(key_operator, "SPARE_CHANGES", 0)
        dropped = step_through(batches, rules)

    assert kept.written == dropped.written
    assert kept.state.domains.keys() == dropped.state.domains.keys()


def test_history_stays_an_hour_and_a_spare_long_however_often_limits_change():
    hours, hour_s = 2, HISTORY_US // SECOND_US
    batches = [[events_block([event(0)])]]
    batches += [
        [default_by_second(s, s + 600), tick_block((s + 600) * SECOND_US)] for s in range(0, hours * hour_s, 600)
    ]
    _, state = rate_of_new_broker(batches, hours * hour_s * SECOND_US, Rules())

    assert hour_s <= len(state.changes) <= hour_s + SPARE_CHANGES + 600


@pytest.mark.parametrize("together", [True, False])
def test_keys_without_a_broker_forget_as_all_others_do(together):
    tick, changes = tick_block(HISTORY_US + MANY * SECOND_US, broker="elsewhere"), default_by_second(0, MANY)
    state = step_through([[tick, changes]] if together else [[tick], [changes]], Rules()).state

    assert ({}, 1) == (state.domains, len(state.changes))


@pytest.mark.parametrize("hold_back_ms", [0, 60_000])
def test_a_broker_up_to_an_hour_and_the_hold_back_behind_meets_the_limits_of_its_time(hold_back_ms):
    reached_us = HISTORY_US + hold_back_ms * 1000 + MANY * SECOND_US
    batches = [[events_block([event(0)])], [default_by_second(0, MANY + 10), tick_block(reached_us)]]
    rate, state = rate_of_new_broker(batches, MANY * SECOND_US, Rules(hold_back_ms=hold_back_ms))

    assert (1 + MANY, START_US + MANY * SECOND_US) == (rate, state.forgotten_us)


@pytest.mark.parametrize("behind_us", [1, MANY * SECOND_US])
def test_a_broker_further_behind_meets_the_limits_of_the_horizon(behind_us):
    batches = [
        [events_block([event(0)])],
        [default_by_second(0, MANY + 10), tick_block(HISTORY_US + MANY * SECOND_US)],
    ]
    rate, _ = rate_of_new_broker(batches, MANY * SECOND_US - behind_us, Rules())

    assert 1 + MANY == rate


def test_a_new_topic_of_a_broker_heard_of_that_far_behind_meets_the_limits_of_the_horizon():
    batches = [
        [events_block([event(0)]), tick_block(0, broker="new")],
        [default_by_second(0, MANY + 10), tick_block(HISTORY_US + MANY * SECOND_US, broker=BROKER)],
    ]
    rate, _ = rate_of_new_broker(batches, 5 * SECOND_US, Rules())

    assert 1 + MANY == rate


def test_few_changes_are_kept_whatever_their_age():
    batches = [[events_block([event(0)])], [default_by_second(0, SPARE_CHANGES), tick_block(100 * HISTORY_US)]]
    rate, state = rate_of_new_broker(batches, 7 * SECOND_US, Rules())

    assert (8, NO_VALUE, SPARE_CHANGES) == (rate, state.forgotten_us, len(state.changes))
