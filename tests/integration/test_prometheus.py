"""The dashboard and the alert rules of conf/, over the endpoint of a job, by a real Prometheus."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from headgate.conf import MetricsSettings
from headgate.metrics import serving
from headgate.quota.usage.topic_query import TopicUsage
from headgate.quota.usage.topic_view import tenant_name
from integration.processes import ROOT
from integration.runs import START, Run, at, await_that, conf_in
from prometheus_server import Prometheus

DASHBOARD = json.loads((ROOT / "conf" / "grafana-dashboard.json").read_text())
ALERTS = ROOT / "conf" / "alerts.yml"
CASES = Path(__file__).with_name("alerts_test.yml")
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$tenant": ".*", "$group": ".*"}
"""What Grafana puts in place of a variable."""
COMPARISON = re.compile(r" (==|>|<) ")

TOPICS = ("persistent://acme/shop/orders", "persistent://globex/web/clicks")
SETTINGS = """
[trigger]
interval_ms = 0
[live]
live_lag_ms = 400
[operator]
slots = 4
group_limits = 'shared'
traffic = 'offered'
send_timeout_ms = 1000
"""
LIMITS = {"maxPublishRatePerTopicInMessages": 25, "dispatchThrottlingRatePerTopicInMsg": 5}
GROUPS = {
    "resourcegroups": {"gold": {"publishRateInMsgs": 100, "publishRateInBytes": 1000}},
    "tenants": {"acme": "gold"},
}
PATIENCE_S = 30


class Scraped(NamedTuple):
    """A Prometheus, and the output of the job that it scrapes."""

    prometheus: Prometheus
    output: Path


@pytest.fixture(scope="module")
def scraped(
    prometheus: Prometheus, spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scraped]:
    """While a job of live traffic runs, which shares quotas, and after Prometheus has seen its counters move."""
    folder = tmp_path_factory.mktemp("scraped")
    trace, output = folder / "trace", folder / "out"
    trace.mkdir()
    conf = conf_in(folder / "conf", SETTINGS, broker=LIMITS, groups=GROUPS)
    rows = 0

    def is_counted() -> bool:
        return rows == sum(prometheus.values("headgate_rows_total").values())

    with serving(MetricsSettings(port=prometheus.target_port)) as metrics:
        rows += write_traffic(trace / "0.json")
        with Run(spark_of_all_tests, conf, trace, output, once=False, metrics=metrics).alongside():
            await_that(is_counted, "the rows of the first file")
            rows += write_traffic(trace / "1.json")
            await_that(is_counted, "the rows of both files")
            yield Scraped(prometheus, output)


def write_traffic(file: Path) -> int:
    """Rows of now, more than the limits let in, of each tenant on a broker of its own, and a bad one; the number of
    good ones.
    """
    now_s = (datetime.now(UTC) - START).total_seconds()
    rows = [
        {"seq": seq, "broker": f"b{number}", "topic": topic, "event_time": at(now_s + seq / 100).isoformat()} | of_kind
        for number, topic in enumerate(TOPICS)
        for seq in range(20)
        for of_kind in (
            {"kind": "publish", "producer": "p", "connection": "c", "messages": 5, "bytes": 100},
            {"kind": "dispatch", "subscription": "s", "messages": 5, "bytes": 100},
        )
    ]
    rows.sort(key=lambda row: str(row["event_time"]))
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"kind": "publish"}]))
    unfinished.rename(file)
    return len(rows)


def filled_in(expression: str) -> str:
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, "a variable that the test does not know"
    return expression


def await_values(prometheus: Prometheus, expressions: Mapping[str, tuple[str, Collection[str]]]) -> None:
    """Until each gives a number that has these labels; those that give none are named."""
    without = dict(expressions)

    def all_have_one() -> bool:
        for name, (expression, labels) in list(without.items()):
            if any(row.keys() >= set(labels) for row, _ in prometheus.rows(expression)):
                del without[name]
        return not without

    await_that(all_have_one, without, PATIENCE_S, 0.5)


def test_each_expression_of_the_dashboard_has_a_value_with_the_labels_of_its_legend(scraped: Scraped) -> None:
    expressions = {
        f"{title} {one['refId']}": (filled_in(one["expr"]), re.findall(r"\{\{(\w+)\}\}", one["legendFormat"]))
        for title, panel in PANELS.items()
        for one in panel["targets"]
    }
    await_values(scraped.prometheus, expressions)


def test_each_variable_of_the_dashboard_has_values(scraped: Scraped) -> None:
    found = {}
    for one in DASHBOARD["templating"]["list"]:
        if asked := re.fullmatch(r"label_values\((\w+), (\w+)\)", one.get("definition", "")):
            found[one["name"]] = scraped.prometheus.api(f"label/{asked[2]}/values", **{"match[]": asked[1]})
    assert {"tenant": ["acme", "globex"], "group": ["gold"]} == found


def test_each_alert_has_something_to_compare(scraped: Scraped) -> None:
    """With `bool` a comparison gives 0 or 1 where there is something to compare, else nothing."""
    groups = scraped.prometheus.api("rules")["groups"]
    rules = {rule["name"]: rule["query"] for group in groups for rule in group["rules"]}
    assert set(alerts_of(ALERTS.read_text())) == rules.keys()
    assert all(COMPARISON.search(expression) for expression in rules.values())
    compared = {name: (COMPARISON.sub(r" \1 bool ", query), ()) for name, query in rules.items()}
    await_values(scraped.prometheus, compared)


def test_what_prometheus_has_of_tenants_is_what_headgate_usage_says(scraped: Scraped) -> None:
    usage = TopicUsage(str(scraped.output))

    def is_equal() -> bool:
        expected: dict[str, Counter[tuple[str]]] = {name: Counter() for name in ("publishes", "messages", "throttled")}
        for one in usage.sums(usage.newest_s(), 3600):
            for name, counts in expected.items():
                counts[(tenant_name(one.topic),)] += getattr(one, name)
        series = ("publishes", "publish_messages", "throttled_publishes")
        told = [scraped.prometheus.values(f"sum by (tenant) (headgate_tenant_{name}_total)") for name in series]
        return [*expected.values()] == told and all(sum(counts.values()) for counts in told)

    await_that(is_equal, "equal sums", PATIENCE_S, 0.5)


def test_reasons_of_what_is_held_are_those_of_its_limits(scraped: Scraped) -> None:
    held = scraped.prometheus.values("sum by (tenant, reason) (headgate_held_total) > 0")
    assert {("TOPIC_PUBLISH_RATE_MESSAGES", "globex"), ("TOPIC_DISPATCH_RATE", "globex")} <= held.keys()


def test_promtool_accepts_the_alert_rules(promtool: Callable[..., CompletedProcess[str]]) -> None:
    done = promtool("check", "rules", ALERTS)
    assert (0, "") == (done.returncode, done.stderr), done.stdout


def test_each_alert_fires_when_it_should_and_only_then(promtool: Callable[..., CompletedProcess[str]]) -> None:
    done = promtool("test", "rules", CASES)
    assert done.returncode == 0, done.stdout + done.stderr
    text = CASES.read_text()
    fires, is_silent = (set(re.findall(rf"alertname: (\w+)\n +exp_alerts:{end}", text)) for end in (r"\n", r" \[\]"))
    assert set(alerts_of(ALERTS.read_text())) == fires == is_silent


def alerts_of(text: str) -> list[str]:
    return re.findall(r"- alert: (\w+)", text)
