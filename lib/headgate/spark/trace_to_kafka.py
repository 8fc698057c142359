"""A trace into a Kafka topic, through Spark's batch writer."""

from typing import Any

import pyarrow as pa

from headgate.trace.defects import TEXT_DEFECTS, chosen_defects
from headgate.trace.events import TraceGenerator
from headgate.trace.lines import json_lines, line_batches
from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary
from headgate.trace.write import OnFile


def send_trace(spec: TraceSpec, session: Any, servers: str, topic: str, on_file: OnFile | None = None) -> TraceSummary:
    """Append the trace to `topic`: value = the JSON line, key = the broker's name.

    A broker's events reach one Kafka partition in arrival order: one task at a time sends one file after the other.
    Delivery is at least once: Spark's Kafka writer has no transactions, so a failed task that is retried repeats rows.

    `session` has the Kafka connector; `servers` is host:port[,host:port]; `on_file` gets the summary after each file.
    """
    generator, summary = TraceGenerator(spec), TraceSummary()
    for index in range(spec.files):
        rows = generator.rows(index)
        defects = chosen_defects(rows.spoil, spec.bad_share, TEXT_DEFECTS)
        values = pa.chunked_array(line_batches(rows.table, defects, json_lines))
        table = pa.table({"key": rows.table["broker"], "value": values})
        frame = session.createDataFrame(table).select("key", "value").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()
        summary.add(rows, defects, TEXT_DEFECTS)
        if on_file is not None:
            on_file(summary)
    return summary
