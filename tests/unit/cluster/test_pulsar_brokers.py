"""What a broker's metrics tell, as Pulsar 4.0.8 writes them, and what is not Pulsar's is named."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from headgate.cluster.brokers import BrokerLook, CacheUse
from headgate.cluster.pulsar_brokers import PulsarBrokers, look_of
from headgate.conf.cluster import ClusterConf, ClusterSettings
from headgate.core.clusters.counters import Reading
from headgate.errors import ClusterError

T1, T3, T6 = "persistent://acme/a/t1", "persistent://acme/a/t3", "persistent://acme/b/t6"
BROKER = """\
# TYPE jvm_gc_collection_seconds_count gauge
jvm_gc_collection_seconds_count{cluster="real",gc="Copy"} 23.0
# TYPE pulsar_resource_group_calculate_quota_secs summary
pulsar_resource_group_calculate_quota_secs{cluster="real",quantile="0.5"} NaN
# TYPE pulsar_in_bytes_total gauge
pulsar_in_bytes_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t3"} 499202
pulsar_in_bytes_total{cluster="real",namespace="acme/b",topic="persistent://acme/b/t6"} 0
# TYPE pulsar_in_messages_total gauge
pulsar_in_messages_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t3"} 2171
pulsar_in_messages_total{cluster="real",namespace="acme/b",topic="persistent://acme/b/t6"} 0
# TYPE pulsar_publish_rate_limit_times gauge
pulsar_publish_rate_limit_times{cluster="real",namespace="acme/b",topic="persistent://acme/b/t6"} 269
# TYPE pulsar_out_bytes_total gauge
pulsar_out_bytes_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",subscription="r"} 300
pulsar_out_bytes_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",subscription="s"} 2000
# TYPE pulsar_out_messages_total gauge
pulsar_out_messages_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",subscription="r"} 3
pulsar_out_messages_total{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",subscription="s"} 20
# TYPE pulsar_subscription_dispatch_throttled_msg_events gauge
pulsar_subscription_dispatch_throttled_msg_events{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",\
subscription="s",reason="topic"} 3
pulsar_subscription_dispatch_throttled_msg_events{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",\
subscription="s",reason="broker"} 0
pulsar_subscription_dispatch_throttled_msg_events{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",\
subscription="r",reason="topic"} 4
# TYPE pulsar_subscription_dispatch_throttled_bytes_events gauge
pulsar_subscription_dispatch_throttled_bytes_events{cluster="real",namespace="acme/a",topic="persistent://acme/a/t1",\
subscription="s",reason="subscription"} 50
# TYPE pulsar_ml_cache_hits_rate gauge
pulsar_ml_cache_hits_rate{cluster="real"} 0.5
# TYPE pulsar_ml_cache_misses_rate gauge
pulsar_ml_cache_misses_rate{cluster="real"} 0.0
# TYPE pulsar_ml_cache_used_size gauge
pulsar_ml_cache_used_size{cluster="real"} 1024
pulsar_lb_memory_usage{cluster="real", broker="127.0.0.1", metric="loadBalancing"} 21.210043
pulsar_version_info{cluster="real",version="4.0.8",commit="2c519a386acbfaa2dbebcc484bb42ba18e4278d3"} 1.0
"""
READINGS = {
    (T3, "in"): Reading(2171, 499_202),
    (T6, "in"): Reading(0, 0, 269),
    (T1, "out"): Reading(23, 2300, 57),
}


def counted(topic: str = T3, number: object = 5, labels: str = "", name: str = "pulsar_in_messages_total") -> str:
    return f'{name}{{cluster="real",namespace="acme/a",topic="{topic}"{labels}}} {number}\n'


def test_a_brokers_lines_are_the_readings_of_its_topics_and_its_cache():
    assert BrokerLook(READINGS, CacheUse(0.5, 0.0, 1024), "4.0.8") == look_of(BROKER)


def test_what_the_lines_tell_does_not_depend_on_their_order():
    backwards = "\n".join(reversed(BROKER.splitlines()))
    assert look_of(BROKER) == look_of(backwards)


@pytest.mark.parametrize("text", ["", "\n", "# TYPE pulsar_in_messages_total gauge\n", "# pulsar_in_messages_total\n"])
def test_a_broker_without_topics_has_no_readings(text: str):
    assert BrokerLook({}) == look_of(text)


@pytest.mark.parametrize(
    "line",
    [
        'pulsar_in_messages_total{cluster="real",namespace="acme/a"} 7',
        'pulsar_in_messages_total{cluster="real"} 7',
        'pulsar_in_messages_total{cluster="real",namespace="acme/a",topic=""} 7',
        "pulsar_in_messages_total 7",
        counted(name="pulsar_in_messages_total_created"),
        counted(name="pulsar_in_messages_total:rate"),
        counted(name="my_pulsar_in_messages_total"),
        counted(name="pulsar_in_message"),
        counted(name="pulsar_ml_cache_hits_rates"),
        counted(name="pulsar_rate_in"),
        "what is no metric at all {",
    ],
)
def test_lines_of_other_metrics_and_of_whole_namespaces_are_ignored(line: str):
    assert BrokerLook({(T3, "in"): Reading(5, 0)}) == look_of(f"{line}\n{counted()}")


def test_a_broker_that_tells_of_no_topic_is_told_how_to():
    """Else limits would be set for nobody, and nothing would be said."""
    with pytest.raises(ValueError, match="set exposeTopicLevelMetricsInPrometheus=true"):
        look_of('pulsar_in_messages_total{cluster="real",namespace="acme/a"} 7')


def test_a_consumer_is_not_counted_beside_its_subscription():
    subscription = ',subscription="s"'
    consumer = f'{subscription},consumer_name="c",consumer_id="0"'
    text = "".join(
        counted(number=9, labels=labels, name="pulsar_out_bytes_total") for labels in (subscription, consumer)
    )
    assert {(T3, "out"): Reading(0, 9)} == look_of(text).readings


def test_partitions_that_a_broker_tells_apart_by_a_label_are_one_topic():
    text = "".join(counted(number=number, labels=f',partition="{number}"') for number in (1, 2))
    assert {(T3, "in"): Reading(3, 0)} == look_of(text).readings


@pytest.mark.parametrize(
    "name", ["pulsar_publish_rate_limit_times", "pulsar_subscription_dispatch_throttled_msg_events"]
)
def test_a_topic_that_was_only_throttled_has_counted_nothing(name: str):
    direction = "in" if "publish" in name else "out"
    assert {(T3, direction): Reading(0, 0, 0)} == look_of(counted(number=0, name=name)).readings


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("0", 0),
        ("0.0", 0),
        ("5", 5),
        ("1.0E7", 10_000_000),
        ("1.795731051585E9", 1_795_731_051),
        ("1e3", 1000),
        ("+5", 5),
        ("9007199254740993", 2**53 + 1),
        ("9223372036854775807", 2**63 - 1),
        ("5 1795731051585", 5),
        ("5  -1  ", 5),
        ("   5", 5),
    ],
)
def test_numbers_are_read_as_java_and_prometheus_write_them(number: str, expected: int):
    assert {(T3, "in"): Reading(expected, 0)} == look_of(counted(number=number)).readings


@pytest.mark.parametrize(
    "line",
    [
        f'pulsar_in_messages_total{{topic="{T3}"}} 5',
        f'  pulsar_in_messages_total  {{  cluster = "real" ,\ttopic = "{T3}" , }}\t5 ',
        f'pulsar_in_messages_total{{topic="{T3}",}}5',
        f'pulsar_in_messages_total{{topic="{T3}",cluster="}} 6"}} 5',
    ],
)
def test_blanks_order_and_a_comma_at_the_end_do_not_matter(line: str):
    assert {(T3, "in"): Reading(5, 0)} == look_of(line).readings


ALL_CACHE = ["pulsar_ml_cache_hits_rate 1.0E2", "pulsar_ml_cache_misses_rate 0.25", "pulsar_ml_cache_used_size 1.0E7"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (ALL_CACHE, CacheUse(100.0, 0.25, 10_000_000)),
        (ALL_CACHE[:2], None),
        (ALL_CACHE[1:], None),
        ([], None),
    ],
)
def test_the_use_of_the_cache_is_there_where_all_of_it_is_told(lines: list[str], expected: CacheUse | None):
    assert BrokerLook({}, expected) == look_of("\n".join(lines))


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("two words", "two words"),
        (r"a\"b", 'a"b'),
        (r"a\",subscription=\"b", 'a",subscription="b'),
        (r"a\\b", r"a\b"),
        (r"a\nb", "a\nb"),
        (r"a\b", r"a\b"),
        (r"a\\\"b", r"a\"b"),
        ("a{b},c=d} 6", "a{b},c=d} 6"),
        ("# ä ☃ \x85\r", "# ä ☃ \x85\r"),
        ("a/b/c-partition-0", "a/b/c-partition-0"),
    ],
)
def test_any_name_of_a_topic_is_read_as_the_format_writes_it(written: str, name: str):
    text = counted(f"persistent://acme/a/{written}", labels=',subscription="s",reason="topic"')
    assert {(f"persistent://acme/a/{name}", "in"): Reading(5, 0)} == look_of(text).readings


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a\\", "a\\"),
        ('\\"\\', '"\\'),
        ('a\\",b\\', 'a",b\\'),
        ('a\\",subscription=\\', 'a",subscription=\\'),
        ('a\\"} 6\\', 'a"} 6\\'),
    ],
)
@pytest.mark.parametrize("labels", ["", ',subscription="s"', ',subscription="s\\",reason="topic"'])
def test_a_backslash_at_the_end_which_pulsar_does_not_escape_blinds_for_no_topic(written: str, name: str, labels: str):
    text = counted(f"persistent://acme/a/{written}", labels=labels) + counted(number=7)
    expected = {(f"persistent://acme/a/{name}", "in"): Reading(5, 0), (T3, "in"): Reading(7, 0)}
    assert expected == look_of(text).readings


NAME = st.text(
    st.sampled_from('\\",={} /ab0') | st.characters(exclude_characters="\n", exclude_categories=("Cs",)), min_size=1
)


@given(NAME, NAME)
def test_whatever_names_pulsar_writes_can_be_read(topic: str, subscription: str):
    topic, subscription = (name.replace('"', '\\"') for name in (topic, subscription))
    text = counted(f"persistent://acme/a/{topic}", labels=f',subscription="{subscription}"')
    assert [Reading(5, 0)] == list(look_of(text).readings.values())


@given(NAME | st.just("\n"), st.integers(0, 2**53), st.sampled_from(["{}", "{}.0", "{} 17"]))
def test_a_line_is_read_as_the_clients_of_prometheus_read_it(topic: str, number: int, form: str):
    topic = topic.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    text = counted(topic, form.format(number), ',subscription="s"')
    ((sample,),) = (family.samples for family in text_string_to_metric_families(text))
    assert {(sample.labels["topic"], "in"): Reading(int(sample.value), 0)} == look_of(text).readings


class Handler(BaseHTTPRequestHandler):
    """Answers each path with a body and its type."""

    answers: Mapping[str, tuple[str, bytes]]

    def do_GET(self) -> None:
        kind, body = self.answers[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


BROKERS = "/admin/v2/brokers"
CONFIGURATION = "/admin/v2/brokers/configuration/runtime"
METRICS = "/metrics/"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def serving(answers: Mapping[str, tuple[str, bytes]]) -> Iterator[str]:
    """HOST:PORT of a broker."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("OneHandler", (Handler,), {"answers": answers})) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def cluster(broker: str, after: str = "") -> PulsarBrokers:
    settings = ClusterSettings(admin_url=f"http://{broker}{after}")
    return PulsarBrokers(ClusterConf(settings, [], Path()))


def answer(found: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(found).encode()


def mistake(answers: Mapping[str, tuple[str, bytes]], ask: Callable[[PulsarBrokers, str], object]) -> str:
    """With BROKER for its host and port."""
    with serving(answers) as broker, pytest.raises(ClusterError) as raised:
        ask(cluster(broker), broker)
    return str(raised.value).replace(broker, "BROKER")


@pytest.mark.parametrize("after", ["", "/"])
def test_a_cluster_is_named_and_its_brokers_are_told_in_order(after: str):
    answers = {BROKERS: answer(["two:8080", "one:8080"]), CONFIGURATION: answer({"x": "1", "clusterName": "real"})}
    with serving(answers) as broker:
        here = cluster(broker, after)
        assert ("real", ["one:8080", "two:8080"]) == (here.name(), here.brokers())


def test_a_broker_is_looked_at_over_http():
    with serving({METRICS: (TEXT, BROKER.encode())}) as broker:
        assert look_of(BROKER) == cluster(broker).look(broker)


def test_a_look_is_the_same_wherever_its_blocks_end():
    filler = 'pulsar_rate_in{cluster="real"} 1.0\n' * 70_000
    text = f"{filler}{BROKER}{filler}{counted(number=9, name='pulsar_out_bytes_total')}".rstrip("\n")
    with serving({METRICS: (TEXT, text.encode())}) as broker:
        assert READINGS | {(T3, "out"): Reading(0, 9)} == cluster(broker).look(broker).readings


@pytest.mark.parametrize(
    ("found", "got"), [({"a": 1}, "{'a': 1}"), ("one:8080", "'one:8080'"), (None, "None"), (3, "3")]
)
def test_brokers_that_are_no_list_are_a_mistake_of_the_address(found: object, got: str):
    expected = f"http://BROKER/admin/v2/brokers: got {got}; allowed: a list of brokers; correct admin_url"
    assert expected == mistake({BROKERS: answer(found)}, lambda here, _: here.brokers())


@pytest.mark.parametrize(("found", "got"), [({"a": 1}, "{'a': 1}"), ([], "[]"), (None, "None")])
def test_a_configuration_without_the_clusters_name_is_a_mistake_of_the_address(found: object, got: str):
    allowed = "an object with clusterName; correct admin_url"
    expected = f"http://BROKER{CONFIGURATION}: got {got}; allowed: {allowed}"
    assert expected == mistake({CONFIGURATION: answer(found)}, lambda here, _: here.name())


def test_a_page_is_not_taken_for_a_broker_without_topics():
    expected = "http://BROKER/metrics/: got text/html; allowed: text/plain, as metrics are; correct admin_url"
    answers = {METRICS: ("text/html;charset=utf-8", b"<html>Log in</html>")}
    assert expected == mistake(answers, lambda here, broker: here.look(broker))


@pytest.mark.parametrize(
    "line",
    [
        "pulsar_in_messages_total",
        "pulsar_in_messages_total 5 five",
        "pulsar_in_messages_total 1_000",
        'pulsar_in_messages_total{topic="a"}',
        'pulsar_in_messages_total{topic="a"} five',
        'pulsar_in_messages_total{topic="a} 5',
        'pulsar_in_messages_total{topic="a" 5',
        "pulsar_in_messages_total{topic=a} 5",
        'pulsar_in_messages_total{topic="a"cluster="b"} 5',
        'pulsar_in_messages_total{topic="a\\"} 5',
        'pulsar_in_messages_total{topic="a"} 5 6 7',
        'pulsar_ml_cache_used_size{cluster="rea',
    ],
)
def test_a_broken_line_is_shown_with_its_broker(line: str):
    answers = {METRICS: (TEXT, f"{BROKER}{line}\n".encode())}
    message = mistake(answers, lambda here, broker: here.look(broker))
    assert message.startswith("http://BROKER/metrics/: got ")
    assert message.endswith("; allowed: the text format of Prometheus")


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "five", "1_000", "."])
def test_a_counter_that_is_no_number_is_an_error_that_names_the_broker(number: str):
    answers = {METRICS: (TEXT, counted(number=number).encode())}
    assert mistake(answers, lambda here, broker: here.look(broker)).startswith("http://BROKER/metrics/: got ")


def test_a_line_that_is_not_utf_8_is_an_error_that_names_the_broker():
    answers = {METRICS: (TEXT, counted("a\xff").encode("latin-1"))}
    assert mistake(answers, lambda here, broker: here.look(broker)).startswith("http://BROKER/metrics/: got 'utf-8'")
