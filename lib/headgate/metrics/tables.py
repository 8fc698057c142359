"""Which rows move which counters. A new table takes one entry in TABLES, and a line a series in operations.md."""

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.mark_reasons import reasons_of
from headgate.arrow.topic_names import TENANT, named_rows
from headgate.core.reasons import dispatch_reason
from headgate.metrics.series import COUNTER, Count, OfTable, Series, counter
from headgate.metrics.usage_series import NS_PER_S, OF_USAGE
from headgate.rows.kinds import JUDGED
from headgate.throttle.schemas import DISPATCH_LEVELS

ROW, FILE, CONTROL = "row", "file", "control"
REASONS = (*JUDGED, ROW, FILE, CONTROL)
"""Classes of dead letters: the first column at fault; no row at all; a file that lacks rows; a row of `control`."""
CLASSES = ("Publish", "Dispatch")
"""Pulsar's names of the classes of traffic, by number. resource-groups 15"""

_HELD = Series(
    "headgate_held_total",
    COUNTER,
    "Times that something was held, by reason: marks of producers and connections, and reads without a permit.",
    (TENANT, "reason"),
)
_HELD_READS = Series(
    "headgate_dispatch_held_reads_total",
    COUNTER,
    "Reads that found no permit as they came, by the first level without one; replicators' own is `subscription`.",
    ("broker", "level"),
)
_DEAD_LETTERS = Series(
    "headgate_dead_letters_total",
    COUNTER,
    "Rows in dead_letters, by what is wrong with them.",
    ("reason",),
    zeros=tuple((reason,) for reason in REASONS),
)


def _with_reason_class(letters: pa.Table) -> pa.Table:
    first = pc.struct_field(pc.extract_regex(letters["reason"], r"(?s)^(?P<column>[a-z_]+):.*$"), "column")
    of_row = pc.if_else(pc.is_in(first, pa.array(JUDGED)), first, ROW)
    of_input = pc.if_else(pc.is_null(letters["raw"]), FILE, of_row)
    is_control = pc.fill_null(pc.equal(letters["source"], CONTROL), fill_value=False)
    return pa.table({"class": pc.if_else(is_control, CONTROL, of_input)})


def _with_reasons(marks: pa.Table) -> pa.Table:
    """Rows other than marks hold nothing: they have no reason, and count as null."""
    is_mark = pc.equal(marks["action"], "mark")
    reasons = pc.if_else(is_mark, reasons_of(marks), pa.scalar(None, pa.string()))
    counted = pc.if_else(is_mark, 1, pa.scalar(None, pa.int64()))
    return named_rows(marks).append_column("reason", reasons).append_column("is_mark", counted)


def _with_switches(transitions: pa.Table) -> pa.Table:
    """1 where reads were switched off or on, 0 in both where a connection was closed while they were off.

    The table's own counts go on from transition to transition.
    """
    resumed = transitions["auto_read"]
    here = {"paused_here": pc.invert(resumed), "resumed_here": resumed}
    for name, column in here.items():
        transitions = transitions.append_column(name, pc.cast(column.fill_null(fill_value=False), pa.int64()))
    return transitions


def _with_class_names(usage: pa.Table) -> pa.Table:
    names = pa.array(CLASSES).take(usage["class"].combine_chunks())
    return usage.append_column("class_name", names)


def _used(name: str, column: str) -> Count:
    meaning = f"What the brokers of this job let in of the group, {name}."
    labels = ("ResourceGroup", "MonitoringClass")
    series = Series(f"pulsar_resource_group_{name}_used_total", COUNTER, meaning, labels)
    return Count(series, ("group", "class_name"), column)


def _of_topic(name: str, meaning: str, column: str, per: int = 1) -> Count:
    return counter(
        name, f"{meaning} Topics without a series of their own are `other`.", "broker", "topic", column=column, per=per
    )


_DISPATCHES = {
    "reads": ("reads", "Dispatches that came: deliveries, or reads that want to start."),
    "messages": ("messages", "Messages in the dispatches that came."),
    "bytes": ("bytes", "Bytes in the dispatches that came."),
    "allowed_reads": ("allowed_reads", "Dispatches with a permit at every level; of offered traffic as they start."),
    "allowed_messages": ("allowed_messages", "Messages in the dispatches that were allowed."),
    "allowed_bytes": ("allowed_bytes", "Bytes in the dispatches that were allowed."),
    "delayed_reads": ("delayed_reads", "Reads that started after a wait; offered traffic only."),
}

TABLES = {
    "batches": OfTable((counter("headgate_batches_total", "Batches that brought something: rows of batches."),)),
    "progress": OfTable(
        (
            counter("headgate_rows_total", "Rows of the input that were accounted.", "broker", column="rows"),
            counter("headgate_late_rows_total", "Rows behind the clock of their broker.", "broker", column="late"),
        )
    ),
    "marks": OfTable(
        (
            counter("headgate_marks_total", "Rows of marks.", "broker", "scope", "type", "action"),
            Count(_HELD, (TENANT, "reason"), "is_mark"),
        ),
        _with_reasons,
    ),
    "topic_usage": OfTable(OF_USAGE, named_rows),
    "subscribe_decisions": OfTable(
        (counter("headgate_subscribes_total", "Attempts to subscribe.", "broker", "allowed"),),
    ),
    "dispatch_decisions": OfTable(
        (
            *(
                counter(f"headgate_dispatch_{name}_total", meaning, "broker", column=column)
                for name, (column, meaning) in _DISPATCHES.items()
            ),
            *(Count(_HELD_READS, ("broker",), f"held_by_{level}", (level,)) for level in DISPATCH_LEVELS),
            *(Count(_HELD, (TENANT,), f"held_by_{level}", (str(dispatch_reason(level)),)) for level in DISPATCH_LEVELS),
            counter(
                "headgate_dispatch_delay_seconds_total",
                "Waits of the reads that started; offered traffic only.",
                "broker",
                column="delay_ns",
                per=NS_PER_S,
            ),
        ),
        named_rows,
    ),
    "unloads": OfTable(
        (
            counter("headgate_unloads_total", "Unloads of bundles.", "broker", "outcome"),
            counter(
                "headgate_unload_wait_seconds_total",
                "Waits of unloads for their start.",
                "broker",
                column="waited_ns",
                per=NS_PER_S,
            ),
        )
    ),
    "connections": OfTable(
        (
            counter(
                "headgate_connections_paused_total",
                "Times that reads were switched off.",
                "broker",
                column="paused_here",
            ),
            counter(
                "headgate_connections_resumed_total",
                "Times that reads were switched on.",
                "broker",
                column="resumed_here",
            ),
            counter(
                "headgate_connections_paused_seconds_total",
                "Lengths of the pauses that have ended, also by a close.",
                "broker",
                column="paused_ns",
                per=NS_PER_S,
            ),
        ),
        _with_switches,
    ),
    "connection_topics": OfTable(
        (
            counter(
                "headgate_topics_rate_limited_total",
                "Pauses of connections, counted for each topic with a producer there.",
                "broker",
                column="rate_limited",
            ),
        )
    ),
    "dead_letters": OfTable((Count(_DEAD_LETTERS, ("class",)),), _with_reason_class),
    "group_usage": OfTable(
        (_used("messages", "admitted_msgs"), _used("bytes", "admitted_bytes")),
        _with_class_names,
    ),
}
"""By kind of rows, as a sink has them: tables, and what the operator says besides. Other kinds move nothing."""

TOPICS = OfTable(
    (
        _of_topic(
            "headgate_topic_throttled_publishes_total", "Publishes that a limiter throttled.", "throttled_publishes"
        ),
        _of_topic("headgate_topic_throttled_seconds_total", "Time with a producer waiting.", "throttled_ns", NS_PER_S),
    )
)
"""Of topic_usage, where topics are to have series of their own."""
