"""How state is divided among keys does not show in the results (design 4: state_key)."""

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.throttle.array_engine import run_arrays
from headgate.throttle.control import CONF, LIMIT, changes_in, pack_control, tick_row
from headgate.throttle.key_operator import Block, step_key
from headgate.throttle.routing import Routing, pack
from headgate.throttle.schemas import CONTROL, DEAD_LETTERS, MARKS, TOPIC_USAGE
from headgate.throttle.state import VERSION, KeyState, decode_state, encode_state
from headgate.throttle.step import Rules
from unit.throttle.domains import (
    GROUP_OF,
    START_US,
    TOPICS,
    all_rules,
    end_us,
    event,
    limit,
    limit_changes,
    parsed,
    quick,
    rows_in,
    traffic,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PARTITIONED = [*TOPICS[:2], f"{TOPICS[0]}-partition-0", f"{TOPICS[0]}-partition-1"]
WRITTEN = {"marks": MARKS, "topic_usage": TOPIC_USAGE, "dead_letters": DEAD_LETTERS}
PER_TOPIC = [("default", ""), ("namespace", "acme/ns0"), ("topic", TOPICS[0]), ("topic", TOPICS[1])]


def control_table(changes, source=CONF):
    """The control table with a row for each of `changes`."""
    columns = ("seq", "broker", "scope", "name", "messages_per_s", "bytes_per_s")
    rows = [
        {column: getattr(change, column) for column in columns}
        | {"effective_time": EPOCH + timedelta(microseconds=change.effective_us), "kind": LIMIT, "source": source}
        for change in changes
    ]
    return pa.Table.from_pylist(rows, CONTROL)


class Job:
    """Keys under a routing, stepped batch by batch with their state stored in between."""

    def __init__(self, routing, rules, changes):
        control = control_table(changes)
        self.routing, self.rules = routing, rules
        self.given = tuple(changes_in(control)) if routing.by_topic else ()
        self.stored = {}
        self.out = []
        self.step(pack_control(routing, control.to_batches()))

    def events(self, rows):
        self.step(pack(self.routing, parsed(rows).to_batches()))

    def finish(self, at_us):
        at = EPOCH + timedelta(microseconds=START_US + at_us)
        keys = list(self.stored) if self.routing.by_topic else [None]
        ticks = pa.Table.from_pylist([tick_row(at, finish=True, key=key) for key in keys], CONTROL)
        self.step(pack_control(self.routing, ticks.to_batches()))

    def step(self, packed):
        blocks = defaultdict(list)
        for batch in packed:
            for row in batch.to_pylist():
                blocks[row["key"]].append(Block(row["kind"], 0, row["block"]))
        for key, of_key in blocks.items():
            state = decode_state(VERSION, self.stored[key]) if key in self.stored else KeyState()
            self.out += step_key(key, state, of_key, self.rules, run_arrays, self.given)
            self.stored[key] = encode_state(state)

    @property
    def written(self):
        return [sorted(rows_in(self.out, kind, schema), key=str) for kind, schema in WRITTEN.items()]


def written_by(routing, rows, changes, rules, places):
    """What a job writes for `rows` in batches that end at `places`, and a finish."""
    job = Job(routing, rules, changes)
    for start, end in zip([0, *places], [*places, len(rows)], strict=True):
        job.events(rows[start:end])
    job.finish(end_us(rows))
    return job.written


batch_ends = st.lists(st.integers(1, 20), max_size=3).map(sorted)


@pytest.mark.parametrize(
    "routing", [Routing(slots=2), Routing(slots=37), Routing(by_topic=True)], ids=["2 slots", "37 slots", "topics"]
)
@quick
@given(
    traffic(topics=PARTITIONED, groups=False),
    limit_changes(scoped_names=PER_TOPIC),
    all_rules(broker_wide=False),
    batch_ends,
)
def test_neither_the_number_of_slots_nor_keys_by_topic_change_what_is_written(routing, rows, changes, rules, places):
    expected = written_by(Routing(slots=1), rows, changes, rules, [])

    assert expected == written_by(routing, rows, changes, rules, places)


TOPIC_GROUPS = {topic: group for topic, group in GROUP_OF.items() if group is not None}


@pytest.mark.parametrize("broker_wide", [True, False])
@quick
@given(traffic(), limit_changes(), all_rules(), batch_ends, st.integers(2, 37))
def test_shared_limiters_stay_whole_in_any_number_of_slots(broker_wide, rows, changes, rules, places, slots):
    if not broker_wide:
        changes = [change for change in changes if change.scope != "broker"]
    rules = replace(rules, broker_wide=broker_wide)
    one, several = (Routing(slots=count, broker_wide=broker_wide, topics=TOPIC_GROUPS) for count in (1, slots))

    assert written_by(one, rows, changes, rules, []) == written_by(several, rows, changes, rules, places)


@pytest.mark.parametrize("routing", [Routing(slots=5), Routing(by_topic=True)], ids=["slots", "topics"])
def test_a_limit_of_a_topic_holds_for_each_of_its_partitions(routing):
    rows = [event(0, topic, seq=seq, messages=8) for seq, topic in enumerate(PARTITIONED)]
    changes = [limit("topic", TOPICS[0], 5)]
    marks, *_ = written_by(routing, rows, changes, Rules(), [])

    assert [0, 2, 3] == [mark["seq"] for mark in marks if mark["action"] == "mark"]


def test_a_limit_that_comes_while_the_job_runs_reaches_all_partitions_where_topics_are_keys():
    job = Job(Routing(by_topic=True), Rules(), [])
    job.events([event(0, topic, seq=seq) for seq, topic in enumerate(PARTITIONED)])
    late = control_table([limit("topic", TOPICS[0], 5, at_us=10)], source="admin")
    job.step(pack_control(job.routing, late.to_batches()))
    job.events([event(20, topic, seq=10 + seq, messages=8) for seq, topic in enumerate(PARTITIONED)])

    assert [10, 12, 13] == sorted(mark["seq"] for mark in job.written[0])
