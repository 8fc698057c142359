"""One key of the operator, step by step: late rows, ticks, brokers, limits for those yet to come."""

from dataclasses import replace

import pyarrow as pa
import pytest

from headgate.arrow.blocks import encode
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.keyed.operator import Block
from headgate.keyed.slots import home_of, slot_keys
from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import step_key
from headgate.throttle.limits.changes import changes_of
from headgate.throttle.schemas import MARKS, PROGRESS
from headgate.throttle.state import BrokerClock, KeyState
from unit.throttle.domains import FORMS, attach, changes_block, events_block, limit, rows_in, step_through, tick_block
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, event

TEN_A_SECOND = changes_block([limit("default", messages=10)])
MS_US = 1000
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def marks_of(outcome):
    """Marks as (ms after the start, seq of the publish or None)."""
    return [((mark["at_ns"] - START_US * 1000) / 1e6, mark["seq"]) for mark in outcome.marks]


def seconds_of(outcome, column="publishes"):
    """Usage rows as (second after the start, column)."""
    return [(row["event_time"].timestamp() - START_US / 1e6, row[column]) for row in outcome.usage]


def progress_of(blocks):
    """Rows of progress as tuples: key, broker, rows, late, event time, waiting, whether it is open."""
    columns = ("key", "broker", "rows", "late", "event_time_us", "waiting", "is_open")
    return [tuple(row[name] for name in columns) for row in rows_in(blocks, "progress", PROGRESS)]


@both_forms
def test_a_late_event_acts_at_the_highest_time_reached(form):
    batches = [
        [TEN_A_SECOND, events_block([event(0, messages=15, seq=0)]), tick_block(5 * SECOND_US)],
        [events_block([event(SECOND_US, messages=12, seq=1)]), tick_block(6 * SECOND_US)],
    ]
    outcome = step_through(batches, Rules(), form)

    assert [(0, 0), (600, None), (5000, 1), (5300, None)] == marks_of(outcome)
    assert [(0, 1), (5, 1)] == seconds_of(outcome)


@both_forms
def test_a_mark_tells_what_its_publish_left_in_the_limiters_buckets(form):
    batches = [[TEN_A_SECOND, events_block([event(0, messages=15)]), tick_block(SECOND_US)]]
    mark, unmark = step_through(batches, Rules(), form).marks
    buckets = ("messages_balance", "messages_per_s", "bytes_balance", "bytes_per_s")

    assert [-5, 10, None, None] == [mark[name] for name in buckets]
    assert [None] * 4 == [unmark[name] for name in buckets]


@both_forms
def test_late_events_of_one_batch_keep_the_order_of_their_times_and_then_of_their_seq(form):
    late = [event(2000, seq=4, messages=9), event(1000, seq=6, messages=5), event(1000, seq=5, messages=5)]
    batches = [[TEN_A_SECOND, events_block([event(SECOND_US, seq=1, messages=0)])], [events_block(late)]]

    assert [(1000, 6), (1000, 4)] == marks_of(step_through(batches, Rules(), form))


@both_forms
def test_a_late_limit_holds_from_the_highest_time_reached(form):
    batches = [
        [TEN_A_SECOND, events_block([event(0, messages=45)]), tick_block(SECOND_US)],
        [changes_block([limit("default", messages=0, at_us=1)])],
    ]

    assert [(0, 0), (1000, None)] == marks_of(step_through(batches, Rules(), form))


@both_forms
def test_a_limit_comes_before_the_traffic_of_its_instant(form):
    rows = [event(at_us, messages=8, seq=seq) for seq, at_us in enumerate([1000, 1000, 2000])]
    changes = changes_block(
        [limit("default", messages=5, at_us=1000), limit("default", messages=100, at_us=2000, seq=1)]
    )

    assert [(1, 0), (1, 1), (2, None), (2, None)] == marks_of(
        step_through([[changes, events_block(rows)]], Rules(), form)
    )


def test_of_limits_of_one_instant_the_last_by_seq_holds():
    changes = [limit("default", messages=5, seq=2, at_us=0), limit("default", messages=9, seq=1, at_us=0)]
    outcome = step_through([[changes_block(changes), events_block([event(0, messages=7)])]], Rules())

    assert [(0, 0)] == marks_of(outcome)


def test_a_limit_waits_for_its_time():
    changes = changes_block([limit("default", messages=5, at_us=3 * SECOND_US)])
    first = [[changes, events_block([event(SECOND_US, messages=7)])], [tick_block(3 * SECOND_US - 1)]]

    assert 1 == len(step_through(first, Rules()).state.domains[BROKER].pending)
    assert 0 == len(step_through([*first, [tick_block(3 * SECOND_US)]], Rules()).state.domains[BROKER].pending)


def test_a_tick_alone_releases_and_closes_seconds():
    batches = [[TEN_A_SECOND, events_block([event(0, messages=15)])], [tick_block(SECOND_US)]]
    outcome = step_through(batches, Rules())

    assert [(0, 0), (600, None)] == marks_of(outcome)
    assert [(0, 600_000_000)] == seconds_of(outcome, "throttled_ns")


@pytest.mark.parametrize("at_us", [0, SECOND_US])
def test_a_tick_at_a_time_that_was_reached_changes_nothing(at_us):
    batch = [TEN_A_SECOND, events_block([event(SECOND_US, messages=15)])]
    before, after = step_through([batch], Rules()), step_through([batch, [tick_block(at_us)]], Rules())

    assert (before.marks, before.usage, before.state.domains[BROKER].clock) == (
        after.marks,
        after.usage,
        after.state.domains[BROKER].clock,
    )


def test_time_passes_on_a_broker_alone_or_on_all():
    rows = [event(0, messages=15, broker=broker, seq=seq) for seq, broker in enumerate(["b1", "b2"])]
    first = [TEN_A_SECOND, events_block(rows)]
    one = step_through([first, [tick_block(SECOND_US, broker="b2")]], Rules())
    both = step_through([first, [tick_block(SECOND_US)]], Rules())

    assert ["b2"] == [row["broker"] for row in one.usage]
    assert ["b1", "b2"] == [row["broker"] for row in both.usage]


def test_time_on_a_broker_that_has_nothing_here_leaves_its_clock_alone():
    batches = [[tick_block(5, broker="b1"), tick_block(7)], [tick_block(6, broker="b1")]]
    state = step_through(batches, Rules()).state

    assert KeyState(clocks={"b1": BrokerClock(START_US + 7, (START_US + 7) * 1000)}) == state


@pytest.mark.parametrize("tick", [tick_block(5), tick_block(5, finish=True), changes_block([limit("broker")])])
def test_a_broker_of_which_no_time_was_heard_has_no_clock(tick):
    assert {} == step_through([[tick, changes_block([limit("broker", broker="b1")])]], Rules()).state.heard


def test_limits_reach_brokers_that_come_later_but_not_those_of_others():
    changes = [limit("default", messages=10), limit("default", messages=1, broker="b2", seq=1)]
    batches = [
        [changes_block(changes), events_block([event(0, broker="b1", messages=5)])],
        [events_block([event(0, broker=broker, messages=5, seq=seq) for seq, broker in enumerate(["b2", "b3"])])],
    ]

    assert ["b2"] == [mark["broker"] for mark in step_through(batches, Rules()).marks]


def test_finish_closes_the_running_second_and_gives_up_the_hold_back():
    rows = [event(at_us, seq=seq) for seq, at_us in enumerate([0, 100 * MS_US])]
    held = [[events_block(rows)], [tick_block(200 * MS_US)]]
    rules = Rules(hold_back_ms=1000)

    assert [] == step_through(held, rules).usage
    assert [(0, 2)] == seconds_of(step_through([*held, [tick_block(200 * MS_US, finish=True)]], rules))


@both_forms
@pytest.mark.parametrize("hold_back_ms", [0, 1000])
def test_a_finish_closes_the_same_whether_traffic_comes_with_it_or_after_it(form, hold_back_ms):
    """As after a kill between the finish and its batch: the next start has it in one batch with what has come since."""
    before = [TEN_A_SECOND, events_block([event(at_us * MS_US, seq=at_us, messages=4) for at_us in (0, 300, 600)])]
    finish = tick_block(600 * MS_US, finish=True)
    after = events_block([event(at_us * MS_US, seq=at_us, messages=4) for at_us in (500, 900, 700)])
    end = [tick_block(3 * SECOND_US, finish=True)]
    rules = Rules(hold_back_ms=hold_back_ms)

    undisturbed = step_through([[*before], [finish], [after], end], rules, form)
    disturbed = step_through([[*before], [after, finish], end], rules, form)
    assert (undisturbed.marks, undisturbed.usage) == (disturbed.marks, disturbed.usage)


@both_forms
def test_time_never_runs_back_not_even_where_a_hold_back_begins_again_after_a_finish(form):
    batches = [
        [TEN_A_SECOND, events_block([event(0, seq=0)])],
        [tick_block(500 * MS_US, finish=True)],
        [events_block([event(100 * MS_US, seq=1, messages=12), event(600 * MS_US, seq=2, messages=0)])],
        [tick_block(3 * SECOND_US)],
    ]

    assert [(500, 1), (600, 2), (800, None), (800, None)] == marks_of(
        step_through(batches, Rules(hold_back_ms=1000), form)
    )


def test_limiters_are_registered_as_events_reach_them_topic_before_broker_before_group():
    rows = [event(20, TOPICS[3], seq=0), event(10, TOPICS[1], seq=1), event(10, TOPICS[2], seq=2)]
    rows += [event(30, TOPICS[0], seq=3)]
    groups = changes_block([attach(TOPICS[1], "gold"), attach(TOPICS[0], "iron")])
    keys = (
        step_through([[groups, events_block(rows)]], Rules(whole_brokers=True)).state.domains[BROKER].keys.to_pylist()
    )

    assert [TOPICS[1], "@broker", "@group/gold", TOPICS[2], TOPICS[3], TOPICS[0], "@group/iron"] == keys


def test_dead_letters_pass_without_a_state():
    letters = pa.Table.from_pylist([{"reason": "no"}], DEAD_LETTERS)
    state, block = KeyState(), Block("dead_letters", 1, encode(letters))

    assert [block] == step_key("dead letters", state, [block], Rules(), run_arrays)
    assert KeyState() == state


def test_every_domain_says_how_far_it_is():
    state = KeyState()
    first = [
        TEN_A_SECOND,
        events_block([event(0, broker="b1", messages=15), event(1, broker="b2", messages=0), event(2, broker="b2")]),
    ]
    batches = (first, [tick_block(0)], [tick_block(5 * SECOND_US)])
    rows = [progress_of(step_key("k", state, blocks, Rules(), run_arrays)) for blocks in batches]

    assert [
        [("k", "b1", 1, 0, START_US, 1, True), ("k", "b2", 2, 0, START_US + 2, 0, True)],
        [("k", "b1", 0, 0, START_US, 1, True), ("k", "b2", 0, 0, START_US + 2, 0, True)],
        [("k", "b1", 0, 0, START_US + 5 * SECOND_US, 0, False), ("k", "b2", 0, 0, START_US + 5 * SECOND_US, 0, False)],
    ] == rows


PUBLISHES = [
    *(event(n, producer="a", messages=15, seq=n) for n in range(3)),
    event(3, producer="a", messages=15, seq=3) | {"connection": "another"},
    event(4, producer="b", messages=15, seq=4),
    event(5, topic=TOPICS[1], producer="a", messages=15, seq=5),
]


@both_forms
@pytest.mark.parametrize(("offered", "entries"), [(False, 12), (True, 8)], ids=["admitted", "offered"])
def test_a_producer_that_waits_counts_once_whatever_it_waits_for(form, offered, entries):
    """Three publishes, two limiters; of its namesakes on another connection or topic each is one of its own."""
    changes = [limit("default", messages=10), limit("broker", messages=10)]
    blocks = [changes_block(changes), events_block(PUBLISHES)]
    out = step_key("k", KeyState(), blocks, Rules(offered=offered, whole_brokers=True), form)
    (row,) = rows_in(out, "progress", PROGRESS)

    assert (entries, 4, 0) == (row["waiting"], row["producers"], row["subscriptions"])


@pytest.mark.parametrize("key", slot_keys(4))
def test_a_brokers_first_key_alone_tells_its_time_where_nothing_of_it_is_there(key):
    rows = progress_of(step_key(key, KeyState(), [tick_block(5, broker="b9")], Rules(slots=4), run_arrays))

    assert ([(key, "b9", 0, 0, START_US + 5, 0, False)] if key == home_of("b9", 4) else []) == rows


@pytest.mark.parametrize(("hold_back_ms", "late"), [(0, [0, 2, 0]), (4, [0, 1, 0]), (5, [0, 0, 0])])
def test_rows_behind_their_domains_clock_are_counted_as_late(hold_back_ms, late):
    state = KeyState()
    batches = [
        [events_block([event(3 * MS_US, seq=1), event(0, seq=0)]), tick_block(5 * MS_US)],
        [events_block([event(0, seq=2), event(5 * MS_US - 1, seq=3), event(5 * MS_US, seq=4)])],
        [tick_block(9 * MS_US), events_block([event(8 * MS_US, seq=5)])],
    ]
    rules = Rules(hold_back_ms=hold_back_ms)
    rows = [progress_of(step_key("k", state, blocks, rules, run_arrays)) for blocks in batches]

    assert late == [row[3] for of_batch in rows for row in of_batch]


def test_a_key_that_is_a_topic_takes_the_limits_that_concern_it():
    others = [limit("namespace", "acme/ns0", 1), limit("topic", TOPICS[1], 2), limit("topic", f"{TOPICS[3]}-b", 3)]
    own = [
        limit("default", messages=4),
        limit("namespace", "acme/ns1", 5),
        limit("topic", TOPICS[3], 6, broker="b2"),
        limit("broker", messages=7),
        limit("group", "gold", 8),
    ]
    state = KeyState()
    *others, first, second, third, fourth, fifth = (replace(one, seq=seq) for seq, one in enumerate([*others, *own]))
    own = [first, second, third, fourth, fifth]
    step_key(TOPICS[3], state, [events_block([event(0)])], Rules(), run_arrays, (*others, *own))

    assert (own, 8) == (changes_of(state.changes), state.taken)


def test_limits_given_at_a_restart_are_taken_though_superseded_ones_are_gone():
    first = tuple(replace(limit("default", messages=100 - seq), seq=seq) for seq in range(4))
    second = (first[3], replace(limit("default", messages=1, at_us=1), seq=4))
    state = KeyState()
    for at_us, given in [(0, first), (SECOND_US, second)]:
        out = step_key(TOPICS[3], state, [events_block([event(at_us, messages=50)])], Rules(), run_arrays, given)

    assert [1] == [row["messages_per_s"] for row in rows_in(out, "marks", MARKS)]


def test_nothing_arrives_nothing_comes_out():
    assert [] == step_key("k", KeyState(), [], Rules(), run_arrays)


def test_limits_given_at_the_start_are_taken_once_and_new_ones_at_a_restart():
    first = (limit("default", messages=10),)
    second = (*first, limit("topic", TOPICS[3], 3, at_us=SECOND_US, seq=1))
    state = KeyState()
    taken = []
    for at_us, given in [(0, first), (1, first), (2 * SECOND_US, second), (2 * SECOND_US + 1, second)]:
        step_key(TOPICS[3], state, [events_block([event(at_us, messages=0)])], Rules(), run_arrays, given)
        taken.append((state.taken, len(state.changes), state.domains[BROKER].limiters["rate"][0].tolist()))

    assert [(1, 1, [10, 0]), (1, 1, [10, 0]), (2, 2, [3, 0]), (2, 2, [3, 0])] == taken


def test_a_limiter_is_born_at_its_first_publish_whenever_its_limit_came():
    batches = [
        [events_block([event(0, TOPICS[0])]), TEN_A_SECOND],
        [changes_block([attach(TOPICS[1], "gold", at_us=1)])],
        [events_block([event(7 * SECOND_US, TOPICS[1], messages=10)])],
        [changes_block([limit("group", "gold", 3, at_us=8 * SECOND_US)]), tick_block(8 * SECOND_US)],
    ]
    limiters = step_through(batches, Rules(whole_brokers=True)).state.domains[BROKER].limiters

    assert [1, 1, 1, 1] == limiters["initialised"].tolist()
    assert [[10, 0], [0, 0], [10, 0], [3, 0]] == limiters["rate"].tolist()
    assert [START_US * 1000, 0, (START_US + 8 * SECOND_US) * 1000] == limiters["last_ns"][[0, 1, 3], 0].tolist()
