"""Rows of the protocol's inputs and of marks, stepped through one key in batches."""

from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.arrow.blocks import encode, gather
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.keyed.operator import Block
from headgate.protocol.key_operator import step_key
from headgate.protocol.readable_form import run_readable
from headgate.protocol.schemas import COUNTS, DECISIONS, INPUTS, PROGRESS, TIME
from headgate.protocol.state import VERSION, SlotState, decode_state, encode_state
from headgate.protocol.step import ProtocolRules
from headgate.throttle.schemas import MARKS

A = "broker-1/a"
TOPIC = "persistent://acme/ns/t"
RULES = ProtocolRules(sources=frozenset({"inputs"}))
OBEDIENT = ProtocolRules(sources=frozenset({"marks"}), obedient=True)
BOTH = ProtocolRules()


class Outcome(NamedTuple):
    """Rows of the tables. decisions: in order of connection and seq. counts: summed by connection, name and labels."""

    decisions: list[dict[str, Any]]
    counts: dict[Any, int]
    dead_letters: list[dict[str, Any]]
    progress: list[dict[str, Any]]
    state: SlotState


def given(kind, at_ms, connection=A, **more):
    """A row of inputs."""
    return {"kind": kind, "at_ms": at_ms, "connection": connection, "event_id": more.pop("event_id", "")} | more


def trip(reason=0, ordinal=1, *buckets):
    return {
        "reason": reason,
        "ordinal": ordinal,
        "buckets": [dict(zip(("balance", "rate"), bucket, strict=True)) for bucket in buckets or [(0, 10)]],
    }


def mark_row(at_ns, action="mark", type_="TopicPublishRate", *, topic=TOPIC, producer="p", seq=0, balance=-5, per_s=10):
    """A row of the table `marks`."""
    return {
        "at_ns": at_ns,
        "broker": "broker-1",
        "connection": "a",
        "topic": topic,
        "producer": producer,
        "type": type_,
        "action": action,
        "seq": seq if action == "mark" else None,
        "messages_balance": balance if action == "mark" else None,
        "messages_per_s": per_s if action == "mark" else None,
    }


def inputs_block(rows):
    return Block("inputs", len(rows), encode(pa.Table.from_pylist(rows, INPUTS)))


def marks_block(rows):
    return Block("marks", len(rows), encode(pa.Table.from_pylist(rows, MARKS)))


def time_block(at_ms, source=None, *, finish=False):
    return Block("time", 1, encode(pa.table([[source], [at_ms], [finish]], TIME)))


def batch(inputs=(), marks=(), finish_ms=None):
    """The blocks of a batch, with the highest time in it, as every slot hears of it."""
    times = {
        "inputs": [row["at_ms"] for row in inputs if row.get("at_ms") is not None],
        "marks": [row["at_ns"] // 1_000_000 for row in marks],
    }
    blocks = [inputs_block(list(inputs)), marks_block(list(marks))]
    blocks += [time_block(max(of_source), source) for source, of_source in times.items() if of_source]
    return blocks if finish_ms is None else [*blocks, time_block(finish_ms, finish=True)]


def run(batches, rules=RULES, state=None, form=run_readable):
    """Step through the batches, with the state stored and loaded in between."""
    state, by_kind = state or SlotState(), defaultdict(list)
    for blocks in batches:
        for block in step_key("slot", state, blocks, rules, form):
            by_kind[block.kind].append(block.block)
        state = decode_state(VERSION, encode_state(state))
    decisions = gather(DECISIONS, by_kind["decisions"]).to_pylist()
    counts = defaultdict(int)
    for row in gather(COUNTS, by_kind["counts"]).to_pylist():
        counts[row["connection"], row["name"], tuple(row["labels"])] += row["value"]
    return Outcome(
        sorted(decisions, key=lambda row: (row["connection"], row["seq"])),
        dict(counts),
        sorted(gather(DEAD_LETTERS, by_kind["dead_letters"]).to_pylist(), key=str),
        gather(PROGRESS, by_kind["progress"]).to_pylist(),
        state,
    )


def told(outcome, *names):
    """Of each decision what these columns say."""
    return [tuple(row[name] for name in names) for row in outcome.decisions]
