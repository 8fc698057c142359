"""How state is divided among keys does not show in the results (`operator.state_key`)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.throttle import key_operator
from headgate.throttle.form import Rules
from headgate.throttle.limits.changes import ATTACHMENT
from headgate.throttle.routing import Routing
from unit.throttle.domains import end_us, limit
from unit.throttle.drawn import SCOPED_NAMES, all_rules, limit_changes, quick, traffic
from unit.throttle.keyed_jobs import Batch, Job, Tick, batch_ends, written_by
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, event

PARTITIONED = [*TOPICS[:2], f"{TOPICS[0]}-partition-0", f"{TOPICS[0]}-partition-1"]
PER_TOPIC = [("default", ""), ("namespace", "acme/ns0"), ("topic", TOPICS[0]), ("topic", TOPICS[1])]
NOT_OF_BROKERS = [place for place in SCOPED_NAMES if place[0] != "broker"]
MORE_TOPICS = [*TOPICS, *(f"persistent://acme/ns{i % 2}/more-{i}" for i in range(8))]


@pytest.mark.parametrize(
    "routing", [Routing(slots=2), Routing(slots=11), Routing(by_topic=True)], ids=["2 slots", "11 slots", "topics"]
)
@quick
@given(
    traffic(topics=PARTITIONED),
    limit_changes(scoped_names=PER_TOPIC, groups=False),
    limit_changes(scoped_names=PER_TOPIC[2:], groups=False),
    all_rules(whole_brokers=False),
    batch_ends,
)
def test_neither_the_number_of_slots_nor_keys_by_topic_change_what_is_written(
    routing, rows, changes, later, rules, places
):
    expected = written_by(Routing(slots=1), rows, changes, rules, [], later)

    assert expected == written_by(routing, rows, changes, rules, places, later)


@quick
@given(traffic(), limit_changes(), limit_changes(groups=False, moves=3), all_rules(), batch_ends, st.integers(2, 11))
def test_shared_limiters_stay_whole_in_any_number_of_slots(rows, changes, later, rules, places, slots):
    rules = replace(rules, whole_brokers=True)
    one, several = (Routing(slots=count, whole_brokers=True) for count in (1, slots))

    assert written_by(one, rows, changes, rules, [], later) == written_by(several, rows, changes, rules, places, later)


@pytest.mark.parametrize("routing", [Routing(slots=5), Routing(by_topic=True)], ids=["slots", "topics"])
def test_a_limit_of_a_topic_holds_for_each_of_its_partitions(routing):
    rows = [event(0, topic, seq=seq, messages=8) for seq, topic in enumerate(PARTITIONED)]
    changes = [limit("topic", TOPICS[0], 5)]
    marks, *_ = written_by(routing, rows, changes, Rules(), [])

    assert [0, 2, 3] == [mark["seq"] for mark in marks if mark["action"] == "mark"]


def test_a_limit_that_comes_while_the_job_runs_reaches_all_partitions_where_topics_are_keys():
    job = Job(Routing(by_topic=True), Rules())
    job.batch(Batch([event(0, topic, seq=seq) for seq, topic in enumerate(PARTITIONED)]))
    job.batch(Batch([], changes=[limit("topic", TOPICS[0], 5, at_us=10)]))
    job.batch(Batch([event(20, topic, seq=10 + seq, messages=8) for seq, topic in enumerate(PARTITIONED)]))

    assert [10, 12, 13] == sorted(mark["seq"] for mark in job.written[0])


def stepped(routing, rules, batches):
    """A job of `routing` after `batches` and a finish a minute later."""
    job = Job(routing, replace(rules, whole_brokers=routing.whole_brokers))
    for batch in batches:
        job.batch(batch)
    job.finish(60 * SECOND_US + max(end_us(batch.rows) for batch in batches if batch.rows))
    return job


@st.composite
def disordered(draw):
    """Batches with rows of two brokers, of which some come batches later; changes and ticks come in any of them."""
    rows = draw(traffic(topics=MORE_TOPICS))
    count = draw(st.integers(2, 5))
    batches = [Batch([], [], []) for _ in range(count)]
    drawn = st.tuples(st.sampled_from([BROKER, BROKER, "broker-2"]), st.sampled_from([0, 0, 0, 1, 2, 5]))
    for i, (broker, delay) in enumerate(draw(st.lists(drawn, min_size=len(rows), max_size=len(rows)))):
        batches[min(i * count // len(rows) + delay, count - 1)].rows.append(rows[i] | {"broker": broker})
    for change in draw(limit_changes(scoped_names=NOT_OF_BROKERS, most=10, moves=5)):
        batches[draw(st.integers(0, count - 1))].changes.append(change)
    times = st.integers(0, end_us(rows))
    ticks = st.builds(Tick, times, st.sampled_from([None, BROKER, "broker-2", "broker-3"]), st.booleans())
    for place, tick in draw(st.lists(st.tuples(st.integers(0, count - 1), ticks), max_size=2)):
        batches[place].ticks.append(tick)
    return batches


def without_groups(batches):
    return [
        batch._replace(changes=[change for change in batch.changes if change.kind != ATTACHMENT]) for batch in batches
    ]


SPLIT = [Routing(slots=4), Routing(slots=11)]
"""Fewer than a broker's topics are spread over (routing.SPREAD), and more."""
WHOLE = Routing(slots=1, whole_brokers=True)


@settings(quick, max_examples=examples(24))
@given(st.sampled_from(SPLIT), disordered(), all_rules(), st.sampled_from([0, 0, 1, 300, 5000]))
def test_late_rows_and_late_limits_act_alike_in_any_number_of_slots(routing, batches, rules, hold_back_ms):
    rules, batches = replace(rules, hold_back_ms=hold_back_ms), without_groups(batches)
    one, several = (stepped(each, rules, batches) for each in (Routing(slots=1), routing))

    assert one.written == several.written
    assert one.late == several.late


@settings(quick, max_examples=examples(24))
@given(disordered(), all_rules(), st.sampled_from([0, 0, 1, 300, 5000]))
def test_late_rows_limits_and_attachments_act_alike_on_whole_brokers_in_any_number_of_slots(
    batches, rules, hold_back_ms
):
    rules = replace(rules, hold_back_ms=hold_back_ms)
    one, several = (stepped(each, rules, batches) for each in (WHOLE, replace(WHOLE, slots=5)))

    assert one.written == several.written
    assert one.late == several.late


@quick
@given(disordered(), all_rules())
def test_on_the_broker_furthest_on_nobody_can_tell_that_superseded_changes_were_dropped(batches, rules):
    alone = [
        Batch(
            [row | {"broker": BROKER} for row in batch.rows],
            batch.changes,
            [tick._replace(broker=BROKER) for tick in batch.ticks],
        )
        for batch in batches
    ]
    kept = stepped(WHOLE, rules, alone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_operator, "HISTORY_US", 0)
        patch.setattr(key_operator, "SPARE_CHANGES", 0)
        dropped = stepped(replace(WHOLE, slots=4), rules, alone)

    assert kept.written == dropped.written


T0, T1, T2 = "persistent://acme/ns0/a", "persistent://acme/ns0/b", "persistent://acme/ns0/c"
layouts = pytest.mark.parametrize("slots", [1, 11])


def marks_of(job):
    """Marks, without unmarks, as (second after the start, topic)."""
    return [
        (mark["at_ns"] / 1e9 - START_US / 1e6, mark["topic"]) for mark in job.written[0] if mark["action"] == "mark"
    ]


@layouts
@pytest.mark.parametrize(("hold_back_ms", "at_s"), [(0, 100), (10_000, 90 - 1e-6)])
def test_the_first_row_of_a_topic_acts_at_the_time_that_its_broker_has_reached(slots, hold_back_ms, at_s):
    batches = [
        Batch([event(100 * SECOND_US, T0)], [limit("default", messages=3)]),
        Batch([event(50 * SECOND_US, T1, messages=7)]),
    ]
    job = stepped(Routing(slots=slots), Rules(hold_back_ms=hold_back_ms), batches)

    assert ([(pytest.approx(at_s, abs=1e-7), T1)], 1) == (marks_of(job), job.late)


@layouts
@pytest.mark.parametrize(
    ("tick", "at_s"), [(Tick(80 * SECOND_US, BROKER), 80), (Tick(80 * SECOND_US), 80), (Tick(80 * SECOND_US, "b"), 50)]
)
def test_a_tick_brings_time_to_topics_that_are_yet_to_come(slots, tick, at_s):
    batches = [
        Batch([event(10 * SECOND_US, T0)], [limit("default", messages=3)]),
        Batch([], ticks=[tick]),
        Batch([event(50 * SECOND_US, T1, messages=7)]),
    ]

    assert [(at_s, T1)] == marks_of(stepped(Routing(slots=slots), Rules(), batches))


@layouts
def test_after_a_finish_the_held_back_time_is_over_also_for_topics_that_are_yet_to_come(slots):
    batches = [
        Batch([event(10 * SECOND_US, T0)], [limit("default", messages=3)], [Tick(20 * SECOND_US, finish=True)]),
        Batch([event(15 * SECOND_US, T1, messages=7)]),
    ]

    assert [(20, T1)] == marks_of(stepped(Routing(slots=slots), Rules(hold_back_ms=30_000), batches))


@layouts
def test_a_row_later_than_the_hold_back_acts_as_soon_as_it_comes(slots):
    late = [event((90 - n) * SECOND_US, T1, messages=2, seq=n) for n in range(2)]
    batches = [
        Batch([event(100 * SECOND_US, T0)], [limit("default", messages=3)]),
        *(Batch([row]) for row in late),
    ]
    job = stepped(Routing(slots=slots), Rules(hold_back_ms=9_000), batches)

    assert [1] == [mark["seq"] for mark in job.written[0] if mark["action"] == "mark"]


@layouts
def test_the_first_rows_of_a_broker_act_at_their_own_time(slots):
    batches = [
        Batch([event(100 * SECOND_US, T0)], [limit("default", messages=3)], [Tick(100 * SECOND_US)]),
        Batch([event(50 * SECOND_US, topic, messages=7, broker="b") for topic in (T0, T1)]),
    ]

    assert [(50, T0), (50, T1)] == marks_of(stepped(Routing(slots=slots), Rules(), batches))


THOUSAND, THREE, SEVEN = (limit("default", messages=rate) for rate in (1000, 3, 7))


def at(change, at_s, seq=0, broker=None):
    return replace(change, effective_us=START_US + at_s * SECOND_US, seq=seq, broker=broker)


@pytest.mark.parametrize(
    ("late", "throttled"),
    [
        ([[at(THREE, 5)]], True),
        ([[at(THREE, 5, broker=BROKER)]], True),
        ([[at(THREE, 5, broker="b")]], False),
        ([[at(THREE, 5), at(THOUSAND, 6)]], False),
        ([[at(THOUSAND, 5, seq=9), at(THREE, 6, seq=8)]], True),
        ([[at(THREE, 5), at(SEVEN, 6)], [at(THOUSAND, 4)]], False),
        ([[at(THREE, 5)], [at(THOUSAND, 4)], [at(THREE, 3)]], True),
        ([[at(THREE, 5)], [at(THOUSAND, 4, broker=BROKER)], [at(THREE, 3)]], True),
        ([[at(THREE, 20)]], True),
        ([[at(THREE, 5, seq=9)], [at(THOUSAND, 20)]], False),
        ([[at(THREE, 5)], [at(THOUSAND, 22)]], False),
        ([[at(THOUSAND, 22)], [at(THREE, 5)]], False),
    ],
)
def test_of_limits_that_come_late_the_last_that_came_holds_for_topics_that_are_yet_to_come_too(late, throttled):
    batches = [
        Batch([event(20 * SECOND_US, T0)], [at(THOUSAND, 10, seq=5)]),
        *(Batch([], changes) for changes in late),
        Batch([event(25 * SECOND_US, T1, messages=10)]),
    ]

    assert [(25, T1)] * throttled == marks_of(stepped(Routing(slots=11), Rules(), batches))


@layouts
def test_a_late_limit_comes_before_the_late_row_that_comes_with_it(slots):
    batches = [
        Batch([event(20 * SECOND_US, T0)], [at(THOUSAND, 10)]),
        Batch([event(12 * SECOND_US, topic, messages=10) for topic in (T0, T1)], [at(THREE, 15)]),
    ]

    assert [(20, T0), (20, T1)] == marks_of(stepped(Routing(slots=slots), Rules(), batches))


@layouts
def test_a_broker_that_was_never_heard_of_meets_late_limits_at_their_own_time(slots):
    batches = [
        Batch([event(20 * SECOND_US, T0)], [at(THOUSAND, 10)]),
        Batch([], [at(THREE, 5)]),
        Batch(
            [event(at_s * SECOND_US, topic, messages=10, broker="b") for at_s, topic in ((7, T1), (12, T2), (22, T0))]
        ),
    ]

    assert [(7, T1)] == marks_of(stepped(Routing(slots=slots), Rules(), batches))


def test_where_topics_are_keys_a_late_row_acts_at_its_own_topics_time():
    batches = [
        Batch([event(100 * SECOND_US, T0), event(70 * SECOND_US, T1)]),
        Batch([event(50 * SECOND_US, topic, messages=7) for topic in (T0, T1, T2)]),
    ]
    job = Job(Routing(by_topic=True), Rules(), [limit("default", messages=3)])
    for batch in batches:
        job.batch(batch)

    assert [(50, T2), (70, T1), (100, T0)] == sorted(marks_of(job))
