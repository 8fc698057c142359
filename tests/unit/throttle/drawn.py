"""Rows, limits, rules and cuts into batches, drawn for properties."""

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from examples import examples
from headgate.throttle.form import Rules
from unit.throttle.domains import ATTACHED, attach, dispatch_limit, events_block, level_limit, limit, tick_block
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, dispatch, event

quick = settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))


STEPS_US = [
    0,
    0,
    1,
    999,
    5_000,
    12_345,
    15_999,
    16_000,
    16_001,
    33_333,
    40_000,
    77_777,
    100_000,
    123_456,
    250_000,
    300_000,
]


STEPS_US += [SECOND_US - 1, SECOND_US, SECOND_US + 1, 3 * SECOND_US]


rates = st.sampled_from([0, 1, 3, 10, 45, 1000])


byte_rates = st.sampled_from([0, 0, 100, 4000])


group_rates = st.sampled_from([None, 0, 1, 3, 10, 45, 1000])


group_byte_rates = st.sampled_from([None, None, None, 0, 100, 4000])


SCOPED_NAMES = [
    ("default", ""),
    ("broker", ""),
    ("namespace", "acme/ns0"),
    ("namespace", "acme/ns1"),
    ("topic", TOPICS[0]),
    ("topic", TOPICS[3]),
    ("group", "gold"),
    ("group", "iron"),
]


AMOUNTS = [(messages, bytes_) for bytes_ in (0, 7, 450) for messages in range(21)]


def traffic(*, topics=TOPICS, replication=True):
    """Publishes of two producers."""
    return _rows(event, "producer", topics, names=("p0", "p1"), sizes=(20, 50), replication=replication)


def dispatches(*, topics=TOPICS, replication=True):
    """Rows of dispatch to three subscriptions."""
    return _rows(dispatch, "subscription", topics, names=("s0", "s1", "s2"), sizes=(5, 40), replication=replication)


@st.composite
def _rows(draw, made, of, topics, *, names, sizes, replication):
    """Rows in their order, at cumulated steps of time. Few draws a row: they take most of the time of a test.

    made: a row of time and topic. of: its column for one of `names`. replication: some are a replicator's.
    """
    kinds = st.integers(0, len(AMOUNTS) * len(names) * len(topics) - 1)
    drawn = draw(st.lists(st.tuples(st.sampled_from(STEPS_US), kinds), min_size=sizes[0], max_size=sizes[1]))
    rows, at_us = [], 0
    for seq, (step_us, kind) in enumerate(drawn):
        at_us += step_us
        rest, place = divmod(kind, len(topics))
        number, amounts = divmod(rest, len(AMOUNTS))
        messages, bytes_ = AMOUNTS[amounts]
        name = names[number] if seq % 7 or not replication else f"pulsar.repl.{number}"
        row = made(at_us, topics[place], seq=seq, messages=messages, bytes_=bytes_, **{of: name})
        if of == "subscription":
            row |= {"entries": messages // 2, "caught_up": seq % 5 == 3, "filtered": seq % 11 == 5}
        rows.append(row)
    return rows


@st.composite
def dispatch_changes(draw, *, most=4, moves=3, wide=True):
    """Dispatch limits from the start of time and later, and attachments that change. wide: of the broker, too."""
    times, groups = st.integers(0, 8 * SECOND_US), st.sampled_from(["gold", "iron", "lead"])
    later = [
        dispatch_limit(draw(groups), draw(group_rates), draw(group_byte_rates), at_us=draw(times))
        for _ in range(draw(st.integers(0, most)))
    ]
    for _ in range(draw(st.integers(0, moves))):
        (scope, name), group = draw(st.sampled_from(RESOURCES)), draw(st.sampled_from([None, "gold", "iron", "lead"]))
        later.append(attach(name, group, scope, at_us=draw(times)))
    first = [dispatch_limit(name, draw(group_rates), draw(group_byte_rates)) for name in ("gold", "iron")]
    places = [place for place in LEVELS if wide or place[1] != "broker"]
    for at_us in [0] * draw(st.integers(0, 3)) + draw(st.lists(times, max_size=3)):
        kind, scope, name = draw(st.sampled_from(places))
        said = draw(st.none() | st.tuples(rates, byte_rates, st.sampled_from([1, 1, 2]), st.booleans()))
        later.append(level_limit(kind, scope, name, *(said or ()), at_us=at_us or None))
    return [replace(change, seq=seq) for seq, change in enumerate([*first, *ATTACHED, *later])]


LEVELS = [("dispatch_limit", "broker", "")] + [
    (kind, scope, name)
    for kind in ("dispatch_limit", "subscription_dispatch_limit", "replicator_dispatch_limit")
    for scope, name in (("default", ""), ("namespace", "acme/ns0"), ("topic", TOPICS[0]))
]


RESOURCES = [("tenant", "acme"), ("namespace", "acme/ns0"), ("namespace", "acme/ns1"), *(("topic", t) for t in TOPICS)]


@st.composite
def limit_changes(draw, *, scoped_names=tuple(SCOPED_NAMES), most=5, groups=True, moves=0):
    """Limits of every scope from the start of time, and changes while the traffic runs.

    groups: topics are attached to those of GROUP_OF. moves: how many attachments change at most.
    """

    def drawn(scope, name, **options):
        amounts = (group_rates, group_byte_rates) if scope == "group" else (rates, byte_rates)
        return limit(scope, name, *map(draw, amounts), **options)

    first = [drawn(scope, name) for scope, name in scoped_names if draw(st.booleans())]
    times, brokers = st.integers(0, 8 * SECOND_US), st.sampled_from([None, BROKER, "broker-2"])
    later = []
    for _ in range(draw(st.integers(0, most))):
        scope, name = draw(st.sampled_from(scoped_names))
        options = {"at_us": draw(times), "broker": draw(brokers)}
        later.append(limit(scope, name, **options) if draw(st.integers(0, 4)) == 0 else drawn(scope, name, **options))
    for _ in range(draw(st.integers(0, moves))):
        (scope, name), group = draw(st.sampled_from(RESOURCES)), draw(st.sampled_from([None, "gold", "iron", "lead"]))
        later.append(attach(name, group, scope, at_us=draw(times), broker=draw(brokers)))
    first += ATTACHED if groups else []
    return [replace(change, seq=seq) for seq, change in enumerate([*first, *later])]


@st.composite
def all_rules(draw, **fixed):
    drawn = {
        "max_debt_ms": draw(st.sampled_from([-1, -1, 0, 500])),
        "release_quantum": draw(st.sampled_from([0, 0, 1, 2])),
        "offered": draw(st.booleans()),
        "send_timeout_ms": draw(st.sampled_from([0, 50, 1000, 30_000])),
        "whole_brokers": draw(st.booleans()),
        "slot_ms": draw(st.sampled_from([0, 250])),
        "classic": draw(st.booleans()),
        "charges_entries": draw(st.booleans()),
        "throttles_caught_up": draw(st.booleans()),
        "filtered_entries": draw(st.booleans()),
        "stats_interval_s": draw(st.sampled_from([1, 3])),
    }
    return Rules(**drawn | fixed)


@st.composite
def cuts(draw, rows, block=events_block):
    """The rows in batches, as blocks, with ticks in between that are not ahead of the next row."""
    places = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    batches = []
    for start, end in zip([0, *places], [*places, len(rows)], strict=True):
        blocks = [block(rows[start:end])] if end > start else []
        if end < len(rows) and draw(st.booleans()):
            last_us = rows[end - 1]["event_time_us"] - START_US if end else 0
            next_us = rows[end]["event_time_us"] - START_US
            blocks.append(tick_block(draw(st.integers(last_us, max(last_us, next_us)))))
        batches.append(blocks)
    return batches
