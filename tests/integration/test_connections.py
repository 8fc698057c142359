"""Connections through both jobs: the tables as worked out by hand, and the same after a crash."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError, StateError
from headgate.metrics import Metrics
from headgate.report.sql import query
from headgate.spark.connections import ConnectionsJob, ConnectionsRun
from headgate.throttle.schemas import HELD_NS
from headgate.throttle.tables import OF_CONNECTIONS
from integration.engines import Engine
from integration.runs import conf_in, in_order_of_names
from prometheus_text import told
from unit.throttle.rows import TOPICS

T0, T1 = TOPICS[:2]
C = "10.0.0.1:5001"
BROKER_CONF = {
    "maxPublishRatePerTopicInMessages": 10,
    "maxPendingPublishRequestsPerConnection": 2,
    "pulsarChannelPauseReceivingRequestsIfUnwritable": "true",
}
MS = 1_000_000
START_MS = 1_767_603_600_000


def publish(topic: str, messages: int) -> dict[str, Any]:
    return {"kind": "publish", "topic": topic, "producer": "p", "connection": C, "messages": messages, "bytes": 0}


def acts(action: str, **more: Any) -> dict[str, Any]:
    return {"kind": "connection", "connection": C, "action": action} | more


REQUEST = {"io_thread": 3, "bytes": 10}
FILES = (
    # T0 is in debt by 5 of 10 a second from 200 ms on: it needs 6, and is released at 800 ms.
    {0: publish(T0, 5), 100: publish(T1, 5), 200: publish(T0, 12), 500: acts("unwritable")},
    {900: publish(T1, 1), 1000: acts("writable"), 1200: acts("start", **REQUEST), 1300: acts("start", **REQUEST)},
    {1500: acts("finish", **REQUEST), 1550: acts("finish", **REQUEST), 1560: acts("finish", **REQUEST)},
    {1600: acts("unwritable"), 1620: acts("close"), 2000: publish(T1, 1) | {"connection": "another"}},
)
TOPIC, BUFFER = "TopicPublishRate", "ConnectionOutboundBufferFull"
REQUESTS = "ConnectionMaxPendingPublishRequestsExceeded"
PAUSES = [
    (200, False, TOPIC, "topic", T0, 1, 0, 0, None, {}),
    (1000, True, BUFFER, "connection", C, 1, 1, 0, 800, {TOPIC: 600, BUFFER: 500}),
    (1300, False, REQUESTS, "connection", C, 2, 1, 1, None, {}),
    (1500, True, REQUESTS, "connection", C, 2, 2, 0, 200, {REQUESTS: 200}),
    (1600, False, BUFFER, "connection", C, 3, 2, 0, None, {}),
    (1620, None, "close", None, None, 3, 2, 0, 20, {BUFFER: 20}),
]
HELD = {name: str(type_) for type_, name in HELD_NS.items()}


def written(folder: Path) -> Path:
    trace = folder / "trace"
    trace.mkdir()
    for number, rows in enumerate(FILES):
        lines = [
            json.dumps({"event_time": (START_MS + at_ms) * 1000, "seq": at_ms, "broker": "b1"} | row)
            for at_ms, row in rows.items()
        ]
        (trace / f"{number}.json").write_text("\n".join(lines))
    in_order_of_names(trace)
    return trace


@pytest.fixture
def output(engine: Engine, tmp_path: Path) -> Path:
    """A throttle job's output, a batch a file."""
    text = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\nconnection_topics = true\n"
    conf = conf_in(tmp_path / "conf", text, broker=BROKER_CONF)
    return engine.throttle(conf, written(tmp_path), tmp_path / "out").output


def followed(
    spark: SparkSession, output: Path, checkpoint: Path | None = None, metrics: Metrics | None = None
) -> ConnectionsRun:
    job = ConnectionsJob(str(output), str(checkpoint or output / "connections-checkpoint"), once=True)
    return ConnectionsRun(spark, job, lambda _: None, Event(), metrics=metrics)


def pauses(output: Path) -> Iterator[tuple[Any, ...]]:
    for row in query(str(output), "SELECT * FROM connections ORDER BY at_ns").to_pylist():
        assert (row["broker"], row["connection"]) == ("b1", C)
        held = {type_: row[name] // MS for name, type_ in HELD.items() if row[name]}
        paused_ms = None if row["paused_ns"] is None else row["paused_ns"] // MS
        names = ("auto_read", "cause", "scope", "limiter", "paused", "resumed", "throttled_connections")
        yield (row["at_ns"] // MS - START_MS, *(row[name] for name in names), paused_ms, held)


COUNTED = ("connections_paused", "connections_resumed", "connections_paused_seconds", "topics_rate_limited")
TOPIC_COUNTS = (
    "SELECT date_part('second', event_time) AS second, topic, sum(rate_limited) AS rate_limited, sum(marked) AS marked "
    "FROM connection_topics GROUP BY event_time, topic ORDER BY second, topic"
)
VICTIMS = (
    "SELECT topic, sum(rate_limited_by_quotas) AS paused FROM connection_topics GROUP BY topic HAVING sum(marked) = 0"
)


def test_pauses_of_a_connection_name_who_caused_them_and_who_is_only_a_victim(
    spark: SparkSession, output: Path
) -> None:
    metrics = Metrics()
    assert followed(spark, output, metrics=metrics).run()

    assert PAUSES == list(pauses(output))
    counted = {name: told(metrics)[f"headgate_{name}_total"]["b1",] for name in COUNTED}
    expected = (3, 2, 1.02, 6)
    assert dict(zip(COUNTED, expected, strict=True)) == counted
    assert [(0, T0, 1, 1), (0, T1, 1, 0), (1, T0, 2, 0), (1, T1, 2, 0)] == [
        tuple(row.values()) for row in query(str(output), TOPIC_COUNTS).to_pylist()
    ]
    assert [{"topic": T1, "paused": 1}] == query(str(output), VICTIMS).to_pylist()
    (letter,) = query(str(output), "SELECT reason, source FROM dead_letters").to_pylist()
    assert ("action: got finish", None) == (letter["reason"].partition(",")[0], letter["source"])


def test_a_batch_that_was_half_written_is_written_once_by_the_next_start(spark: SparkSession, output: Path) -> None:
    failing = followed(spark, output)
    append = failing.tables.append

    def broken(name: str, *rows: Any) -> bool:
        if name == "connection_topics":
            raise OSError("no space")
        return append(name, *rows)

    failing.tables.append = broken  # type: ignore[method-assign]
    with pytest.raises(Exception, match="no space"):
        failing.run()
    assert len(PAUSES) == len(list(pauses(output)))
    for _ in range(2):
        assert followed(spark, output).run()
        assert PAUSES == list(pauses(output))
        assert 4 == len(query(str(output), TOPIC_COUNTS))


def test_a_new_checkpoint_on_tables_that_have_rows_and_an_output_without_marks_are_refused(
    spark: SparkSession, output: Path, tmp_path: Path
) -> None:
    followed(spark, output).run()

    with pytest.raises(StateError, match=f"the tables {', '.join(OF_CONNECTIONS)} under .* are of another checkpoint"):
        followed(spark, output, tmp_path / "another")
    with pytest.raises(InputError, match="no table marks is under"):
        followed(spark, tmp_path / "elsewhere")
