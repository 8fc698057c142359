"""Which rows move which counters. A new table takes one entry in TABLES, and a line a series in operations.md."""

import pyarrow as pa
import pyarrow.compute as pc

from headgate.metrics.series import COUNTER, Count, OfTable, Series, counter
from headgate.rows.kinds import JUDGED
from headgate.throttle.schemas import DISPATCH_LEVELS

NS_PER_S = 1_000_000_000
ROW, FILE, CONTROL = "row", "file", "control"
REASONS = (*JUDGED, ROW, FILE, CONTROL)
"""Classes of dead letters: the first column at fault; no row at all; a file that lacks rows; a row of `control`."""
CLASSES = ("Publish", "Dispatch")
"""Pulsar's names of the classes of traffic, by number. resource-groups 15"""

_BY_SCOPE = Series(
    "headgate_limiter_throttled_publishes_total",
    COUNTER,
    "Publishes that the limiters of this scope throttled; one that several throttle counts for each of them.",
    ("broker", "scope"),
)
_HELD = Series(
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


_USAGE = {
    "publishes": ("publishes", "Publishes that came."),
    "publish_messages": ("messages", "Messages in the publishes that came."),
    "publish_bytes": ("bytes", "Bytes in the publishes that came."),
    "throttled_publishes": ("throttled_publishes", "Publishes that at least one limiter throttled."),
    "admitted_publishes": ("admitted_publishes", "Publishes that were let in; offered traffic only."),
    "admitted_messages": ("admitted_messages", "Messages in the publishes that were let in; offered traffic only."),
    "admitted_bytes": ("admitted_bytes", "Bytes in the publishes that were let in; offered traffic only."),
    "delayed_publishes": ("delayed_publishes", "Publishes that were let in after a wait; offered traffic only."),
    "failed_publishes": ("failed_publishes", "Publishes given up after the client's time-out; offered traffic only."),
    "failed_messages": ("failed_messages", "Messages in the publishes given up; offered traffic only."),
    "failed_bytes": ("failed_bytes", "Bytes in the publishes given up; offered traffic only."),
}
_USAGE_NS = {
    "throttled_seconds": ("throttled_ns", "Time with a producer of a topic waiting, added up over topics."),
    "publish_delay_seconds": ("delay_ns", "Waits of the publishes that were let in; offered traffic only."),
}
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
        (counter("headgate_marks_total", "Rows of marks.", "broker", "scope", "type", "action"),),
    ),
    "topic_usage": OfTable(
        (
            *(
                counter(f"headgate_{name}_total", meaning, "broker", column=column)
                for name, (column, meaning) in _USAGE.items()
            ),
            *(
                counter(f"headgate_{name}_total", meaning, "broker", column=column, per=NS_PER_S)
                for name, (column, meaning) in _USAGE_NS.items()
            ),
            *(
                Count(_BY_SCOPE, ("broker",), f"throttled_by_{scope}", (scope,))
                for scope in ("topic", "broker", "group")
            ),
        )
    ),
    "subscribe_decisions": OfTable(
        (counter("headgate_subscribes_total", "Attempts to subscribe.", "broker", "allowed"),),
    ),
    "dispatch_decisions": OfTable(
        (
            *(
                counter(f"headgate_dispatch_{name}_total", meaning, "broker", column=column)
                for name, (column, meaning) in _DISPATCHES.items()
            ),
            *(Count(_HELD, ("broker",), f"held_by_{level}", (level,)) for level in DISPATCH_LEVELS),
            counter(
                "headgate_dispatch_delay_seconds_total",
                "Waits of the reads that started; offered traffic only.",
                "broker",
                column="delay_ns",
                per=NS_PER_S,
            ),
        )
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
