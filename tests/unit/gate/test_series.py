"""What the metrics endpoint of a gate tells."""

from prometheus_client import generate_latest

from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import Reason
from headgate.gate.gate_metrics import GateMetrics
from headgate.gate.series import GateSeries


def test_topics_above_the_limit_are_counted_together() -> None:
    metrics = GateMetrics(max_topics=2)
    for topic in ("t", "u", "v", "w", "t"):
        metrics.breach(Reason.TopicProduceQuotaExceeded, topic)
    counted = "pulsar.broker.topic.publish.rate.limit.count{pulsar.publish.rate_limiter=topic,pulsar.topic=%s}"
    assert metrics.values() == {counted % "t": 2, counted % "u": 1, counted % "other topics": 2}


def test_counters_are_summed_over_topics_and_have_underscores_for_dots() -> None:
    machines, counters = GateMetrics(), Counters()
    series = GateSeries(machines, counters)
    for topic in ("t", "u"):
        machines.breach(Reason.TopicProduceQuotaExceeded, topic)
    machines.reads_off(700)
    counters.add("headgate.gate.unknown_command.count")
    counters.add("headgate.gate.connection.ended.count", (("why", "idle"),))

    lines = generate_latest(series.registry).decode().splitlines()

    assert {line for line in lines if not line.startswith("#")} == {
        'pulsar_broker_topic_publish_rate_limit_total{pulsar_publish_rate_limiter="topic"} 2.0',
        "headgate_broker_reads_off_duration_ms_total 700.0",
        "headgate_gate_unknown_command_total 1.0",
        'headgate_gate_connection_ended_total{why="idle"} 1.0',
    }
