"""What clients do from a Kafka topic, and decisions to another: the rows of the tables, as JSON."""

import json
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from headgate.conf import load_conf
from headgate.protocol.schemas import DECISIONS, INPUTS
from headgate.report.sql import query
from headgate.spark.protocol import ProtocolJob, ProtocolRun
from integration.processes import connected, options, run_job
from integration.runs import write_conf
from unit.protocol import traffic

TEXT = '[input.kafka]\nbootstrap_servers = "{}"\n'
NOT_JSON = "this is no JSON"


def send(confluent, broker: str, topic: str, values: list[str]) -> None:
    producer = confluent.Producer({"bootstrap.servers": broker, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(60) == 0


def received(confluent, broker: str, topic: str, n: int) -> list[tuple[str, dict]]:
    """Keys and values of the first `n` records of the topic's only partition."""
    consumer = confluent.Consumer({"bootstrap.servers": broker, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.assign([confluent.TopicPartition(topic, 0, 0)])
    records = []
    while len(records) < n:
        some = consumer.consume(n - len(records), timeout=30)
        assert some
        records += [(record.key().decode(), json.loads(record.value())) for record in some]
    consumer.close()
    return records


@pytest.mark.long
def test_a_topic_of_inputs_gives_the_decisions_of_a_table_and_sends_them(
    kafka_broker: str, spark: SparkSession, tmp_path: Path
) -> None:
    import confluent_kafka as confluent  # noqa: PLC0415  where there is a broker there is a client

    rows = traffic.inputs(3, 6, 300, 3000)
    write_deltalake(str(tmp_path / "inputs"), pa.Table.from_pylist(rows, INPUTS))
    conf = write_conf(tmp_path / "conf", TEXT.format(kafka_broker))
    from_table, from_topic = tmp_path / "from_table", tmp_path / "from_topic"
    job = ProtocolJob(str(from_table), str(from_table / "protocol-checkpoint"), str(tmp_path / "inputs"), once=True)
    assert ProtocolRun(spark, job, load_conf(conf), lambda _: None, Event()).run()

    send(confluent, kafka_broker, "inputs", [*map(json.dumps, rows), NOT_JSON])
    taken_in = options(input="inputs", format="kafka", output=from_topic, conf_dir=conf, commands_topic="commands")
    connected(run_job("protocol", "--once", *taken_in))

    decisions = f"SELECT {', '.join(DECISIONS.names)} FROM throttle_decisions ORDER BY connection, seq"
    expected = query(str(from_table), decisions).to_pylist()
    assert expected
    assert expected == query(str(from_topic), decisions).to_pylist()
    (letter,) = query(str(from_topic), "SELECT raw, source FROM protocol_dead_letters").to_pylist()
    assert (NOT_JSON, "inputs") == (letter["raw"], letter["source"].split("/")[0])

    sent = received(confluent, kafka_broker, "commands", len(expected))
    assert all(key == value["connection"] for key, value in sent)
    by_place = sorted((value for _, value in sent), key=lambda value: (value["connection"], value["seq"]))
    assert by_place == [{name: value for name, value in row.items() if value is not None} for row in expected]
    assert {name for value in by_place for name in value} <= set(DECISIONS.names)
    places = [(value["connection"], value["seq"]) for _, value in sent]
    assert [sorted(place for place in places if place[0] == name) for name in dict(places)] == [
        [place for place in places if place[0] == name] for name in dict(places)
    ]
