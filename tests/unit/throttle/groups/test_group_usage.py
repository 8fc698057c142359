"""What groups used, slot by slot, and when their limiters made producers wait (resource-groups 6)."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.numbers import MAX
from headgate.throttle.form import Rules
from unit.throttle.domains import (
    FORMS,
    GROUP_OF,
    attach,
    changes_block,
    dispatches_block,
    end_us,
    events_block,
    limit,
    merged_usage,
    merged_waits,
    step_through,
    tick_block,
    whole,
)
from unit.throttle.drawn import all_rules, cuts, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, dispatch, event

T0, T1 = TOPICS[:2]
MS_US = 1000
START_MS = START_US // 1000
SLOTS = Rules(slot_ms=250, epoch_ms=1000)
OFFERED = replace(SLOTS, offered=True)
ATTACHED = [attach(T0, "gold"), attach(T1, "gold")]
AMOUNTS = ("admitted_msgs", "admitted_bytes", "offered_msgs", "offered_bytes", "topics")
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
with_slots = st.sampled_from([250, 1000])


def used(outcome):
    """Usage as (ms after the start, group, columns of AMOUNTS)."""
    return [
        (row["at_ms"] - START_MS, row["group"], *(row[name] for name in AMOUNTS))
        for row in sorted(outcome.group_usage, key=lambda row: row["at_ms"])
    ]


def waited(outcome):
    """Waits as (from and until in ms after the start, throttled messages, bytes)."""
    return [
        (row["from_ms"] - START_MS, row["until_ms"] - START_MS, row["throttled_msgs"], row["throttled_bytes"])
        for row in outcome.group_waits
    ]


@both_forms
def test_admitted_traffic_is_counted_in_the_slot_in_which_it_acts(form):
    rows = [
        event(0, T0, messages=3, bytes_=30),
        event(249_999, T1, seq=1, messages=4, bytes_=40),
        event(250_000, T0, seq=2, messages=5, bytes_=50),
        event(1_000_000, T0, seq=3, messages=6, bytes_=60),
        event(1_000_001, TOPICS[3], seq=4, messages=99),
    ]

    assert [
        (0, "gold", 7, 70, 7, 70, 2),
        (250, "gold", 5, 50, 5, 50, 0),
        (1000, "gold", 6, 60, 6, 60, 1),
    ] == used(step_through(whole(rows, ATTACHED), SLOTS, form))


@both_forms
def test_offered_traffic_is_offered_as_it_comes_and_admitted_as_it_is_let_in(form):
    rows = [event(0, T0, messages=15), event(1, T0, seq=1, messages=2), event(2, T0, seq=2, messages=70)]
    changes = [*ATTACHED, limit("group", "gold", 10)]
    outcome = step_through(whole(rows, changes, until_us=SECOND_US), OFFERED, form)

    assert [(0, "gold", 15, 0, 87, 0, 1), (500, "gold", 2, 0, 0, 0, 0), (750, "gold", 70, 0, 0, 0, 0)] == used(outcome)


@both_forms
def test_a_group_is_left_when_the_last_of_its_topics_goes_to_another(form):
    """Publishes of T0 and T1, dispatches of T0 alone; T0 goes first."""
    publishes = [event(0, T0), event(1, T1, seq=1)]
    moves = [attach(T0, "iron", at_us=SECOND_US), attach(T1, "iron", at_us=2 * SECOND_US)]
    blocks = [changes_block([*ATTACHED, *moves]), events_block(publishes), dispatches_block([dispatch(0, T0)])]
    ends = [[tick_block((second + 1) * SECOND_US)] for second in range(3)]
    told = [step_through([blocks, *ends[:count]], SLOTS, form).group_leaves for count in (0, 1, 3)]

    of_dispatch, of_publish = ({"broker": BROKER, "group": "gold", "class": number} for number in (1, 0))
    assert [[], [of_dispatch], [of_dispatch, of_publish]] == told
    assert [] == step_through([blocks, *ends], Rules(), form).group_leaves


@both_forms
def test_a_group_is_not_left_while_a_topic_stays_or_comes_from_elsewhere(form):
    changes = [attach("acme", "gold", "tenant"), attach("acme", None, "tenant", at_us=SECOND_US)]
    changes.append(attach(T1, "gold", at_us=SECOND_US))
    blocks = [changes_block(changes), events_block([event(0, T0), event(1, T1, seq=1)]), tick_block(2 * SECOND_US)]

    assert [] == step_through([blocks], SLOTS, form).group_leaves


GOLD_TO_IRON_AND_BACK = [attach(T0, "iron", at_us=SECOND_US), attach(T0, "gold", at_us=2 * SECOND_US)]


@both_forms
@pytest.mark.parametrize(
    ("moves", "ticks_s", "left"),
    [
        pytest.param(GOLD_TO_IRON_AND_BACK, [2], ["iron"], id="away and back in one batch"),
        pytest.param(GOLD_TO_IRON_AND_BACK, [1, 2], ["gold", "iron"], id="away and back in two, each told at its end"),
        pytest.param(
            [*GOLD_TO_IRON_AND_BACK, attach(T1, "iron", at_us=3 * SECOND_US)], [1, 2, 3], ["iron"], id="one came back"
        ),
        pytest.param(
            [*GOLD_TO_IRON_AND_BACK, *(attach(topic, "lead", at_us=3 * SECOND_US) for topic in (T0, T1))],
            [1, 2, 3],
            ["iron", "gold"],
            id="all went, one of them twice without a row between",
        ),
        pytest.param(
            [attach(T0, "iron", at_us=SECOND_US), attach(T0, "lead", at_us=2 * SECOND_US)],
            [1, 2],
            ["gold", "iron"],
            id="on to a third without a row between",
        ),
    ],
)
def test_who_has_topics_left_is_asked_when_the_batch_ends_and_of_topics_that_were_moved_before(
    form, moves, ticks_s, left
):
    topics = (T0, T1) if any(move.name == T1 for move in moves) else (T0,)
    publishes = [event(number, topic, seq=number) for number, topic in enumerate(topics)]
    first = [changes_block([*ATTACHED, *moves]), events_block(publishes)]
    told = step_through([first, *([tick_block(second * SECOND_US)] for second in ticks_s)], SLOTS, form).group_leaves

    assert left == [row["group"] for row in told]


def test_a_topic_is_counted_once_an_epoch_in_each_group_that_it_had():
    rows = [event(at_us * MS_US, T0, seq=at_us) for at_us in (0, 300, 600, 900, 1200)]
    changes = [attach(T0, "a"), attach(T0, "b", at_us=500 * MS_US), attach(T0, "a", at_us=800 * MS_US)]
    batches = [[changes_block(changes)], *([events_block([row])] for row in rows)]

    for outcome in (step_through(whole(rows, changes), SLOTS), step_through(batches, SLOTS)):
        assert [(0, "a", 1), (250, "a", 0), (500, "b", 1), (750, "a", 0), (1000, "a", 1)] == [
            (at_ms, group, row[-1]) for at_ms, group, *row in used(outcome)
        ]


@pytest.mark.parametrize("rules", [SLOTS, OFFERED])
def test_sums_stop_at_the_largest_number(rules):
    rows = [event(0, T0, seq=seq, messages=MAX, bytes_=1, producer=f"p{seq}") for seq in range(3)]

    assert [(0, "gold", MAX, 3, MAX, 3, 1)] == used(step_through(whole(rows, ATTACHED), rules))


@pytest.mark.parametrize(("rules", "changes"), [(Rules(), ATTACHED), (SLOTS, [])])
def test_nothing_is_told_without_slots_or_attachments(rules, changes):
    rows = [event(0, T0, messages=10)]
    outcome = step_through(whole(rows, [*changes, limit("group", "gold", 1)]), rules)

    assert ([], []) == (outcome.group_usage, outcome.group_waits)
    assert 0 == len(outcome.state.domains[BROKER].known_topics.topic)


@both_forms
def test_a_wait_lasts_while_the_queue_is_not_empty_and_says_for_what(form):
    rows = [event(0, T0, messages=15, bytes_=1), event(100 * MS_US, T1, seq=1, messages=0, bytes_=1500)]
    changes = [*ATTACHED, limit("group", "gold", 10, 1000)]
    outcome = step_through(whole(rows, changes, until_us=5 * SECOND_US), SLOTS, form)

    (first, second) = waited(outcome)
    assert ((0, 100, True, False), (100, True, True)) == (first, (second[0], *second[2:]))
    assert 600 <= second[1] <= 617


@both_forms
def test_a_wait_that_goes_on_is_told_as_far_as_time_has_come(form):
    batches = whole([event(0, T0, messages=30)], [*ATTACHED, limit("group", "gold", 10)], until_us=0, finish=False)
    batches += [[tick_block(at_us)] for at_us in (500 * MS_US, 500 * MS_US, 1_500_500, 5 * SECOND_US)]

    assert [(0, 500), (500, 1501), (1500, 2100)] == [wait[:2] for wait in waited(step_through(batches, SLOTS, form))]


@both_forms
def test_a_wait_without_a_length_is_told_all_the_same(form):
    rows = [event(0, T0, messages=30), event(0, T0, seq=1, messages=30)]
    changes = [*ATTACHED, limit("group", "gold", 10), attach(T0, None, at_us=1)]
    late = [*whole(rows, changes[:-1], until_us=0, finish=False), [changes_block(changes[-1:]), tick_block(1)]]

    for batches in (whole(rows, changes, until_us=1), late):
        assert {(0, 1, True, False)} == set(waited(step_through(batches, SLOTS, form)))


@both_forms
def test_a_blocked_group_waits_until_it_is_lifted(form):
    changes = [*ATTACHED, limit("group", "gold", None, 0), limit("group", "gold", at_us=SECOND_US)]
    outcome = step_through(whole([event(0, T0)], changes, until_us=2 * SECOND_US), OFFERED, form)

    assert [(0, 1000, False, True)] == waited(outcome)
    assert [(0, "gold", 0, 0, 1, 0, 1), (1000, "gold", 1, 0, 0, 0, 1)] == used(outcome)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(quick, max_examples=examples(30))
@given(st.data(), limit_changes(moves=4), all_rules(), with_slots, st.sampled_from([0, 1, 40 * SECOND_US]))
def test_usage_and_waits_do_not_depend_on_batches(form, data, changes, rules, slot_ms, after_us):
    rows = data.draw(traffic())
    rules = replace(rules, slot_ms=slot_ms)
    until_us = end_us(rows) + after_us
    batches = data.draw(cuts(rows))
    batches[0].append(changes_block(changes))
    batches[-1].append(tick_block(until_us))
    expected = step_through(whole(rows, changes, until_us=until_us, finish=False), rules, form, stored=False)
    actual = step_through(batches, rules, form)

    assert merged_usage(expected) == merged_usage(actual)
    assert merged_waits(expected) == merged_waits(actual)


@settings(quick, max_examples=examples(40))
@given(traffic(replication=False), limit_changes(), all_rules(), with_slots)
def test_usage_of_groups_is_that_of_their_topics(rows, changes, rules, slot_ms):
    outcome = step_through(whole(rows, changes), replace(rules, slot_ms=slot_ms))
    expected, actual = Counter(), Counter()
    for row in outcome.usage:
        if group := GROUP_OF[row["topic"]]:
            admitted = "admitted_" if rules.offered else ""
            expected[group, "offered_msgs"] += row["messages"]
            expected[group, "offered_bytes"] += row["bytes"]
            expected[group, "admitted_msgs"] += row[f"{admitted}messages"]
            expected[group, "admitted_bytes"] += row[f"{admitted}bytes"]
    for row in outcome.group_usage:
        for name in AMOUNTS[:4]:
            actual[row["group"], name] += row[name]

    assert +expected == +actual


@settings(quick, max_examples=examples(40))
@given(traffic(), limit_changes(moves=4), all_rules(), with_slots)
def test_waits_are_the_times_in_which_a_groups_queue_is_not_empty(rows, changes, rules, slot_ms):
    until_us = end_us(rows) + SECOND_US
    outcome = step_through(whole(rows, changes, until_us=until_us), replace(rules, slot_ms=slot_ms))
    depth, spans = Counter(), {}
    for mark in outcome.marks:
        if mark["scope"] != "group":
            continue
        if depth[mark["limiter"]] == 0:
            spans.setdefault(mark["limiter"], []).append([mark["at_ns"], (START_US + until_us) * 1000])
        depth[mark["limiter"]] += 1 if mark["action"] == "mark" else -1
        if depth[mark["limiter"]] == 0:
            spans[mark["limiter"]][-1][1] = mark["at_ns"]
    expected = {
        name: covered([(a // 10**6, max(-(-b // 10**6), a // 10**6 + 1)) for a, b in of]) for name, of in spans.items()
    }
    found = {}
    for row in outcome.group_waits:
        found.setdefault(row["group"], []).append((row["from_ms"], row["until_ms"]))

    assert expected == {name: covered(of) for name, of in found.items()}


def covered(spans):
    """The union of spans, as spans that do not touch."""
    union = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([start, end])
    return union
