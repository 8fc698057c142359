"""What holds of every stream: counts add up, marks pair up, throttled time is the time of marks (rate-limiters 14)."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.throttle.keys import BROKER_KEY, group_key
from headgate.throttle.limits.changes import LIMIT
from unit.throttle.domains import end_us, picture, step_through, whole
from unit.throttle.drawn import all_rules, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS

thorough = settings(quick, max_examples=examples(24))
PER_TOPIC = [("default", ""), ("namespace", "acme/ns0"), ("topic", TOPICS[0]), ("topic", TOPICS[3])]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AMOUNTS = ("publishes", "messages", "bytes")


def total(outcome, column, topic=None):
    return sum(row[column] or 0 for row in outcome.usage if topic in (None, row["topic"]))


def limiter_of(mark):
    """The name of the mark's limiter in the state."""
    return {"topic": mark["limiter"], "broker": BROKER_KEY, "group": group_key(mark["limiter"])}[mark["scope"]]


def who(mark):
    return mark["topic"], mark["producer"], mark["connection"]


@thorough
@given(traffic(), limit_changes(moves=4), all_rules())
def test_usage_counts_every_row_once(rows, changes, rules):
    outcome = step_through(whole(rows, changes), rules)

    assert [len(rows), sum(row["messages"] for row in rows), sum(row["bytes"] for row in rows)] == [
        total(outcome, column) for column in AMOUNTS
    ]


@thorough
@given(traffic(), limit_changes(moves=4), all_rules(offered=True), st.sampled_from([0, 40 * SECOND_US]))
def test_offered_publishes_are_admitted_failed_or_withheld(rows, changes, rules, after_us):
    outcome = step_through(whole(rows, changes, until_us=end_us(rows) + after_us), rules)
    withheld = outcome.state.domains[BROKER].withheld
    still = [len(withheld["at_ns"]), withheld["messages"].sum(), withheld["bytes"].sum()]

    assert [total(outcome, column) for column in AMOUNTS] == [
        total(outcome, f"admitted_{column}") + total(outcome, f"failed_{column}") + left
        for column, left in zip(AMOUNTS, still, strict=True)
    ]
    for row in outcome.usage:
        assert row["delayed_publishes"] <= row["admitted_publishes"]
        assert row["max_delay_ns"] <= row["delay_ns"]
        assert row["max_delay_ns"] <= rules.send_timeout_ms * 1_000_000 + 1


@thorough
@given(traffic(), limit_changes(), all_rules(offered=False))
def test_admitted_traffic_has_no_counts_of_offered_traffic(rows, changes, rules):
    outcome = step_through(whole(rows, changes), rules)

    assert {None} == {row[column] for row in outcome.usage for column in ("admitted_publishes", "failed_bytes")}
    assert len(outcome.state.domains[BROKER].withheld["at_ns"]) == 0


@thorough
@given(traffic(), limit_changes(), all_rules())
def test_a_limiter_unmarks_each_of_its_marks_once_and_who_is_left_waits_in_its_queue(rows, changes, rules):
    """With a quantum, in their order."""
    outcome = step_through(whole(rows, changes), rules)
    told = list if rules.release_quantum else Counter
    marked, unmarked = {}, {}
    for mark in outcome.marks:
        side = marked if mark["action"] == "mark" else unmarked
        side.setdefault(limiter_of(mark), []).append(who(mark))
    queues = picture(outcome.state)[BROKER]["queues"]

    for name, marks in marked.items():
        left = [tuple(entry) for *entry, count in queues.get(name, []) for _ in range(count)]

        assert told(marks) == told(unmarked.get(name, []) + left)
    assert unmarked.keys() | queues.keys() <= marked.keys()


@thorough
@given(traffic(), limit_changes(moves=4), all_rules())
def test_marks_are_in_the_order_of_time_and_name_the_publish_that_caused_them(rows, changes, rules):
    marks = step_through(whole(rows, changes), rules).marks
    times = [mark["at_ns"] for mark in marks]
    publishes = {row["seq"]: (row["topic"], row["producer"], row["connection"]) for row in rows}

    assert sorted(times) == times
    for mark in marks:
        caused_by = publishes[mark["seq"]] if mark["action"] == "mark" else who(mark)

        assert who(mark) == caused_by
        assert (mark["seq"] is None) is (mark["action"] == "unmark")
        assert mark["at_ns"] // 1000 == (mark["event_time"] - EPOCH) // timedelta(microseconds=1)


@thorough
@given(traffic(), limit_changes(moves=4), all_rules())
def test_a_mark_tells_of_a_bucket_that_is_used_up_or_a_group_that_lets_nothing_pass(rows, changes, rules):
    for mark in step_through(whole(rows, changes), rules).marks:
        buckets = [(mark[f"{of}_balance"], mark[f"{of}_per_s"]) for of in ("messages", "bytes")]

        assert all((balance is None) is (per_s is None) for balance, per_s in buckets)
        held = [per_s == 0 or balance <= 0 for balance, per_s in buckets if per_s is not None]
        assert any(held) is (mark["action"] == "mark")


@thorough
@given(traffic(), limit_changes(moves=4), all_rules())
def test_usage_counts_the_marks_of_each_scope(rows, changes, rules):
    outcome = step_through(whole(rows, changes), rules)
    marks = Counter((mark["topic"], mark["scope"]) for mark in outcome.marks if mark["action"] == "mark")

    for topic in TOPICS:
        for scope in ("topic", "broker", "group"):
            assert marks[topic, scope] == total(outcome, f"throttled_by_{scope}", topic)


def throttled_ns(marks, topic, end_ns):
    """The measure of the union of the topic's intervals from mark to unmark, or to the end."""
    depth = covered_ns = since_ns = 0
    for mark in marks:
        if mark["topic"] != topic:
            continue
        if depth == 0:
            since_ns = mark["at_ns"]
        depth += 1 if mark["action"] == "mark" else -1
        if depth == 0:
            covered_ns += mark["at_ns"] - since_ns
    return covered_ns + (end_ns - since_ns if depth else 0)


@thorough
@given(traffic(), limit_changes(moves=4), all_rules(), st.sampled_from([0, 1, 700_000, 40 * SECOND_US]))
def test_throttled_time_is_the_time_between_marks_and_unmarks(rows, changes, rules, after_us):
    until_us = end_us(rows) + after_us
    outcome = step_through(whole(rows, changes, until_us=until_us), rules)

    for topic in TOPICS:
        assert throttled_ns(outcome.marks, topic, (START_US + until_us) * 1000) == total(outcome, "throttled_ns", topic)


@thorough
@given(traffic(), limit_changes(moves=4), all_rules())
def test_a_topic_has_one_row_a_second(rows, changes, rules):
    usage = step_through(whole(rows, changes), rules).usage
    seconds = [(row["topic"], row["event_time"]) for row in usage]

    assert len(set(seconds)) == len(seconds)


@quick
@given(traffic(), limit_changes(scoped_names=PER_TOPIC, groups=False), all_rules(whole_brokers=False))
def test_topics_that_share_no_limiter_do_not_know_each_other(rows, changes, rules):
    marks = step_through(whole(rows, changes), rules).marks

    for topic in TOPICS:
        alone = [row for row in rows if row["topic"] == topic]
        expected = step_through(whole(alone, changes, until_us=end_us(rows)), rules).marks if alone else []

        assert expected == [mark for mark in marks if mark["topic"] == topic]


@quick
@given(traffic(), traffic(), limit_changes(moves=4), all_rules())
def test_brokers_behind_one_key_do_not_know_each_other(rows, others, changes, rules):
    others = [{**row, "broker": "broker-2"} for row in others]
    together = sorted(rows + others, key=lambda row: row["event_time_us"])
    until_us = end_us(together)
    both = step_through(whole(together, changes, until_us=until_us), rules)

    for broker, own in ((BROKER, rows), ("broker-2", others)):
        alone = step_through(whole(own, changes, until_us=until_us), rules)

        assert alone.marks == [mark for mark in both.marks if mark["broker"] == broker]
        assert alone.usage == [row for row in both.usage if row["broker"] == broker]


@quick
@given(traffic(), limit_changes(), all_rules(), st.integers(0, 10**6))
def test_limits_of_names_that_nothing_has_change_nothing(rows, changes, rules, at_us):
    others = [
        replace(change, scope=scope, name=name, effective_us=START_US + at_us)
        for change in [change for change in changes if change.kind == LIMIT][:2]
        for scope, name in (
            ("topic", f"{TOPICS[0]}x"),
            ("topic", TOPICS[0][:-1]),
            ("namespace", "acme/ns"),
            ("namespace", "cme/ns0"),
            ("group", "gol"),
        )
    ]

    assert (
        step_through(whole(rows, changes), rules).written == step_through(whole(rows, changes + others), rules).written
    )


@quick
@given(traffic(), limit_changes(), all_rules(offered=False))
def test_the_send_time_out_is_none_of_admitted_traffic(rows, changes, rules):
    other = replace(rules, send_timeout_ms=7)

    assert step_through(whole(rows, changes), rules).written == step_through(whole(rows, changes), other).written
