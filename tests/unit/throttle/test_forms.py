"""Both forms do the same, and how a stream is cut into batches does not matter."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import step_key
from headgate.throttle.state import VERSION, decode_state, encode_state
from unit.throttle.domains import (
    FORMS,
    assert_forms_agree,
    changes_block,
    end_us,
    events_block,
    in_kept_order,
    limit,
    picture,
    step_through,
    tick_block,
    whole,
)
from unit.throttle.drawn import all_rules, cuts, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, TOPICS, event

HOLD_BACK_MS = 2000
endings_us = st.sampled_from([0, 0, 1, SECOND_US, 40 * SECOND_US])


@settings(quick, max_examples=examples(60))
@given(traffic(), limit_changes(moves=4), all_rules(), endings_us, st.booleans())
def test_both_forms_write_the_same_rows_in_the_same_order_and_store_the_same_bytes(
    rows, changes, rules, after_us, finish
):
    batches = whole(rows, changes, finish=finish, until_us=end_us(rows) + after_us)
    assert_forms_agree(batches, rules)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(quick, max_examples=examples(30))
@given(st.data(), limit_changes(moves=4), all_rules(), endings_us, st.booleans())
def test_batches_and_ticks_change_nothing(form, data, changes, rules, after_us, finish):
    rows = data.draw(traffic())
    until_us = end_us(rows) + after_us
    batches = data.draw(cuts(rows))
    batches[0].append(changes_block(changes))
    batches[-1].append(tick_block(until_us))
    batches += [[tick_block(until_us, finish=True)]] if finish else []

    expected = step_through(whole(rows, changes, finish=finish, until_us=until_us), rules, form, stored=False)
    actual = step_through(batches, rules, form)

    assert in_kept_order(expected.marks, rules) == in_kept_order(actual.marks, rules)
    assert expected.written == actual.written
    assert picture(expected.state) == picture(actual.state)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_limiter_that_is_exceeded_for_ever_needs_no_more_space_and_releases_each_of_its_marks(form):
    changes = [limit("default", messages=1), limit("default", at_us=200 * SECOND_US, seq=1)]
    rows = [event(n * SECOND_US // 10, seq=n, messages=5, producer=f"p{n % 3}") for n in range(1000)]
    batches = [[events_block(rows[n : n + 50])] for n in range(0, len(rows), 50)]
    batches[0].append(changes_block(changes))
    early, late, end = (
        step_through(some, Rules(), form) for some in (batches[:2], batches, [*batches, [tick_block(201 * SECOND_US)]])
    )
    queues = [picture(outcome.state)[BROKER]["queues"][TOPICS[3]] for outcome in (early, late)]

    assert [("p0", 34), ("p1", 33), ("p2", 33)] == [(producer, count) for _, producer, _, count in queues[0]]
    assert [("p0", 334), ("p1", 333), ("p2", 333)] == [(producer, count) for _, producer, _, count in queues[1]]
    assert len(encode_state(late.state)) < len(encode_state(early.state)) + 100
    by_action = Counter((mark["action"], mark["producer"]) for mark in end.marks)
    assert {(action, f"p{n}"): 333 + (n == 0) for action in ("mark", "unmark") for n in range(3)} == by_action
    assert {} == picture(end.state)[BROKER]["queues"]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_with_a_quantum_marks_are_released_in_their_order_though_a_producer_has_several(form):
    rows = [event(n, seq=n, producer=producer) for n, producer in enumerate("abab")]
    batches = [[changes_block([limit("default", messages=1)]), events_block(rows[:2])], [events_block(rows[2:])]]
    outcome = step_through([*batches, [tick_block(10 * SECOND_US)]], Rules(release_quantum=2), form)
    released = [(mark["producer"], mark["at_ns"]) for mark in outcome.marks if mark["action"] == "unmark"]
    first_ns = released[0][1]

    assert [("a", 0), ("b", 0), ("a", 16_000_000), ("b", 16_000_000)] == [
        (name, at_ns - first_ns) for name, at_ns in released
    ]


@given(traffic(), limit_changes(moves=4), all_rules(), st.data())
@quick
def test_a_change_may_come_any_time_before_it_holds(rows, changes, rules, data):
    place = data.draw(st.integers(1, len(rows)))
    clock_us = rows[place - 1]["event_time_us"]
    batches = [
        [events_block(rows[:place]), changes_block([change for change in changes if change.effective_us <= clock_us])],
        [events_block(rows[place:]), changes_block([change for change in changes if change.effective_us > clock_us])],
        [tick_block(end_us(rows), finish=True)],
    ]

    assert step_through(whole(rows, changes), rules).written == step_through(batches, rules).written


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@quick
@given(st.data(), limit_changes(moves=4), all_rules())
def test_a_hold_back_puts_disordered_rows_in_order(form, data, changes, rules):
    rows = data.draw(traffic())
    delays_us = data.draw(
        st.lists(
            st.integers(0, HOLD_BACK_MS * 1000) | st.sampled_from([0, HOLD_BACK_MS * 1000]),
            min_size=len(rows),
            max_size=len(rows),
        )
    )
    arrival_us = [row["event_time_us"] + delay_us for row, delay_us in zip(rows, delays_us, strict=True)]
    disordered = [row for _, row in sorted(zip(arrival_us, rows, strict=True), key=lambda pair: pair[0])]
    place = data.draw(st.integers(0, len(rows)))
    batches = [
        [events_block(disordered[:place]), changes_block(changes)],
        [events_block(disordered[place:])],
        [tick_block(end_us(rows), finish=True)],
    ]

    held = step_through(batches, replace(rules, hold_back_ms=HOLD_BACK_MS), form)
    ordered = step_through(whole(rows, changes), rules, form)

    assert in_kept_order(ordered.marks, rules) == in_kept_order(held.marks, rules)
    assert ordered.written == held.written
    assert [domain.held for domain in held.state.domains.values()] == [{}] * len(held.state.domains)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_row_that_is_late_by_the_whole_hold_back_is_in_order_among_rows_of_its_instant(form):
    rows = [event(0, seq=0, messages=6), event(0, seq=1, messages=5), event(HOLD_BACK_MS * 1000, seq=2)]
    rules, limits = Rules(hold_back_ms=HOLD_BACK_MS), changes_block([limit("default", messages=10)])
    batches = [[limits, events_block(rows[1:])], [events_block(rows[:1])], [tick_block(HOLD_BACK_MS * 1000 + 1)]]

    assert [mark["seq"] for mark in step_through(batches, rules, form).marks] == [1]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@quick
@given(traffic(), limit_changes(moves=4), all_rules())
def test_a_step_from_the_same_bytes_gives_the_same_again(form, rows, changes, rules):
    half = len(rows) // 2
    first = step_through([[events_block(rows[:half]), changes_block(changes)]], rules, form)
    stored = encode_state(first.state)
    copy = bytes(bytearray(stored))
    blocks = [events_block(rows[half:]), tick_block(end_us(rows) + SECOND_US)]

    assert one_more(stored, blocks, rules, form) == one_more(stored, blocks, rules, form)
    assert copy == stored


def one_more(stored, blocks, rules, form):
    """The blocks that come out of one more batch on stored bytes, and the bytes after it."""
    state = decode_state(VERSION, stored)
    return step_key("key", state, blocks, rules, form), encode_state(state)
