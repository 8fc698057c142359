"""Cache events from a Kafka topic: one JSON object a record."""

from pathlib import Path

import pytest

from headgate.cache.schemas import OF_CACHE
from headgate.tables.delta import Tables
from integration.cache_events import BROKERS, events, fed, line, results_of
from integration.processes import connected, options, run_job
from integration.runs import write_conf

TEXT = '[input.kafka]\nbootstrap_servers = "{}"\n'
SMALL = {"headgate.cache.maxBytes": 60_000}
NOT_JSON = "this is no JSON"


@pytest.mark.long
def test_a_topic_of_events_is_counted_as_the_rules_count_them(kafka_broker: str, tmp_path: Path) -> None:
    import confluent_kafka as confluent  # noqa: PLC0415  where there is a broker there is a client

    rows, output = events(400), tmp_path / "out"
    producer = confluent.Producer({"bootstrap.servers": kafka_broker, "linger.ms": 5})
    for value in [*map(line, rows), NOT_JSON]:
        producer.produce("cache-events", value.encode(), partition=0)
    assert producer.flush(60) == 0
    conf = write_conf(tmp_path / "conf", TEXT.format(kafka_broker), broker=SMALL)
    connected(
        run_job("entry_cache", "--once", *options(input="cache-events", format="kafka", output=output, conf_dir=conf))
    )

    told = results_of(output)
    assert [] == told["evictions"]
    letters = Tables(output, OF_CACHE).read("dead_letters").to_pylist()
    assert [(NOT_JSON, "cache-events/0", len(rows))] == [(row["raw"], row["source"], row["offset"]) for row in letters]
    for broker in BROKERS:
        expected = fed(rows, broker, SMALL).totals()
        last = [row for row in told["metrics"] if row["broker"] == broker and row["topic"] is None][-1]
        same = {"hits", "misses", "storage_bytes", "inserted", "entries"}
        assert {name: expected[name] for name in same} == {name: last[name] for name in same}
