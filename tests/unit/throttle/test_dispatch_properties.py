"""What holds of dispatch whatever comes: both forms agree, batches and slots do not show, nothing is lost."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.oracles.dispatch_limiter import DispatchLimiter
from headgate.keyed.operator import Block
from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import step_key
from headgate.throttle.routing import Routing, pack
from headgate.throttle.state import VERSION, KeyState, decode_state, encode_state
from unit.throttle.domains import (
    FORMS,
    GROUP_OF,
    WRITTEN,
    Outcome,
    assert_forms_agree,
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    end_us,
    events_block,
    level_limit,
    merged_usage,
    merged_waits,
    picture,
    rows_in,
    step_through,
    tick_block,
)
from unit.throttle.drawn import (
    all_rules,
    byte_rates,
    cuts,
    dispatch_changes,
    dispatches,
    group_rates,
    limit_changes,
    quick,
    rates,
    traffic,
)
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, parsed

rules_with_slots = all_rules(slot_ms=250)
endings_us = st.sampled_from([0, 1, SECOND_US, 40 * SECOND_US])


def batches_of(rows, publishes, changes, until_us):
    """Everything in one batch."""
    return [[dispatches_block(rows), events_block(publishes), changes_block(changes), tick_block(until_us)]]


@settings(quick, max_examples=examples(48))
@given(dispatches(), traffic(), dispatch_changes(), limit_changes(groups=False), all_rules(), endings_us)
def test_both_forms_write_the_same_rows_and_store_the_same_bytes(rows, publishes, changes, limits, rules, after_us):
    until_us = max(end_us(rows), end_us(publishes)) + after_us
    batches = batches_of(rows, publishes, [*changes, *limits], until_us)
    assert_forms_agree(batches, rules)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(quick, max_examples=examples(24))
@given(st.data(), dispatch_changes(), rules_with_slots, endings_us)
def test_batches_ticks_and_the_state_between_them_do_not_show(form, data, changes, rules, after_us):
    rows = data.draw(dispatches())
    until_us = end_us(rows) + after_us
    batches = data.draw(cuts(rows, dispatches_block))
    batches[0].append(changes_block(changes))
    batches[-1].append(tick_block(until_us))
    expected = step_through(batches_of(rows, [], changes, until_us), rules, form, stored=False)
    actual = step_through(batches, rules, form)

    assert merged_usage(expected) == merged_usage(actual)
    assert merged_waits(expected) == merged_waits(actual)
    assert by_second(expected) == by_second(actual)
    assert picture(expected.state) == picture(actual.state)


def by_second(outcome):
    return sorted(outcome.dispatch_decisions, key=str)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(quick, max_examples=examples(24))
@given(st.data(), rules_with_slots, endings_us)
def test_batches_of_publishes_do_not_show_in_dispatches_that_follow_them(form, data, rules, after_us):
    """Averages of publishes are those of whole intervals, wherever batches end."""
    rows, publishes = data.draw(dispatches()), data.draw(traffic())
    at_us = data.draw(st.sampled_from([None, 0, 1, 3 * SECOND_US]))
    relative = level_limit("dispatch_limit", "default", "", 5, 400, relative=True, at_us=at_us)
    later_us = data.draw(endings_us)
    later = level_limit("subscription_dispatch_limit", "default", "", 5, 400, relative=True, at_us=later_us, seq=1)
    until_us = max(end_us(rows), end_us(publishes)) + after_us
    both = sorted([*rows, *publishes], key=lambda row: row["event_time_us"])
    places = sorted(data.draw(st.lists(st.integers(0, len(both)), max_size=4)))
    batches = [both[start:end] for start, end in pairwise([0, *places, len(both)])]
    blocks = [
        [
            dispatches_block([row for row in batch if "subscription" in row]),
            events_block([row for row in batch if "producer" in row]),
            *([tick_block(end_us(batch))] if batch else []),
        ]
        for batch in batches
    ]
    blocks[0].append(changes_block([relative, later]))
    blocks[-1].append(tick_block(until_us))
    expected = step_through(batches_of(rows, publishes, [relative, later], until_us), rules, form, stored=False)
    actual = step_through(blocks, rules, form)

    assert by_second(expected) == by_second(actual)
    assert picture(expected.state)[BROKER]["dispatch"] == picture(actual.state)[BROKER]["dispatch"]


@quick
@given(dispatches(), dispatch_changes(), rules_with_slots, st.data())
def test_rows_that_come_in_any_order_within_the_hold_back_act_in_theirs(rows, changes, rules, data):
    until_us = end_us(rows) + 2 * SECOND_US
    last = [tick_block(until_us), tick_block(until_us, finish=True)]
    mixed = [row for row in data.draw(st.permutations(rows)) if row is not rows[-1]]
    half = data.draw(st.integers(0, len(mixed)))
    held = replace(rules, hold_back_ms=60 * 60 * 1000)
    changes = changes_block(changes)
    batches = [[changes, dispatches_block(mixed[:half])], [dispatches_block([rows[-1], *mixed[half:]])], last]
    expected = step_through([[changes, dispatches_block(rows)], last], rules)
    actual = step_through(batches, held)

    assert by_second(expected) == by_second(actual)
    assert merged_usage(expected) == merged_usage(actual)
    assert merged_waits(expected) == merged_waits(actual)


@quick
@given(dispatches(), traffic(), dispatch_changes(), limit_changes(groups=False), rules_with_slots)
def test_publishes_do_not_see_dispatches(rows, publishes, changes, limits, rules):
    until_us = max(end_us(rows), end_us(publishes))
    with_both, alone = (
        step_through(batches_of(some, publishes, [*changes, *limits], until_us), rules) for some in (rows, [])
    )

    assert (alone.marks, alone.usage) == (with_both.marks, with_both.usage)
    assert of_class(alone.group_usage, 0) == of_class(with_both.group_usage, 0)
    assert of_class(alone.group_waits, 0) == of_class(with_both.group_waits, 0)


def of_class(rows, traffic_class):
    return [row for row in rows if row["class"] == traffic_class]


@quick
@given(
    dispatches(replication=False),
    dispatch_changes(moves=0),
    all_rules(slot_ms=250, offered=True, throttles_caught_up=True, filtered_entries=True),
)
def test_a_read_is_admitted_once_or_withheld(rows, changes, rules):
    last = [tick_block(end_us(rows), finish=True)]
    outcome = step_through([*batches_of(rows, [], changes, end_us(rows)), last], rules)
    reads = outcome.state.domains[BROKER].dispatch.reads
    of_groups = [row for row in rows if GROUP_OF[row["topic"]]]
    offered = sum(row["offered_msgs"] for row in outcome.group_usage)
    told = {name: sum(row[name] for row in outcome.dispatch_decisions) for name in ("messages", "allowed_messages")}

    assert sum(row["messages"] for row in of_groups) == offered
    assert sum(row["messages"] for row in rows) == told["messages"]
    assert told["messages"] == told["allowed_messages"] + reads["messages"].sum()


LEVEL_NAMES = ("broker", "topic", "subscription", "group")
LEVEL_RATES = st.lists(st.tuples(rates, byte_rates, st.sampled_from([1, 1, 2, 7])), min_size=3, max_size=3)


@settings(quick, max_examples=examples(60))
@given(
    dispatches(topics=TOPICS[3:], replication=False), LEVEL_RATES, LEVEL_RATES, group_rates, all_rules(offered=False)
)
def test_a_delivery_is_held_back_where_the_dispatch_limiter_lets_none_start(rows, first, then, of_group, rules):
    """Levels of broker, topic and subscription, whose rates all change in the middle, and of a group, which stays."""
    assume(of_group != 0)
    first, then = ([*some, (of_group or 0, 0, 1)] for some in (first, then))
    rows = [row | {"subscription": "s", "filtered": False} for row in rows]
    at_us = rows[len(rows) // 2]["event_time_us"] - START_US
    places = [("dispatch_limit", "broker"), ("dispatch_limit", "default"), ("subscription_dispatch_limit", "default")]
    changes = [
        level_limit(kind, scope, "", *rates, at_us=when, seq=seq)
        for when, some in ((None, first), (at_us, then))
        for seq, ((kind, scope), rates) in enumerate(zip(places, some[:3], strict=True))
    ]
    changes += [attach(TOPICS[3], "gold"), dispatch_limit("gold", of_group)]
    outcome = step_through([*batches_of(rows, [], changes, end_us(rows)), [tick_block(0, finish=True)]], rules)
    held = Counter(
        (row["event_time_us"] // SECOND_US, name) for row, name in held_back(rows, first, then, at_us, rules)
    )
    told = {
        (int(row["event_time"].timestamp()), name): row[f"held_by_{name}"]
        for row in outcome.dispatch_decisions
        for name in LEVEL_NAMES
    }

    assert without_zeros(held) == without_zeros(told)


def held_back(rows, first, then, at_us, rules):
    """The rows that a limiter with these levels would not have let start, if it is charged for all, and at which."""
    limiter = DispatchLimiter(
        created_ns=0,
        on_batch=rules.charges_entries,
        throttle_non_backlog=rules.throttles_caught_up,
        max_debt_ms=None if rules.max_debt_ms < 0 else rules.max_debt_ms,
    )
    classic = "classic" if rules.classic else "token_bucket"
    has_begun, has_changed = False, False
    for row in rows:
        now_ns, exempt = row["event_time_us"] * 1000, row["caught_up"]
        if not has_changed and row["event_time_us"] - START_US >= at_us:
            has_changed = True
            for name, (messages, bytes_, period_s) in zip(LEVEL_NAMES, then, strict=True):
                if has_begun:
                    limiter.update(name, messages, bytes_, now_ns, period_s=period_s)
            first = then
        if not has_begun and not (exempt and not rules.throttles_caught_up):
            has_begun = True
            for name, (messages, bytes_, period_s) in zip(LEVEL_NAMES, first, strict=True):
                implementation = "token_bucket" if name == "group" else classic
                limiter.add_level(name, messages, bytes_, now_ns, period_s=period_s, implementation=implementation)
        if not limiter.may_dispatch(now_ns, caught_up=exempt):
            yield row, next(name for name in LEVEL_NAMES if 0 in limiter.available(name, now_ns))
        limiter.dispatched(row["messages"], row["bytes"], now_ns, entries=row["entries"], caught_up=exempt)


@quick
@given(dispatches(), dispatch_changes(), all_rules(slot_ms=250, offered=False, filtered_entries=True))
def test_what_was_delivered_is_admitted_as_it_was_offered(rows, changes, rules):
    for row in step_through(batches_of(rows, [], changes, end_us(rows)), rules).group_usage:
        assert (row["admitted_msgs"], row["admitted_bytes"]) == (row["offered_msgs"], row["offered_bytes"])


@quick
@given(dispatches(replication=False), st.integers(1, 30), st.sampled_from([0, 400]), st.sampled_from([-1, 0, 500]))
def test_reads_start_as_the_dispatch_limiter_says(rows, messages, bytes_, max_debt_ms):
    """One group, constant rates: the same starts as a limiter with a level `group`, read by read."""
    rules = Rules(offered=True, slot_ms=1, max_debt_ms=max_debt_ms, filtered_entries=True)
    until_us = end_us(rows) + 5 * SECOND_US
    changes = [*(attach(topic, "gold") for topic in TOPICS), dispatch_limit("gold", messages, bytes_ or None)]
    outcome = step_through(batches_of(rows, [], changes, until_us), rules)
    starts = defaultdict(int)
    for at_ns, amount in started(rows, until_us, messages, bytes_, max_debt_ms):
        starts[at_ns // 10**6] += amount
    admitted = {row["at_ms"]: row["admitted_msgs"] for row in outcome.group_usage}

    assert without_zeros(starts) == without_zeros(admitted)


def without_zeros(sums):
    return {at_ms: amount for at_ms, amount in sums.items() if amount}


def started(rows, until_us, messages, bytes_, max_debt_ms):
    """(time, messages) of the reads as they start: reads of a subscription in order, retries 1 s after a skip."""
    limiter = DispatchLimiter(created_ns=0, max_debt_ms=None if max_debt_ms < 0 else max_debt_ms)
    lines, retries, levels = defaultdict(list), [], []

    def go(line, now_ns):
        while line:
            if not levels:
                levels.append(limiter.add_level("group", messages, bytes_, now_ns))
            if not limiter.may_dispatch(now_ns):
                retries.append((now_ns + 10**9, line))
                return
            row = line.pop(0)
            limiter.dispatched(row["messages"], row["bytes"], now_ns)
            yield now_ns, row["messages"]

    def run_due(until_ns):
        while retries and retries[0][0] <= until_ns:
            due_ns, line = retries.pop(0)
            yield from go(line, due_ns)

    for row in rows:
        now_ns, line = row["event_time_us"] * 1000, lines[row["topic"], row["subscription"]]
        yield from run_due(now_ns)
        line.append(row)
        if len(line) == 1:
            yield from go(line, now_ns)
    yield from run_due((START_US + until_us) * 1000)


@settings(quick, max_examples=examples(10))
@given(dispatches(), traffic(), dispatch_changes(), rules_with_slots, st.sampled_from([1, 3, 7]))
def test_the_number_of_slots_does_not_show(rows, publishes, changes, rules, slots):
    """Where anything is attached, a broker has one key, whatever comes besides."""
    others = [row | {"broker": "broker-2", "subscription": None} for row in publishes]
    both = sorted([*rows, *others], key=lambda row: row["event_time_us"])
    one, several = (routed(Routing(count, whole_brokers=True), both, changes, rules) for count in (2, slots))

    assert by_second(one) == by_second(several)
    assert merged_usage(one) == merged_usage(several)
    assert merged_waits(one) == merged_waits(several)


def routed(routing, rows, changes, rules):
    states = {key: KeyState() for key in routing.keys}
    batches = [rows[:10], rows[10:], []]
    end = tick_block(end_us(rows), finish=True)
    out = []
    for number, batch in enumerate(batches):
        blocks = {key: [changes_block(changes)] if number == 0 else [] for key in routing.keys}
        for packed in pack(routing, [parsed(batch)]):
            for row in packed.to_pylist():
                blocks[row["key"]].append(Block(row["kind"], 0, row["block"]))
        for key, of_key in blocks.items():
            last = [end] if number == len(batches) - 1 else []
            out += step_key(key, states[key], [*of_key, tick_block(0), *last], rules, run_arrays)
            states[key] = decode_state(VERSION, encode_state(states[key]))
    return Outcome({kind: rows_in(out, kind, schema) for kind, schema in WRITTEN.items()}, KeyState())
