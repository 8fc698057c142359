"""Steps over long gaps, and levels that are read back from the state (rate-limiters 6.3)."""

from dataclasses import replace

import pytest

from headgate.throttle.form import Rules
from unit.throttle.domains import (
    assert_forms_agree,
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    events_block,
    merged_waits,
    step_through,
    tick_block,
)
from unit.throttle.level_runs import OFFERED, T0, both_forms, of_broker, of_topics, total
from unit.throttle.rows import SECOND_US, dispatch, event

GROUPS, STARTS = 12, 20


def batches_with_a_gap(until_us):
    """Reads that wait for their groups while others put the broker's level into debt again and again, then time alone.

    Each start of the others ends the waits of all groups, which begin anew: without a row, and many times a row.
    """
    topics = [f"persistent://acme/ns/of-{number}" for number in range(GROUPS)]
    changes = [attach(topic, f"group-{number}") for number, topic in enumerate(topics)]
    changes += [dispatch_limit(f"group-{number}", 1, None) for number in range(GROUPS)]
    changes.append(of_broker(100, at_us=SECOND_US // 2))
    rows = [
        dispatch(at_us, topic, seq=2 * number + turn, messages=messages)
        for number, topic in enumerate(topics)
        for turn, (at_us, messages) in enumerate([(number, 300), (number + 1000, 5)])
    ]
    rows += [
        dispatch(600_000 + number, "persistent://acme/ns/free", seq=2 * GROUPS + number, messages=300)
        for number in range(STARTS)
    ]
    changes = [replace(change, seq=seq) for seq, change in enumerate(changes)]
    return [[changes_block(changes), dispatches_block(rows)], [tick_block(until_us)]]


@pytest.mark.parametrize("gap_s", [1, 200])
def test_both_forms_tell_the_waits_of_a_gap_however_many_they_are(gap_s):
    assert_forms_agree(batches_with_a_gap(gap_s * SECOND_US), replace(OFFERED, slot_ms=1000))


@both_forms
def test_a_gap_in_one_step_tells_the_waits_of_many_short_ones(form):
    rules = replace(OFFERED, slot_ms=1000)
    first, _ = batches_with_a_gap(0)
    whole, cut = (
        step_through([first, *([tick_block(at_s * SECOND_US)] for at_s in ends)], rules, form)
        for ends in ([60], range(2, 61, 2))
    )

    assert 10 * GROUPS < len(whole.group_waits)
    assert merged_waits(whole) == merged_waits(cut)


@both_forms
@pytest.mark.parametrize("cut", [False, True])
def test_a_debt_bound_of_nothing_stays_as_the_level_was_made(form, cut):
    """It follows from the rate before the topic was published to: less than a token."""
    rules = Rules(max_debt_ms=900, stats_interval_s=10)
    rows = [dispatch(0), dispatch(19 * SECOND_US, messages=500, seq=50)]
    rows += [dispatch((21 + number) * SECOND_US + 5, seq=60 + number) for number in range(20)]
    publishes = [event(number * SECOND_US, T0, messages=100, seq=number) for number in range(10)]
    first = [changes_block([of_topics(1, relative=True)]), dispatches_block(rows[:1]), events_block(publishes)]
    then = [dispatches_block(rows[1:]), tick_block(50 * SECOND_US)]
    batches = [[*first, tick_block(12 * SECOND_US)], then] if cut else [[*first, *then]]
    outcome = step_through(batches, rules, form)

    assert (12, 10) == total(outcome, "allowed_reads", "held_by_topic")
