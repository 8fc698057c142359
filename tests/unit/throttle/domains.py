"""Random traffic of a small domain, and keys stepped by hand: blocks in, tables out."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import pyarrow as pa

from headgate.arrow.blocks import encode, gather
from headgate.arrow.runs import in_full
from headgate.keyed.operator import Block
from headgate.throttle.array_form import run_arrays
from headgate.throttle.key_operator import step_key
from headgate.throttle.kinds import OF_GROUPS, OUTPUT_TABLES
from headgate.throttle.limits.changes import (
    CLASSES,
    Attachment,
    ConnectionLimit,
    DispatchLimit,
    Limit,
    SubscribeLimit,
    UnloadLimit,
    changes_table,
)
from headgate.throttle.limits.control import CONDITIONS
from headgate.throttle.readable_form import run_readable
from headgate.throttle.schemas import TICKS, TRAFFIC
from headgate.throttle.state import VERSION, KeyState, decode_state, encode_state
from unit.throttle.rows import START_US, TOPICS

GROUP_OF = {TOPICS[0]: "gold", TOPICS[1]: "gold", TOPICS[2]: "iron", TOPICS[3]: None}
WRITTEN = OUTPUT_TABLES | OF_GROUPS
FORMS = {"arrays": run_arrays, "readable": run_readable}


def limit(scope, name="", messages=None, bytes_=None, *, at_us=None, seq=0, broker=None):
    """A change at `at_us` after START_US, or in force from the start of time."""
    return Limit(0 if at_us is None else START_US + at_us, seq, broker, scope, name, messages, bytes_)


def dispatch_limit(group, messages=None, bytes_=None, *, at_us=None, seq=0, broker=None):
    """A group's dispatch limit at `at_us` after START_US, or in force from the start of time."""
    at_us = 0 if at_us is None else START_US + at_us
    return DispatchLimit(at_us, seq, broker, "group", group, messages, bytes_)


def level_limit(kind, scope, name="", messages=None, bytes_=None, period_s=None, relative=None, **when):
    """A dispatch limit that is no group's; when: as of `limit`."""
    change = limit(scope, name, messages, bytes_, **when)
    header = (change.effective_us, change.seq, change.broker, scope, name)
    return CLASSES[kind](*header, messages, bytes_, period_s, relative)


def subscribe_limit(scope, name="", subscribes=None, period_s=None, *, at_us=None, seq=0, broker=None):
    """A change at `at_us` after START_US, or in force from the start of time."""
    at_us = 0 if at_us is None else START_US + at_us
    rate = {"subscribes_per_period": subscribes, "period_s": period_s}
    return SubscribeLimit(at_us, seq, broker, scope, name, **rate)


def unload_limit(starts_per_s=None, timeout_ms=None, *, at_us=None, seq=0, broker=None):
    """A change at `at_us` after START_US, or in force from the start of time."""
    at_us = 0 if at_us is None else START_US + at_us
    limit = {"starts_per_s": starts_per_s, "timeout_ms": timeout_ms}
    return UnloadLimit(at_us, seq, broker, "broker", "", **limit)


def connection_limit(*, at_us=None, seq=0, broker=None, **limits):
    """What holds connections from `at_us` after START_US, or from the start of time; what is not named is off."""
    at_us = 0 if at_us is None else START_US + at_us
    conditions = tuple(int(limits.get(name, 0)) for name in CONDITIONS)
    return ConnectionLimit(at_us, seq, broker, "broker", "", conditions=conditions)


def attach(name, group, scope="topic", *, at_us=None, seq=0, broker=None):
    """An attachment at `at_us` after START_US, or in force from the start of time; `group` None detaches."""
    at_us = 0 if at_us is None else START_US + at_us
    return Attachment(at_us, seq, broker, scope, name, group_name=group)


ATTACHED = [attach(topic, group) for topic, group in GROUP_OF.items() if group is not None]


def rows_block(kind, rows):
    """Rows as dictionaries; kind: of TRAFFIC."""
    return Block(kind, len(rows), encode(pa.Table.from_pylist(rows, TRAFFIC[kind])))


events_block = partial(rows_block, "events")
dispatches_block = partial(rows_block, "dispatches")
subscribes_block = partial(rows_block, "subscribes")
unloads_block = partial(rows_block, "unloads")
connections_block = partial(rows_block, "connections")


def changes_block(changes):
    return Block("changes", len(changes), encode(changes_table(changes)))


def tick_block(at_us, *, finish=False, broker=None):
    tick = {"broker": broker, "event_time_us": START_US + at_us, "finish": finish}
    return Block("ticks", 1, encode(pa.Table.from_pylist([tick], TICKS)))


@dataclass
class Outcome:
    """What a key wrote, rows as dictionaries in the order in which they were written, and the state it was left in.

    A table's rows are an attribute of its name.
    """

    rows: dict[str, list[dict]]
    state: KeyState

    def __getattr__(self, table):
        if table not in WRITTEN:
            raise AttributeError(table)
        return self.rows[table]

    @property
    def usage(self):
        return self.topic_usage

    @property
    def written(self):
        """Marks and usage without an order: that of rows is kept per topic and limiter only."""
        return [sorted(rows, key=str) for rows in (self.marks, self.usage)]


def in_kept_order(marks, rules):
    """The marks; without a quantum, releases of a limiter at one instant in the order of names: theirs is not kept."""
    if rules.release_quantum:
        return marks
    runs = groupby(marks, key=lambda mark: [mark[name] for name in ("at_ns", "scope", "limiter", "action")])
    return [mark for (*_, action), run in runs for mark in (run if action == "mark" else sorted(run, key=str))]


def step_through(batches, rules, form=run_arrays, *, given=(), stored=True):
    """Step one key through batches of blocks, with its state encoded and decoded in between."""
    state, out = KeyState(), []
    for blocks in batches:
        out += step_key("key", state, blocks, rules, form, given)
        if stored:
            state = decode_state(VERSION, encode_state(state))
    return Outcome({kind: rows_in(out, kind, schema) for kind, schema in WRITTEN.items()}, state)


def merged_usage(outcome):
    """Sums of group usage by group and slot."""
    sums = {}
    for row in outcome.group_usage:
        place, amounts = tuple(row.values())[:4], tuple(row.values())[4:]
        sums[place] = tuple(map(sum, zip(amounts, sums.get(place, (0,) * len(amounts)), strict=True)))
    return sums


def merged_waits(outcome):
    """Waits of groups for the same causes that meet, or overlap by what was rounded, as one."""
    merged = {}
    for row in sorted(outcome.group_waits, key=lambda row: (row["from_ms"], row["until_ms"])):
        spans = merged.setdefault((row["group"], row["class"], row["throttled_msgs"], row["throttled_bytes"]), [])
        if spans and row["from_ms"] <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], row["until_ms"])
        else:
            spans.append([row["from_ms"], row["until_ms"]])
    return merged


def assert_forms_agree(batches, rules):
    """Both write the same rows in the same order, and store the same bytes."""
    arrays, readable = (step_through(batches, rules, form) for form in FORMS.values())
    assert replace(readable, state=None) == replace(arrays, state=None)
    assert encode_state(readable.state) == encode_state(arrays.state)


def rows_in(blocks, kind, schema):
    """All rows of a kind, each of them, with every column of `schema`."""
    rows = gather(schema, [block.block for block in blocks if block.kind == kind])
    return [row for some in in_full(rows) for row in some.to_pylist()]


def picture(state):
    """A key's state with names in place of positions, so that states reached in different steps can be compared."""
    return {broker: _picture_of_domain(domain) for broker, domain in state.domains.items()}


def _picture_of_domain(domain):
    keys = domain.keys.to_pylist()
    names = list(zip(domain.producer_name.to_pylist(), domain.producer_connection.to_pylist(), strict=True))
    producers = [(keys[topic], *name) for topic, name in zip(domain.producer_topic, names, strict=True)]
    queues, withheld = {}, {}
    for limiter, producer, count in zip(domain.entry_limiter, domain.entry_producer, domain.entry_count, strict=True):
        queues.setdefault(keys[limiter], []).append((*producers[producer], count))
    for producer, *arrival in zip(*(column.tolist() for column in domain.withheld.values()), strict=True):
        withheld.setdefault(producers[producer], []).append(arrival)
    waiting = {producer[0] for queue in queues.values() for producer in queue}
    columns = [column.tolist() for column in domain.usage.values()]
    usage = {
        keys[topic]: (second, since_ns if keys[topic] in waiting else 0, *counts)
        for topic, second, since_ns, *counts in zip(*columns, strict=True)
    }
    return {
        "clock": domain.clock,
        "registered": keys,
        "limiters": {name: dict(zip(keys, column.tolist(), strict=True)) for name, column in domain.limiters.items()},
        "queues": queues,
        "withheld": withheld,
        "usage": usage,
        "dispatch": _picture_of_dispatch(domain.dispatch),
        "subscribes": _picture_of_subscribes(domain.subscribes),
        "unloads": domain.unloads,
        "connections": _picture_of_connections(domain.connections),
        "connection_topics": (
            domain.connection_topics.connections.to_pylist(),
            domain.connection_topics.pairs.tolist(),
        ),
        "io_threads": {name: column.tolist() for name, column in domain.connections.threads.items()},
        "known_topics": _picture_of_seen(domain.known_topics),
        "held": {kind: held.to_pylist() for kind, held in domain.held.items()},
        "pending": domain.pending,
        "in_force": domain.in_force.changes(),
    }


def _picture_of_dispatch(state):
    """By names: positions depend on batches, as topics are registered before the levels of a step."""
    keys, topics = state.keys.to_pylist(), state.topics.to_pylist()
    counts = zip(state.open_topic.to_pylist(), state.open_name.to_pylist(), state.open_second, strict=True)
    published = state.published
    return {
        "topics": {
            topic: keys[level] if level >= 0 else level for topic, level in zip(topics, state.level_of, strict=True)
        },
        "levels": {name: dict(zip(keys, column.tolist(), strict=True)) for name, column in state.levels.items()},
        "line": list(zip(state.subscription_topic.to_pylist(), state.subscription_name.to_pylist(), strict=True)),
        "due_ns": state.subscription_due_ns.tolist(),
        "held_by": state.subscription_held_by.tolist(),
        "reads": {name: column.tolist() for name, column in state.reads.items()},
        "open": dict(zip(counts, state.open_counts.tolist(), strict=True)),
        "published": (published.since_ns, published.interval, published.sums.tolist(), published.averages.tolist()),
        "known_topics": (
            state.known_topics.epoch,
            [(topics[t], keys[g]) for t, g in zip(state.known_topics.topic, state.known_topics.group, strict=True)],
        ),
    }


def _picture_of_subscribes(state):
    names = (state.topic, state.client, state.consumer)
    consumers = zip(*(column.to_pylist() for column in names), state.consumer_id.tolist(), strict=True)
    buckets = zip(*(column.tolist() for column in state.buckets.values()), strict=True)
    return dict(zip(consumers, buckets, strict=True))


def _picture_of_connections(state):
    columns = zip(*(column.tolist() for column in state.kept.values()), strict=True)
    return dict(zip(state.name.to_pylist(), columns, strict=True))


def _picture_of_seen(seen):
    return seen.epoch, seen.topic.tolist(), seen.group.tolist()


def end_us(rows):
    """The largest time in `rows`, after START_US."""
    return max(row["event_time_us"] for row in rows) - START_US


def whole(rows, changes=(), *, finish=True, until_us=None):
    """Everything in one batch, with the clock brought to `until_us` (the last row)."""
    at_us = end_us(rows) if until_us is None else until_us
    batches = [[events_block(rows), changes_block(list(changes)), tick_block(at_us)]]
    return [*batches, [tick_block(at_us, finish=True)]] if finish else batches
