"""Rows of kind dispatch in the job: counted, held against their group's level, shared among brokers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.trace import write_trace
from integration.engines import Engine
from integration.runs import (
    SMALL,
    TOPIC_LIMIT,
    asked,
    at,
    conf_in,
    in_order_of_names,
    limits_in_force,
    results_of,
    rows_of,
    total,
)

QUOTA = 100
GROUPS = {
    "resourcegroups": {"gold": {"dispatchRateInMsgs": QUOTA, "publishRateInMsgs": 60}},
    "tenants": {"acme": "gold", "initech": "gold"},
}
TOPICS = {"b1": "persistent://acme/shop/1", "b2": "persistent://acme/shop/2"}
SECONDS = 16
LITTLE, MUCH = 4, 18
"""Dispatches a second, of 5 messages each."""


def moving(trace: Path) -> None:
    """A file a second: acme wants to read 20 messages/s of b1 and 90 of b2, and half way on the other way round."""
    trace.mkdir()
    for second in range(SECONDS):
        little, much = ("b1", "b2") if second < SECONDS // 2 else ("b2", "b1")
        wanted = [(second + i / LITTLE, little) for i in range(LITTLE)]
        wanted += [(second + (i + 0.5) / MUCH, much) for i in range(MUCH)]
        lines = [json.dumps(dispatch(seconds, broker)) for seconds, broker in sorted(wanted)]
        (trace / f"{second:02}.json").write_text("\n".join(lines))
    in_order_of_names(trace)


def dispatch(seconds: float, broker: str) -> dict[str, Any]:
    return {
        "event_time": at(seconds).isoformat(),
        "seq": round(seconds * 1000),
        "broker": broker,
        "topic": TOPICS[broker],
        "kind": "dispatch",
        "subscription": "s",
        "messages": 5,
        "bytes": 1,
    }


def test_shares_of_dispatch_follow_the_reads_and_every_row_is_accounted(engine: Engine, tmp_path: Path) -> None:
    moving(tmp_path / "trace")
    text = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\ngroup_limits = 'shared'\ntraffic = 'offered'\n"
    conf = conf_in(tmp_path / "conf", text, broker={}, groups=GROUPS)
    engine.throttle(conf, tmp_path / "trace", tmp_path / "out")

    limits = limits_in_force(tmp_path / "out", traffic_class=1)
    assert {"b1": 20, "b2": 80} in limits
    assert {"b1": 80, "b2": 20} in limits[limits.index({"b1": 20, "b2": 80}) :]
    assert all(sum(held.values()) <= QUOTA * 1.05 for held in limits)
    of_job = "SELECT broker, messages_per_s FROM control WHERE kind = 'dispatch_limit'"
    enforced = {(row["broker"], row["messages_per_s"]) for row in asked(tmp_path / "out", of_job)}
    assert {(None, QUOTA), ("b2", 80), ("b2", 20)} <= enforced
    flags = asked(tmp_path / "out", "SELECT DISTINCT class, throttled_msgs FROM rg_usage WHERE group_id > 0")
    assert {(1, False), (1, True)} == {(row["class"], row["throttled_msgs"]) for row in flags}
    assert SECONDS * (LITTLE + MUCH) == sum(row["rows"] for row in rows_of(tmp_path / "out", "batches"))
    assert ([], []) == (rows_of(tmp_path / "out", "topic_usage"), rows_of(tmp_path / "out", "dead_letters"))


def test_neither_the_number_of_batches_nor_the_format_shows(engine: Engine, tmp_path: Path) -> None:
    """A trace of all kinds with bad rows: every row is accounted, tables and buckets are the same."""
    shares = {"dispatch_share": 0.3, "subscribe_share": 0.3, "unload_share": 0.1}
    spec = replace(SMALL, events=500, files=3, bad_share=0.1, **shares)
    broker = TOPIC_LIMIT | {"subscribeThrottlingRatePerConsumer": 2}
    broker |= {"maxConcurrentUnload": 3, "namespaceBundleUnloadingTimeoutMs": 300}
    broker |= {f"dispatchThrottlingRate{scope}InMsg": rate for scope, rate in (("", 20), ("PerSubscription", 4))}
    policies = {"namespaces": {"acme/ads": {"subscribeRate": {"subscribeThrottlingRatePerConsumer": 5}}}}
    results, states = [], []
    for format_, files in (("parquet", 1), ("csv", 100)):
        folder = tmp_path / format_
        summary = write_trace(spec, folder / "trace", format_)
        text = f"[input]\nmax_files_per_trigger = {files}\n[operator]\nslots = 4\ntraffic = 'offered'\n"
        conf = conf_in(folder / "conf", text, broker=broker, policies=policies, groups=GROUPS)
        done = engine.throttle(conf, folder / "trace", folder / "out", format_)
        output = done.output
        results.append(results_of(output))
        states.append(done.state().to_pylist())
        letters, taken = len(rows_of(output, "dead_letters")), sum(row["rows"] for row in rows_of(output, "batches"))
        assert (spec.events, summary.bad.total()) == (taken + letters, letters)
        assert 0 < total(output, "publishes") < taken

    assert results[0] == results[1]
    assert states[0] == states[1]
    decided = results[0]["subscribe_decisions"]
    assert {(2, 30), (5, 30)} == {(row["subscribes_per_period"], row["period_s"]) for row in decided}
    assert {True, False} == {row["allowed"] for row in decided}
    unloads = results[0]["unloads"]
    assert {(3, 300)} == {(row["starts_per_s"], row["timeout_ms"]) for row in unloads}
    assert {"done", "timed_out"} == {row["outcome"] for row in unloads}
    assert 0 == min(row["waited_ns"] for row in unloads) < max(row["waited_ns"] for row in unloads)
    levels = {(row["scope"], row["messages_per_s"]) for row in states[0] if row["class"] == "dispatch"}
    assert {("broker", 20), ("subscription", 4), ("group", QUOTA)} == levels
    reads = results[0]["dispatch_decisions"]
    assert taken == sum(row["reads"] for row in reads) + total(output, "publishes") + len(decided) + len(unloads)
    assert sum(row["reads"] for row in reads) > sum(row["allowed_reads"] for row in reads)
    assert all(any(row[f"held_by_{scope}"] for row in reads) for scope in ("broker", "subscription"))
    assert 0 < max(row["max_delay_ns"] for row in reads)
