"""Rows of kind `usage`, counts over intervals, to the publishes and dispatches that the operator takes."""

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Ints
from headgate.rows.kinds import DIRECTION, DISPATCH, FROM_US, IN, PUBLISH, USAGE
from headgate.rows.traffic import Parsed

STEP_US = 100_000
MOST_AT_ONCE = 2**19
"""Rows that are made at once: a row of a day's traffic alone becomes 864,000."""
UNNAMED = "usage"
"""The producer, or subscription, of usage that names none."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def spread(parsed: Parsed) -> Iterator[Parsed]:
    """The same rows with publishes and dispatches in place of usage, in the order of time; as they are without usage.

    The interval of a row of usage, (from_us, event_time], is cut into equal steps of up to STEP_US; into as many as
    there are messages if those are fewer (without messages: bytes). A row is made of each step, at the same place in
    all steps of an interval. The place is drawn from topic and from_us, so that topics do not all act at one instant.
    By the end of each step as many whole messages and bytes have come as are due by then: what does not divide evenly
    comes later, never earlier. All of this follows from the row of usage alone. Usage of nothing becomes no rows.

    seq is that of the row of usage: `throttle.ordering` puts rows of one instant in order. Without a name, the producer
    and the subscription are UNNAMED, and the connection has the topic's name: no two topics share one.

    A part has MOST_AT_ONCE rows at most, besides rows of other kinds and dead letters, which are in the first part.
    Source: clusters, picture at the top.
    """
    rows, dead_letters = parsed
    if FROM_US.name not in rows.column_names:
        yield parsed
        return
    is_usage = pc.equal(rows["kind"], USAGE.name)
    others = rows.filter(pc.invert(is_usage)).drop_columns([FROM_US.name, DIRECTION.name])
    steps = _Steps(rows.filter(is_usage))
    if not len(steps):
        yield Parsed(others, dead_letters)
    for after_us, until_us in steps.spans(MOST_AT_ONCE):
        made = steps.between(after_us, until_us)
        yield Parsed(pa.concat_tables([others, made], promote_options="default") if len(others) else made, dead_letters)
        others, dead_letters = others.slice(0, 0), dead_letters.slice(0, 0)


class _Steps:
    """The steps of some usage, a row each, by time. The nth of a row is at start + n * length // count."""

    def __init__(self, usage: pa.Table) -> None:
        messages, bytes_ = usage["messages"].to_numpy(), usage["bytes"].to_numpy()
        length_us = usage["event_time_us"].to_numpy() - usage[FROM_US.name].to_numpy()
        count = np.minimum(-(-length_us // STEP_US), np.where(messages > 0, messages, bytes_))
        some = np.flatnonzero(count)
        self._usage = usage.take(pa.array(some)).combine_chunks()
        self._length_us, self._count = length_us[some], count[some]
        self._start_us: Ints = self._usage[FROM_US.name].to_numpy()
        self._start_us = self._start_us - _earlier_us(self._usage, self._length_us // self._count)
        self._messages, self._bytes = messages[some], bytes_[some]

    def __len__(self) -> int:
        return int(self._count.sum())

    def spans(self, most: int) -> Iterator[tuple[int, int]]:
        """After when and until when there are up to `most` steps, more only at one instant: spans with all of them."""
        if len(self):
            yield from self._halved(int(self._start_us.min()), int((self._start_us + self._length_us).max()), most)

    def _halved(self, after_us: int, until_us: int, most: int) -> Iterator[tuple[int, int]]:
        found = int((self._until(until_us) - self._until(after_us)).sum())
        if found > most and until_us - after_us > 1:
            middle_us = (after_us + until_us) // 2
            yield from self._halved(after_us, middle_us, most)
            yield from self._halved(middle_us, until_us, most)
        elif found:
            yield after_us, until_us

    def _until(self, at_us: int) -> Ints:
        """How many steps of each row are at at_us or before."""
        passed_us = np.clip(at_us - self._start_us, 0, self._length_us)
        found: Ints = ((passed_us + 1) * self._count - 1) // self._length_us
        return found

    def between(self, after_us: int, until_us: int) -> pa.Table:
        """The steps in a span as rows, in the order of time."""
        before = self._until(after_us)
        counts = self._until(until_us) - before
        row = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + before[row] + 1
        at_us = self._start_us[row] + nth * self._length_us[row] // self._count[row]
        places = np.argsort(at_us, kind="stable")
        return self._rows(row[places], nth[places], at_us[places])

    def _rows(self, row: Ints, nth: Ints, at_us: Ints) -> pa.Table:
        of_row, count = pa.array(row), self._count[row]
        messages, bytes_ = (pa.array(_of_step(nth, of[row], count)) for of in (self._messages, self._bytes))
        is_publish = pc.equal(self._usage[DIRECTION.name], IN).take(of_row)

        def named(column: str, default: str | pa.ChunkedArray) -> pa.ChunkedArray:
            return pc.coalesce(self._usage[column], default).take(of_row)

        return pa.table(
            {
                "event_time_us": at_us,
                **{name: self._usage[name].take(of_row) for name in ("seq", "broker", "topic")},
                "kind": pc.if_else(is_publish, PUBLISH.name, DISPATCH.name),
                "producer": pc.if_else(is_publish, named("producer", UNNAMED), None),
                "connection": pc.if_else(is_publish, named("connection", self._usage["topic"]), None),
                "subscription": pc.if_else(is_publish, None, named("subscription", UNNAMED)),
                "messages": messages,
                "bytes": bytes_,
                "entries": pc.if_else(is_publish, None, messages),
                "caught_up": pc.if_else(is_publish, None, pa.scalar(False)),
                "filtered": pc.if_else(is_publish, None, pa.scalar(False)),
            }
        )


def _earlier_us(usage: pa.Table, step_us: Ints) -> Ints:
    """How long before the end of its steps each row acts: from 0 to below step_us."""
    topics = usage["topic"].combine_chunks().dictionary_encode()
    hashes = np.array([zlib.crc32(topic.encode()) for topic in topics.dictionary.to_pylist()], np.uint64)
    mixed = (hashes[topics.indices.to_numpy()] + usage[FROM_US.name].to_numpy().astype(np.uint64)) * _MIX
    drawn: Ints = (mixed >> np.uint64(40)).astype(np.int64)
    return drawn * step_us >> 24


def _of_step(nth: Ints, amounts: Ints, count: Ints) -> Ints:
    """What the nth step has of `amounts` in `count` steps."""
    rest: Ints = amounts % count  # nth * amounts would not fit into 64 bits
    before: Ints = (nth - 1) * rest // count
    return amounts // count + nth * rest // count - before
