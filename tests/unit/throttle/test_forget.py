"""What is forgotten as hours begin: the same whatever the batches are, and nothing that anybody would miss."""

from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.throttle import step
from headgate.throttle.form import Rules
from headgate.throttle.limits.changes import DISPATCH_LIMIT, SUBSCRIPTION_LIMIT
from headgate.throttle.routing import Routing
from unit.throttle.domains import (
    FORMS,
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    events_block,
    level_limit,
    limit,
    merged_usage,
    merged_waits,
    step_through,
    subscribe_limit,
    subscribes_block,
    tick_block,
    unloads_block,
)
from unit.throttle.drawn import all_rules, dispatch_changes, dispatches, limit_changes, quick, traffic
from unit.throttle.keyed_jobs import batch_ends, written_by
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, dispatch, event, subscribe, unload

HOUR_US = 3600 * SECOND_US
FIRST_US = HOUR_US - START_US % HOUR_US
"""When the first hour after START_US begins."""
WAITS_US = [0, 0, HOUR_US // 3, HOUR_US, 2 * HOUR_US + 12_345, 5 * HOUR_US]
waits = st.lists(st.sampled_from(WAITS_US), min_size=10, max_size=10)
A = TOPICS[0]


def spread(rows, waits_us):
    """The rows with long times between some of them."""
    every = max(len(rows) // len(waits_us), 1)
    steps = [waits_us[place // every % len(waits_us)] if place % every == 0 else 0 for place in range(len(rows))]
    return [row | {"event_time_us": row["event_time_us"] + by} for row, by in zip(rows, accumulate(steps), strict=True)]


def spread_changes(changes):
    """What changes while the traffic runs, 2,000 times later."""
    return [
        replace(change, effective_us=START_US + (change.effective_us - START_US) * 2000)
        if change.effective_us > START_US
        else change
        for change in changes
    ]


@quick
@given(traffic(), waits, limit_changes(moves=2), limit_changes(moves=2), all_rules(), batch_ends)
def test_what_is_written_does_not_depend_on_the_batches(rows, waits_us, changes, later, rules, places):
    rows, later = spread(rows, waits_us), spread_changes(later)
    rules = replace(rules, whole_brokers=True, connection_topics=True)
    one, several = (Routing(slots=slots, whole_brokers=True) for slots in (1, 3))

    assert written_by(one, rows, changes, rules, [], later) == written_by(several, rows, changes, rules, places, later)


def blocks_of(rows):
    """Publishes and dispatches."""
    publishes, reads = [[row for row in rows if ("producer" in row) == is_publish] for is_publish in (True, False)]
    return [events_block(publishes)] * bool(publishes) + [dispatches_block(reads)] * bool(reads)


@quick
@given(traffic(), dispatches(), waits, dispatch_changes(), limit_changes(moves=2), all_rules(), batch_ends)
def test_what_is_written_of_dispatches_does_not_depend_on_the_batches(
    publishes, reads, waits_us, changes, later, rules, places
):
    """One kind of limits follows the rate of publishes."""
    rows = spread(sorted([*publishes, *reads], key=lambda row: (row["event_time_us"], row["seq"])), waits_us)
    relative = level_limit(DISPATCH_LIMIT, "default", "", 2, None, 1, True, at_us=2 * HOUR_US)
    limits = changes_block([*spread_changes(changes), *spread_changes(later), relative])
    end = [tick_block(rows[-1]["event_time_us"] - START_US + 3 * HOUR_US, finish=True)]
    cuts = [[*blocks_of(some), tick_block(some[-1]["event_time_us"] - START_US)] for some in parts(rows, places)]
    one, several = (step_through([[limits], *cut, end], rules) for cut in ([blocks_of(rows)], cuts))

    assert sorted(one.dispatch_decisions, key=str) == sorted(several.dispatch_decisions, key=str)
    assert one.written == several.written
    assert merged_usage(one) == merged_usage(several)
    assert merged_waits(one) == merged_waits(several)


def parts(rows, places):
    return [some for start, end in pairwise([0, *places, len(rows)]) if (some := rows[start:end])]


@quick
@given(traffic(), waits, limit_changes(moves=2), all_rules(whole_brokers=False, offered=False))
def test_both_forms_forget_the_same(rows, waits_us, changes, rules):
    rows = spread(rows, waits_us)
    batches = [[changes_block(spread_changes(changes)), events_block(rows[:9])], [events_block(rows[9:])]]
    arrays, readable = (step_through(batches, rules, form) for form in FORMS.values())

    assert replace(readable, state=None) == replace(arrays, state=None)


@quick
@given(traffic(replication=False), waits, st.sampled_from([1, 10, 1000]), all_rules(offered=False, slot_ms=0))
def test_a_full_limiter_is_as_good_as_a_new_one(rows, waits_us, rate, rules):
    """Where no part of a token is ever left over: that of a limiter that is forgotten is lost."""
    whole_s = [row | {"event_time_us": row["event_time_us"] // SECOND_US * SECOND_US} for row in spread(rows, waits_us)]
    changes = [limit("default", "", rate, 4000), limit("group", "gold", 10), *ATTACHED]
    batches = [[changes_block(changes), events_block(whole_s)], [tick_block(60 * HOUR_US, finish=True)]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "forget", lambda *_: None)
        remembered = step_through(batches, rules)

    assert remembered.written == step_through(batches, rules).written


@pytest.mark.parametrize(
    "between", [tick_block(FIRST_US + 2 * HOUR_US), subscribes_block([subscribe(FIRST_US + 2 * HOUR_US, TOPICS[1])])]
)
def test_buckets_of_consumers_are_forgotten_by_time_alone(between):
    """Two subscribes in 10 s; the bucket is full and idle for hours, and earned part of one more meanwhile."""
    first_us = FIRST_US + 5 * HOUR_US + 3_300_000
    later = [subscribe(first_us + by, seq=by) for by in (0, 100_000, *range(500_000, 6_000_000, 500_000))]
    limits, end = changes_block([subscribe_limit("default", "", 2, 10)]), [tick_block(FIRST_US + 9 * HOUR_US)]
    one = step_through([[limits, subscribes_block([subscribe(0), *later])], end], Rules())
    cut = step_through([[limits, subscribes_block([subscribe(0)])], [between], [subscribes_block(later)], end], Rules())
    told = [[row for row in run.subscribe_decisions if row["topic"] == A] for run in (one, cut)]

    assert told[0] == told[1]
    assert {} == one.state.domains


ATTACHED = [attach(A, "gold"), attach(TOPICS[1], "gold")]
OF_TOPICS = [limit("default", "", 10)]
OF_GROUP = [limit("group", "gold", 1), *ATTACHED]
FEW = [limit("default", "", 1)]
QUIET = [[tick_block(FIRST_US + HOUR_US)]]
LONG = [[tick_block(FIRST_US + 9 * HOUR_US)]]


def kept(changes, batches, **rules):
    state = step_through([[changes_block(changes)], *batches], Rules(**rules)).state
    return state.domains.get(BROKER)


def test_a_broker_of_which_everything_is_full_and_idle_is_its_clock_alone():
    rows = [event(0), event(1, A, bytes_=9, messages=2), event(2, TOPICS[1])]
    changes = [*OF_TOPICS, *OF_GROUP, limit("broker", "", 10), dispatch_limit("gold", 10)]
    changes += [level_limit(SUBSCRIPTION_LIMIT, "default", "", 5), subscribe_limit("default", "", 5, 30)]
    batch = [events_block(rows), dispatches_block([dispatch(3)]), subscribes_block([subscribe(4)])]
    state = step_through(
        [[changes_block(changes)], batch, [tick_block(FIRST_US + HOUR_US)]],
        Rules(whole_brokers=True, slot_ms=250, connection_topics=True),
    ).state

    assert {} == state.domains
    assert START_US + FIRST_US + HOUR_US == state.clocks[BROKER].high_us


def test_a_broker_that_comes_back_meets_the_limits_that_changed_meanwhile():
    changed = [changes_block([limit("default", "", 2, at_us=FIRST_US + HOUR_US + 5)])]
    batches = [[changes_block(OF_TOPICS), events_block([event(0)])], *QUIET, changed]
    back = step_through([*batches, [events_block([event(FIRST_US + 2 * HOUR_US, messages=2)])]], Rules())

    assert [(2, "mark")] == [(row["messages_per_s"], row["action"]) for row in back.marks]


@pytest.mark.parametrize(
    ("changes", "batches", "rules", "is_kept"),
    [
        (OF_TOPICS, [[events_block([event(0)])], *QUIET], {}, False),
        ([], [[events_block([event(0)])], *QUIET], {}, False),
        (OF_TOPICS, [[events_block([event(0)])], [tick_block(FIRST_US + HOUR_US - 1)]], {}, True),
        (OF_TOPICS, [[events_block([event(0), event(FIRST_US)])], *QUIET], {}, True),
        (FEW, [[events_block([event(0, messages=2 * 3600)])], *QUIET], {}, True),
        (FEW, [[events_block([event(0, messages=2 * 3600)])], *LONG], {}, False),
        ([], [[events_block([event(0, TOPICS[0], messages=9000)])], *QUIET], {"slot_ms": 250}, False),
    ],
    ids=["idle", "idle and unlimited", "no whole hour", "a publish since", "in debt", "debt repaid", "unlimited"],
)
def test_what_keeps_a_topic(changes, batches, rules, is_kept):
    assert is_kept == (kept(changes, batches, **rules) is not None)


def test_what_a_topic_is_charged_to_stays_with_it():
    blocked = [limit("group", "gold", 1), *ATTACHED]
    domain = kept(blocked, [[events_block([event(0, A, messages=2 * 3600), event(0, TOPICS[1])])], *QUIET])

    assert ["@group/gold"] == [key for key in domain.keys.to_pylist() if key.startswith("@")]
    assert A in domain.keys.to_pylist()


def test_places_are_moved_as_others_are_forgotten():
    """The first topic is forgotten; the queue, group, usage and connection of the second are found again."""
    busy = event(5, A, messages=3 * 3600, producer="p1")
    rows = [event(0, TOPICS[2]), busy, event(FIRST_US + HOUR_US + 1, A, seq=7)]
    changes, rules = [limit("group", "gold", 1), *ATTACHED], Rules(slot_ms=250, connection_topics=True)
    batches = [[changes_block(changes), events_block(rows)]]
    told = step_through(batches, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "forget", lambda *_: None)
        remembered = step_through(batches, rules)
    domain = told.state.domains[BROKER]
    keys, names = domain.keys.to_pylist(), domain.connection_topics.connections.to_pylist()
    pairs = [(keys[pair >> 32], names[pair & 0xFFFF_FFFF]) for pair in domain.connection_topics.pairs.tolist()]

    assert told.written == remembered.written
    assert merged_waits(told) == merged_waits(remembered)
    assert [A, "@group/gold"] == keys
    assert [1, 1] == domain.entry_limiter.tolist()
    assert [0, 0] == domain.producer_topic.tolist()
    assert [0] == domain.usage["topic"].tolist()
    assert 1 == domain.limiters["group"][0]
    assert ([0], [1]) == (domain.known_topics.topic.tolist(), domain.known_topics.group.tolist())
    assert [(A, "connection-p")] == [(topic, name) for topic, name in pairs if name.endswith("p")]


@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize(("messages", "is_kept"), [(4, False), (8 * 3600, True)], ids=["full", "in debt"])
def test_levels_of_dispatch(classic, messages, is_kept):
    changes = [level_limit(SUBSCRIPTION_LIMIT, "default", "", 3), level_limit(DISPATCH_LIMIT, "default", "", 3)]
    domain = kept(changes, [[dispatches_block([dispatch(0, messages=messages)])], *QUIET], classic=classic)

    assert is_kept == (domain is not None)


def test_the_only_level_of_dispatch_is_forgotten_while_a_topic_waits_to_be_charged_to_another():
    changes = [dispatch_limit("gold", 10), attach(A, "gold"), attach(A, None, at_us=5 * SECOND_US)]
    domain = kept(changes, [[dispatches_block([dispatch(0, A)])], [tick_block(FIRST_US)]])
    assert domain.dispatch.keys.to_pylist() == []


def test_a_pair_of_topic_and_connection_is_told_again_after_an_hour_without_it():
    rows = [event(at_us, A) for at_us in (0, FIRST_US, FIRST_US + HOUR_US - 1)]
    rows += [
        event(0, A, producer="q"),
        event(FIRST_US + HOUR_US + 1, A),
        event(FIRST_US + HOUR_US + 1, A, producer="q"),
    ]
    out = step_through([[events_block(rows)]], Rules(connection_topics=True))

    assert ["connection-p", "connection-q", "connection-q"] == [
        row["connection"] for row in out.marks if row["action"] == "attach"
    ]


def test_unloads_are_remembered():
    """Credit that a broker has for unloads is not what one begins with."""
    assert kept([], [[unloads_block([unload(0)])], *LONG]) is not None
