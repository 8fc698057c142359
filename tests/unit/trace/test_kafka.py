"""What is handed to Spark's Kafka writer, seen by a session that only records."""

import json
from dataclasses import replace

from headgate.spark.trace_to_kafka import send_trace
from headgate.trace import TraceSpec, write_trace

SPEC = TraceSpec(events=1_000, files=4, bad_share=0.1, disorder_ms=200)


class RecordingSession:
    """Stands for a session, its frames and their writer: notes each call by name."""

    def __init__(self):
        self.tables, self.calls = [], []

    def createDataFrame(self, table):  # noqa: N802 -- Spark's name
        self.tables.append(table)
        return self

    @property
    def write(self):
        return self

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            return self

        return call


def test_values_are_the_json_lines_in_order_one_batch_a_file(tmp_path):
    session = RecordingSession()
    send_trace(SPEC, session, "localhost:9092", "traffic")
    write_trace(SPEC, tmp_path, "json")
    expected = [path.read_text().splitlines() for path in sorted(tmp_path.iterdir())]
    assert expected == [table["value"].to_pylist() for table in session.tables]


def test_a_row_is_keyed_by_its_broker_and_sent_by_one_task():
    session = RecordingSession()
    send_trace(replace(SPEC, files=1, bad_share=0.0), session, "localhost:9092", "traffic")
    (rows,) = (table.to_pylist() for table in session.tables)
    assert [json.loads(row["value"])["broker"] for row in rows] == [row["key"] for row in rows]
    expected = [
        ("select", "key", "value"),
        ("coalesce", 1),
        ("format", "kafka"),
        ("option", "kafka.bootstrap.servers", "localhost:9092"),
        ("option", "topic", "traffic"),
        ("save",),
    ]
    assert expected == session.calls


def test_the_summary_is_that_of_the_json_files(tmp_path):
    seen = []
    summary = send_trace(
        SPEC, RecordingSession(), "localhost:9092", "traffic", lambda so_far: seen.append(so_far.files)
    )
    assert write_trace(SPEC, tmp_path, "json") == summary
    assert list(range(1, SPEC.files + 1)) == seen
