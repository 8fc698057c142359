"""Counters of a job: each batch once and whole, in base units, with labels whose number is bounded."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.arrow import runs
from headgate.arrow.runs import with_times
from headgate.metrics import Metrics, QuotaFigures, counting, quota_series
from headgate.metrics.tables import REASONS, TABLES
from headgate.metrics.usage_series import OF_TENANT
from headgate.rows.kinds import JUDGED
from headgate.throttle.schemas import USAGE_NAMES
from prometheus_text import told
from unit.metrics.batches import batch, progress, usage

MARK = {"broker": "b1", "scope": "topic", "type": "TopicPublishRate", "action": "mark"}
UNMARK = MARK | {"action": "unmark"}
ACME, GLOBEX = "persistent://acme/shop/orders", "persistent://globex/web/clicks"
OF_ACME = MARK | {"topic": ACME, "messages_balance": -1, "messages_per_s": 10}
READS = {"broker": "b1", "topic": "t", "subscription": "s", "reads": 9, "allowed_messages": 5}
READS |= {"held_by_broker": 1, "held_by_topic": 0, "held_by_subscription": 2, "held_by_group": 0}
UNLOAD = {"broker": "b1", "outcome": "done", "waited_ns": 500_000_000}
ATTEMPT = {"broker": "b1", "topic": "t", "allowed": True}
PAUSED, RESUMED, CLOSED = (
    {"broker": "b1", "auto_read": auto_read, "paused_ns": paused_ns}
    for auto_read, paused_ns in ((False, None), (True, 1_500_000_000), (None, 250_000_000))
)


def taken(*batches, **options):
    metrics = Metrics(**options)
    for batch_id, rows in enumerate(batches):
        metrics.take(batch_id, rows)
    return metrics


@pytest.mark.parametrize(
    ("rows", "name", "expected"),
    [
        ({"batches": [{"batch_id": 3}]}, "headgate_batches_total", {(): 1}),
        (
            {"progress": [progress("b1", rows=2, late=1), progress("b1", key="1", rows=3), progress("b2")]},
            "headgate_rows_total",
            {("b1",): 5, ("b2",): 0},
        ),
        ({"progress": [progress("b1", rows=2, late=1)]}, "headgate_late_rows_total", {("b1",): 1}),
        (
            {"marks": [MARK, MARK, UNMARK, MARK | {"broker": "b2", "scope": None, "type": None}]},
            "headgate_marks_total",
            {
                ("mark", "b1", "topic", "TopicPublishRate"): 2,
                ("unmark", "b1", "topic", "TopicPublishRate"): 1,
                ("mark", "b2", "", ""): 1,
            },
        ),
        (
            {"marks": [OF_ACME, OF_ACME, UNMARK | {"topic": ACME}, {"action": "open", "connection": "c"}]},
            "headgate_held_total",
            {("TOPIC_PUBLISH_RATE_MESSAGES", "acme"): 2},
        ),
        (
            {"marks": [{"broker": "b1", "type": "ConnectionOutboundBufferFull", "action": "mark"}]},
            "headgate_held_total",
            {("CONNECTION_OUTBOUND_BUFFER", ""): 1},
        ),
        (
            {"dispatch_decisions": [READS | {"topic": ACME}, READS | {"topic": GLOBEX, "held_by_topic": 3}]},
            "headgate_held_total",
            {
                ("BROKER_DISPATCH_RATE", "acme"): 1,
                ("TOPIC_DISPATCH_RATE", "acme"): 0,
                ("SUBSCRIPTION_DISPATCH_RATE", "acme"): 2,
                ("GROUP_DISPATCH_QUOTA", "acme"): 0,
                ("BROKER_DISPATCH_RATE", "globex"): 1,
                ("TOPIC_DISPATCH_RATE", "globex"): 3,
                ("SUBSCRIPTION_DISPATCH_RATE", "globex"): 2,
                ("GROUP_DISPATCH_QUOTA", "globex"): 0,
            },
        ),
        (
            {"topic_usage": [usage(ACME, bytes=2), usage(ACME, "b2", bytes=3), usage(GLOBEX, bytes=4)]},
            "headgate_tenant_publish_bytes_total",
            {("acme",): 5, ("globex",): 4},
        ),
        (
            {"topic_usage": [usage(ACME, throttled_ns=1_250_000_000), usage(ACME, "b2", throttled_ns=250_000_000)]},
            "headgate_tenant_throttled_seconds_total",
            {("acme",): 1.5},
        ),
        (
            {"topic_usage": [usage("t", publishes=2), usage("u", publishes=3), usage("t", "b2", publishes=4)]},
            "headgate_publishes_total",
            {("b1",): 5, ("b2",): 4},
        ),
        (
            {"topic_usage": [usage("t", throttled_by_topic=2, throttled_by_group=3)]},
            "headgate_limiter_throttled_publishes_total",
            {("b1", "topic"): 2, ("b1", "broker"): 0, ("b1", "group"): 3},
        ),
        (
            {"topic_usage": [usage("t", throttled_ns=1_250_000_000), usage("u", throttled_ns=250_000_000)]},
            "headgate_throttled_seconds_total",
            {("b1",): 1.5},
        ),
        (
            {"topic_usage": [usage("t", delay_ns=500_000_000)]},
            "headgate_publish_delay_seconds_total",
            {("b1",): 0.5},
        ),
        (
            {"subscribe_decisions": [ATTEMPT, ATTEMPT, ATTEMPT | {"allowed": False}]},
            "headgate_subscribes_total",
            {("true", "b1"): 2, ("false", "b1"): 1},
        ),
        (
            {"dispatch_decisions": [READS, READS | {"reads": 4}, READS | {"broker": "b2"}]},
            "headgate_dispatch_reads_total",
            {("b1",): 13, ("b2",): 9},
        ),
        (
            {"dispatch_decisions": [READS, READS]},
            "headgate_dispatch_allowed_messages_total",
            {("b1",): 10},
        ),
        (
            {"dispatch_decisions": [READS, READS | {"held_by_group": 1}]},
            "headgate_dispatch_held_reads_total",
            {("b1", "broker"): 2, ("b1", "topic"): 0, ("b1", "subscription"): 4, ("b1", "group"): 1},
        ),
        (
            {"dispatch_decisions": [READS | {"delay_ns": 1_250_000_000}, READS | {"delay_ns": 250_000_000}]},
            "headgate_dispatch_delay_seconds_total",
            {("b1",): 1.5},
        ),
        (
            {"unloads": [UNLOAD, UNLOAD, UNLOAD | {"outcome": "timed_out"}]},
            "headgate_unloads_total",
            {("b1", "done"): 2, ("b1", "timed_out"): 1},
        ),
        (
            {"unloads": [UNLOAD, UNLOAD | {"broker": "b2"}]},
            "headgate_unload_wait_seconds_total",
            {("b1",): 0.5, ("b2",): 0.5},
        ),
        *(
            (
                {"connections": [PAUSED, RESUMED, PAUSED, CLOSED]},
                f"headgate_connections_{name}_total",
                {("b1",): number},
            )
            for name, number in (("paused", 2), ("resumed", 1), ("paused_seconds", 1.75))
        ),
        ({"connections": [CLOSED]}, "headgate_connections_paused_total", {("b1",): 0}),
        (
            {"group_usage": [{"group": "gold", "class": 1, "admitted_msgs": 4, "offered_msgs": 6}]},
            "pulsar_resource_group_messages_used_total",
            {("Dispatch", "gold"): 4},
        ),
        (
            {"progress": [progress("b1", event_time_us=1_500_000), progress("b1", key="1", event_time_us=900_000)]},
            "headgate_event_timestamp_seconds",
            {("b1",): 1.5},
        ),
    ],
)
def test_rows_move_the_series_of_their_table(rows, name, expected):
    assert expected == told(taken(batch(**rows)))[name]


def test_marks_that_are_one_row_count_as_often_as_it_stands_for(monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 2)
    rows = batch(marks=[OF_ACME, OF_ACME])
    seen = told(taken(rows | {"marks": with_times(rows["marks"], np.array([4, 1]))}))
    assert {("mark", "b1", "topic", "TopicPublishRate"): 5} == seen["headgate_marks_total"]
    assert {("TOPIC_PUBLISH_RATE_MESSAGES", "acme"): 5} == seen["headgate_held_total"]


def test_what_admitted_traffic_does_not_have_has_no_series():
    seen = told(taken(batch(topic_usage=[usage(ACME, publishes=1)])))
    assert not [name for name in seen if "failed" in name or "admitted" in name]


COUNTS = {name: st.integers(0, 1000) for name in USAGE_NAMES.values()}
USED = st.tuples(
    st.sampled_from([ACME, "persistent://acme/shop/carts", GLOBEX]), st.sampled_from(["b1", "b2"])
).flatmap(lambda place: st.fixed_dictionaries(COUNTS).map(lambda counts: usage(*place, **counts)))


@given(st.lists(st.lists(USED, min_size=1, max_size=4), min_size=1, max_size=3), st.integers(0, 3))
def test_the_sums_over_tenants_are_those_over_brokers_however_many_tenants_have_series(parts, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MOST_TENANTS", most)
        seen = told(taken(*(batch(topic_usage=rows) for rows in parts)))
    for name in OF_TENANT:
        of_tenants, of_brokers = seen[f"headgate_tenant_{name}_total"], seen[f"headgate_{name}_total"]
        assert sum(of_tenants.values()) == pytest.approx(sum(of_brokers.values()))
        assert len(of_tenants.keys() - {("other",)}) <= most


def test_sums_beyond_64_bits_stay_positive():
    rows = batch(topic_usage=[usage("t", bytes=2**62), usage("u", bytes=2**62), usage("v", bytes=2**62)])
    assert {("b1",): 3.0 * 2**62} == told(taken(rows))["headgate_publish_bytes_total"]


def test_a_batch_that_is_run_again_counts_once():
    metrics = Metrics()
    for batch_id in (0, 1, 1, 0, 2):
        metrics.take(batch_id, batch(marks=[MARK], progress=[progress("b1", rows=batch_id)]))
    seen = told(metrics)
    assert (3, 3) == (sum(seen["headgate_marks_total"].values()), sum(seen["headgate_rows_total"].values()))


def test_a_batch_that_cannot_be_counted_counts_when_it_is_run_again():
    metrics = Metrics()
    with pytest.raises(KeyError):
        metrics.take(0, batch(marks=[MARK]) | {"topic_usage": batch(marks=[MARK])["marks"]})
    metrics.take(0, batch(marks=[MARK]))
    assert [1] == list(told(metrics)["headgate_marks_total"].values())


PARTS = st.lists(st.lists(st.sampled_from([MARK, UNMARK, MARK | {"broker": "b2"}]), max_size=4), max_size=5)


@given(PARTS)
def test_totals_do_not_depend_on_how_rows_are_cut_into_batches(parts):
    cut = told(taken(*(batch(marks=rows) for rows in parts)))
    whole = told(taken(batch(marks=[row for rows in parts for row in rows])))
    assert whole.get("headgate_marks_total") == cut.get("headgate_marks_total")


@pytest.mark.parametrize(
    ("what", "series"), [("producers", "headgate_throttled_now"), ("subscriptions", "headgate_dispatch_held_now")]
)
def test_what_waits_is_that_of_every_domain_as_it_was_told_last(what, series):
    rows = [progress("b1", **{what: 2}), progress("b1", key="1", **{what: 3}), progress("b2", **{what: 4})]
    then = batch(progress=[progress("b1", key="1"), progress("b2", **{what: 7}), progress("b3")])
    assert {("b1",): 5, ("b2",): 4} == told(taken(batch(progress=rows)))[series]
    assert {("b1",): 2, ("b2",): 7, ("b3",): 0} == told(taken(batch(progress=rows), then))[series]


def test_event_time_never_goes_back():
    batches = [batch(progress=[progress("b1", event_time_us=time_us)]) for time_us in (3_000_000, 2_000_000)]
    assert {("b1",): 3} == told(taken(*batches))["headgate_event_timestamp_seconds"]


def test_the_last_batch_has_the_time_at_which_it_was_counted():
    at_s = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
    assert "headgate_last_batch_timestamp_seconds" not in told(Metrics())
    assert {(): at_s} == told(taken(batch(), now=lambda: at_s))["headgate_last_batch_timestamp_seconds"]


@pytest.mark.parametrize(
    ("letter", "expected"),
    [
        ({"reason": "the file is gone; rows are lost: x", "source": "a.json"}, "file"),
        ({"reason": "no JSON object", "raw": "x", "source": "a.json"}, "row"),
        ({"reason": "the line has: 2 fields", "raw": "x", "source": "a.csv"}, "row"),
        ({"reason": "scope: got x", "raw": "x", "source": "control"}, "control"),
        ({"reason": "seq: got\n'x\n', allowed is y", "raw": "x"}, "seq"),
    ],
)
def test_a_dead_letter_has_the_class_of_its_reason(letter, expected):
    seen = told(taken(batch(dead_letters=[letter])))["headgate_dead_letters_total"]
    assert {(expected,): 1} == {labels: count for labels, count in seen.items() if count}


def test_a_dead_letter_of_each_column_has_the_first_one_at_fault_as_its_class():
    reasons = [f"{name}: got x, allowed is y; seq: got x, allowed is y" for name in JUDGED]
    seen = told(taken(batch(dead_letters=[{"reason": reason, "raw": "x"} for reason in reasons])))
    counts = {labels: count for labels, count in seen["headgate_dead_letters_total"].items() if count}
    assert {(name,): 1 for name in JUDGED} == counts


def test_classes_of_dead_letters_are_told_as_0_from_the_start():
    seen = told(Metrics())
    assert dict.fromkeys([(reason,) for reason in REASONS], 0) == seen["headgate_dead_letters_total"]
    assert {(): 0} == seen["headgate_batches_total"]


def test_topics_have_no_series_unless_they_are_asked_for():
    seen = told(taken(batch(topic_usage=[usage("t", throttled_publishes=1)])))
    assert not [name for name in seen if name.startswith("headgate_topic_")]


def test_the_topics_that_are_throttled_first_and_most_have_series_for_good_and_others_are_summed():
    first = [usage("calm"), usage("c", throttled_publishes=1), usage("a", throttled_publishes=3)]
    first += [usage("b", throttled_publishes=2), usage("a", "b2", throttled_publishes=1)]
    then = [usage("d", "b2", throttled_publishes=9), usage("b", throttled_publishes=1, throttled_ns=2_000_000_000)]
    seen = told(taken(batch(topic_usage=first), batch(topic_usage=then), topics=2))
    expected = {("b1", "a"): 3, ("b2", "a"): 1, ("b1", "b"): 3, ("b1", "other"): 1, ("b2", "other"): 9}
    assert expected == seen["headgate_topic_throttled_publishes_total"]
    assert 2 == seen["headgate_topic_throttled_seconds_total"]["b1", "b"]
    by_broker = {("b1",): 7, ("b2",): 10}
    assert by_broker == seen["headgate_throttled_publishes_total"]


def test_tenants_that_there_is_no_room_for_are_one_and_those_that_were_held_come_first(monkeypatch):
    monkeypatch.setattr(counting, "MOST_TENANTS", 2)
    initech = "persistent://initech/x/y"
    used = [usage(topic, publishes=1) for topic in (ACME, GLOBEX, initech)]
    seen = told(taken(batch(topic_usage=used, marks=[OF_ACME | {"topic": initech}]), batch(topic_usage=used)))
    assert {("acme",): 2, ("initech",): 2, ("other",): 2} == seen["headgate_tenant_publishes_total"]
    assert {("TOPIC_PUBLISH_RATE_MESSAGES", "initech"): 1} == seen["headgate_held_total"]


def test_brokers_that_there_is_no_room_for_are_one(monkeypatch):
    monkeypatch.setattr(counting, "MOST_BROKERS", 2)
    rows = [progress(f"b{number}", rows=1, producers=1, event_time_us=number * 1_000_000) for number in range(4)]
    seen = told(taken(batch(progress=rows), batch(progress=rows)))
    assert {("b0",): 2, ("b1",): 2, ("other",): 4} == seen["headgate_rows_total"]
    assert {("b0",): 1, ("b1",): 1, ("other",): 2} == seen["headgate_throttled_now"]
    assert {("b0",): 0, ("b1",): 1, ("other",): 3} == seen["headgate_event_timestamp_seconds"]


def used(group, messages):
    return {"broker": "b1", "group": group, "class": 0, "admitted_msgs": 1, "offered_msgs": messages}


def test_groups_with_the_largest_demand_have_series(monkeypatch):
    monkeypatch.setattr(counting, "MOST_GROUPS", 2)
    metrics = Metrics()
    limits = {("b1", group, 0): (7, None) for group in ("a", "b", "c", "idle")}
    metrics.take(0, batch(group_usage=[used("a", 3), used("b", 5), used("c", 4)]), QuotaFigures(limits=limits))
    metrics.take(1, batch(group_usage=[used("a", 3)]), QuotaFigures(limits=limits))
    seen = told(metrics)
    assert {("Publish", "a"): 2, ("Publish", "b"): 1} == seen["pulsar_resource_group_messages_used_total"]
    assert {("b1", "publish", "messages", group): 7 for group in "ab"} == seen["headgate_rg_limit"]


def test_limits_of_a_group_are_told_as_long_as_there_is_room_for_all_of_them(monkeypatch):
    monkeypatch.setattr(quota_series, "MOST_LIMITS", 3)
    metrics = Metrics()
    limits = {("b1", "a", 0): (1, 2), ("b1", "b", 1): (3, None), ("b2", "b", 1): (0, None)}
    metrics.take(0, batch(group_usage=[used("a", 3), used("b", 2)]), QuotaFigures(limits=limits))
    assert {("b1", "publish", "messages", "a"): 1, ("b1", "publish", "bytes", "a"): 2} == told(metrics)[
        "headgate_rg_limit"
    ]
    metrics.take(1, batch(), QuotaFigures(limits={("b1", "b", 1): (0, None)}))
    assert {("b1", "dispatch", "messages", "b"): 0} == told(metrics)["headgate_rg_limit"]


def test_what_the_quota_loop_says_is_told_under_its_names():
    of_loop = {
        "headgate_rg_members": 3,
        "headgate_rg_degraded": {"usage_read": 1, "groups": 0},
        "headgate_rg_reports_total": {},
        "headgate_rg_evaluation_seconds": {"count": 2, "sum": 0.5},
    }
    metrics = Metrics()
    metrics.take(0, batch(), QuotaFigures(of_loop))
    seen = told(metrics)
    assert {(): 3} == seen["headgate_rg_members"]
    assert {("usage_read",): 1, ("groups",): 0} == seen["headgate_rg_degraded"]
    assert (2, 0.5) == (
        seen["headgate_rg_evaluation_seconds_count"][()],
        seen["headgate_rg_evaluation_seconds_sum"][()],
    )


def test_kinds_of_rows_that_are_missing_count_nothing():
    assert told(Metrics()).keys() | {"headgate_last_batch_timestamp_seconds"} == told(taken({})).keys()


def test_every_table_with_series_is_one_that_a_sink_has():
    assert TABLES.keys() <= batch().keys()
