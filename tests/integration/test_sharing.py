"""Quotas of groups shared among the brokers of a job, over its tables: usage out, limits back, batch after batch."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from operator import itemgetter
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.arrow.schemas import GROUP_USAGE, GROUP_WAITS
from headgate.conf import Conf
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.groups import ResourceGroup
from headgate.engines.batches import BatchResult, GroupCounts
from headgate.engines.exchange import TableExchange
from headgate.engines.sharing import Sharing
from headgate.errors import StateError
from headgate.metrics import Metrics
from headgate.quota import member_log
from headgate.quota.groups.command import apply
from headgate.quota.groups.presence import EVERYWHERE
from headgate.quota.groups.requests import attach, local_parameters, put_group
from headgate.quota.pace import LOOKED_AT
from headgate.quota.tables.opened import opened_config
from headgate.quota.tables.topic_tables import output_of
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.tables.delta import Tables
from headgate.throttle.schemas import PROGRESS
from headgate.throttle.tables import throttle_tables
from integration.engines import Engine
from integration.runs import START, asked, conf_in, in_order_of_names, limits_in_force, rows_of, total, write_publishes
from prometheus_text import told
from unit.service.test_serve import service, token_file

QUOTA = 100
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": QUOTA}}, "tenants": {"acme": "gold"}}
TEXT = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\ngroup_limits = 'shared'\ntraffic = 'offered'\n"
TOPICS = {"b1": "persistent://acme/shop/1", "b2": "persistent://acme/shop/2"}
SECONDS = 16
LITTLE, MUCH = 4, 18
"""Publishes a second, of 5 messages each."""


def moving(trace: Path) -> None:
    """A file a second: acme wants 20 messages/s of b1 and 90 of b2, and half way on the other way round."""
    for second in range(SECONDS):
        little, much = ("b1", "b2") if second < SECONDS // 2 else ("b2", "b1")
        rows = [(second + i / LITTLE, little, TOPICS[little]) for i in range(LITTLE)]
        rows += [(second + (i + 0.5) / MUCH, much, TOPICS[much]) for i in range(MUCH)]
        write_publishes(trace / f"{second:02}.json", sorted(rows))
    in_order_of_names(trace)


def run(spark: SparkSession, folder: Path, metrics: Metrics | None = None) -> None:
    conf = conf_in(folder / "conf", TEXT, broker={}, groups=GROUPS)
    job = ThrottleJob(str(folder / "trace"), "json", str(folder / "out"), str(folder / "out" / "checkpoint"), once=True)
    assert ThrottleRun(spark, job, conf, lambda _batch, _waiting: None, Event(), metrics=metrics).run()


def test_shares_follow_the_traffic_and_never_sum_to_more_than_the_quota_and_the_floors(
    engine: Engine, tmp_path: Path
) -> None:
    moving(tmp_path / "trace")
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    engine.throttle(conf, tmp_path / "trace", tmp_path / "out")
    limits = limits_in_force(tmp_path / "out")
    assert {"b1": 20, "b2": 80} in limits
    assert {"b1": 80, "b2": 20} in limits[limits.index({"b1": 20, "b2": 80}) :]
    assert all(sum(held.values()) <= QUOTA * 1.05 for held in limits)
    enforced = asked(
        tmp_path / "out", "SELECT broker, messages_per_s FROM control WHERE source = 'quota' AND broker = 'b2'"
    )
    assert {80, 20} <= {row["messages_per_s"] for row in enforced}
    assert SECONDS * (LITTLE + MUCH) == total(tmp_path / "out", "publishes")
    assert total(tmp_path / "out", "admitted_messages") < total(tmp_path / "out", "messages")


def check_told(metrics: Metrics, output: Path) -> None:
    """Metrics tell of the group, which has all of the traffic, what the tables have."""
    seen = told(metrics)
    admitted = total(output, "admitted_messages")
    assert {("Publish", "gold"): admitted} == seen["pulsar_resource_group_messages_used_total"]
    at_the_end = limits_in_force(output)[-1]
    expected = {(broker, "publish", "messages", "gold"): limit for broker, limit in at_the_end.items()}
    assert expected == seen["headgate_rg_limit"]
    assert {(): 2} == seen["headgate_rg_members"]
    assert 0 == sum(seen["headgate_rg_degraded"].values())
    assert 0 < sum(seen["headgate_rg_reports_total"].values())
    assert 0 < seen["headgate_rg_evaluation_seconds_count"][()]


def test_every_report_is_there_once_and_a_restart_begins_a_new_life(spark: SparkSession, tmp_path: Path) -> None:
    moving(tmp_path / "trace")
    metrics = Metrics()
    run(spark, tmp_path, metrics)
    check_told(metrics, tmp_path / "out")
    write_publishes(tmp_path / "trace" / "later.json", [(SECONDS + 1.0, "b1", TOPICS["b1"])])
    run(spark, tmp_path)
    cuts = asked(
        tmp_path / "out",
        "SELECT broker_id, incarnation, seq, group_id, class, count(*) AS n FROM rg_usage GROUP BY ALL",
    )
    assert {1} == {row["n"] for row in cuts}
    lives = asked(tmp_path / "out", "SELECT DISTINCT broker_id, incarnation FROM rg_usage")
    assert [0, 0, 1, 1] == sorted(row["broker_id"] for row in lives)


def test_once_ends_on_a_source_that_grows_with_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    numbers = count()

    heard = []

    def grow(batch: Any = None, _waiting: int = 0) -> None:
        heard.append(0 if batch is None else batch.rows)
        number = next(numbers)
        write_publishes(tmp_path / "trace" / f"{number}.json", [(number, "b1", TOPICS["b1"])])

    grow()
    conf = conf_in(tmp_path / "conf", TEXT.replace("trigger = 1", "trigger = 10"), broker={}, groups=GROUPS)
    job = ThrottleJob(str(tmp_path / "trace"), "json", str(tmp_path / "out"), str(tmp_path / "checkpoint"), once=True)
    assert ThrottleRun(spark, job, conf, grow, Event()).run()
    taken = sum(row["rows"] for row in rows_of(tmp_path / "out", "batches", "rows"))
    assert 1 < taken < len(heard)
    assert taken == sum(heard)


def used_by(broker: str, at_s: int) -> GroupCounts:
    """Five messages of gold in that second; another broker without rows is brought as far."""
    amounts = dict.fromkeys(("admitted_msgs", "admitted_bytes", "offered_msgs", "offered_bytes"), 5)
    place = {"broker": broker, "group": "gold", "class": 0, "at_ms": at_s * 1000, "topics": 1}
    usage = pa.Table.from_pylist([place | amounts], GROUP_USAGE)
    reached = {"key": "0", "event_time_us": (at_s + 2) * 1_000_000}
    progress = [reached | {"broker": broker, "rows": 1}, reached | {"broker": "quiet", "rows": 0}]
    return GroupCounts(usage, GROUP_WAITS.empty_table(), pa.Table.from_pylist(progress, PROGRESS))


def sharing_of(tables: Tables, conf: Conf, output: str, broker: str | None = None) -> Sharing:
    own = output if broker is None else output_of(output, broker)
    return Sharing(tables, tables.read("control"), conf, TableExchange(conf, output, own, broker))


def limit_on(tables: Tables, broker: str) -> int:
    """The limit of gold for publishes that a broker has which hears of everything now."""
    told = [row for row in tables.read("control").to_pylist() if (row["kind"], row["name"]) == ("limit", "gold")]
    own = [row for row in told if row["broker"] in {None, broker} and row["source"] == "quota"]
    limit: int = max(own, key=lambda row: (row["effective_time"], row["seq"]))["messages_per_s"]
    return limit


@pytest.mark.parametrize("quota", [0, 40, 500])
def test_a_changed_quota_is_the_ceiling_of_brokers_to_come_and_nobody_else_has_it_for_a_share(
    quota: int, tmp_path: Path
) -> None:
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    output = str(tmp_path / "out")
    tables = throttle_tables(output)
    sharing = sharing_of(tables, conf, output)
    sharing.begin(START)
    for batch, broker in enumerate(("b1", "b2", "b1", "b2")):
        sharing(used_by(broker, int(START.timestamp()) + batch), "query", batch)
    assert limit_on(tables, "later") == QUOTA
    assert limit_on(tables, "b1") + limit_on(tables, "b2") <= QUOTA * 1.05
    store = sharing.tables.config
    gold = store.read().groups["gold"]
    changed = replace(gold, rates=(quota, None, None, None), version=store.read().version + 1)
    assert store.write([changed], store.read().version)
    sharing(used_by("b1", int(START.timestamp()) + 5), "query", 9)
    assert quota == limit_on(tables, "later")
    assert limit_on(tables, "b1") + limit_on(tables, "b2") <= quota * 1.05


def test_a_group_that_is_made_later_has_its_quota_as_a_ceiling_too_and_each_is_told_once(tmp_path: Path) -> None:
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    output = str(tmp_path / "out")
    tables = throttle_tables(output)
    sharing = sharing_of(tables, conf, output)
    sharing.begin(START)
    store = sharing.tables.config
    late = ResourceGroup(9, "late", (7, None, None, None), shard=0, version=store.read().version + 1)
    assert store.write([late], store.read().version)
    sharing.begin(START)
    sharing_of(tables, conf, output).begin(START)
    told = [row for row in tables.read("control").to_pylist() if row["source"] == "quota" and row["scope"] == "group"]
    limits = sorted((row["name"], row["messages_per_s"]) for row in told if row["kind"] == "limit")
    assert [("gold", QUOTA), ("late", 7)] == limits


def test_an_edited_file_is_taken_in_with_the_next_batch_and_one_with_mistakes_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    file, output = tmp_path / "conf" / "resource-groups.json", str(tmp_path / "out")
    tables = throttle_tables(output)
    sharing = sharing_of(tables, conf, output)
    sharing.begin(START)
    edits = [
        file.read_text(),
        file.read_text().replace(f"{QUOTA}", "40"),
        '{"resourcegroups": {"gold": {"publishRateInMsgs": "many"}}}',
        None,
        file.read_text().replace(f"{QUOTA}", "50").replace("acme", "initech"),
    ]
    limits = []
    for batch, text in enumerate(edits):
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        for again in range(2):
            sharing(used_by("b1", int(START.timestamp()) + 2 * batch + again), "query", 2 * batch + again)
        limits.append(limit_on(tables, "later"))
    assert [QUOTA, 40, 40, 40, 50] == limits
    attached = [row for row in tables.read("control").to_pylist() if row["kind"] == "attachment"]
    assert [("acme", "gold"), ("acme", None), ("initech", "gold")] == [
        (row["name"], row["group_name"])
        for row in sorted(attached, key=lambda row: (row["effective_time"], row["group_name"] is not None))
    ]
    told = [record.message for record in caplog.records if "was edited" in record.message]
    signs = ("changed: 1", "got 'many'", "got no file", "changed: 3")
    assert [True] * 4 == [sign in line for sign, line in zip(signs, told, strict=True)]


def test_a_broker_that_is_a_day_ahead_takes_no_history_away_and_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    output = str(tmp_path / "out")
    sharing = sharing_of(throttle_tables(output), conf, output)
    now = int(datetime.now(UTC).timestamp())
    for batch in range(5):
        sharing(used_by("b1", now - 10 + batch), "query", batch)
    before = asked(tmp_path / "out", "SELECT epoch FROM rg_usage WHERE group_id > 0")
    for batch, broker, at_s in ((5, "b2", now + 30 * 3600), (6, "b1", now), (7, "b2", now + 31 * 3600)):
        sharing(used_by(broker, at_s), "query", batch)
    after = asked(tmp_path / "out", "SELECT epoch FROM rg_usage WHERE group_id > 0")
    assert before
    assert {row["epoch"] for row in before} <= {row["epoch"] for row in after}
    told = [record.getMessage() for record in caplog.records if "ahead of this machine's clock" in record.getMessage()]
    assert ["a row of broker b2 is dated 10"] == [line[:30] for line in told]


def test_a_name_that_is_a_slip_and_an_output_of_its_own_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)

    def job(output: str, broker: str) -> list[str]:
        """What a job says at its start and with a batch in which b1 had traffic."""
        caplog.clear()
        place = str(tmp_path / output)
        sharing = sharing_of(throttle_tables(output_of(place, broker)), conf, place, broker)
        sharing.begin(START)
        monkeypatch.setattr(member_log, "UNUSED_AFTER_MS", 0)
        now = int(datetime.now(UTC).timestamp())
        counts = used_by("b1", now - 2)
        sharing(counts if broker == "b1" else replace(counts, usage=GROUP_USAGE.empty_table()), "query", 0)
        return [record.getMessage() for record in caplog.records if "member" in record.getMessage()]

    alone = "quotas are shared by 1 member, b1 (this job), which has all of them until jobs of other brokers join"
    assert [f"{alone}: they need the same --output"] == [line for line in job("one", "b1") if "shared by" in line]
    assert [f"{alone}: they need the same --output"] == [line for line in job("two", "b1") if "shared by" in line]
    monkeypatch.undo()
    slip = job("one", "bb1")
    assert "quotas are shared by 2 members: b1, bb1 (this job)" == slip[0]
    assert slip[-1].endswith("If bb1 is a slip, stop its job and start it with --broker b1")


def test_a_job_of_one_broker_looks_who_is_up_as_its_query_starts_and_says_that_batches_outlast_an_epoch(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    moving(tmp_path / "trace")
    for file in sorted((tmp_path / "trace").iterdir())[LOOKED_AT + 1 :]:
        file.unlink()
    conf = conf_in(tmp_path / "conf", TEXT, broker={"resourceGroupEpochMillis": 10}, groups=GROUPS)
    shared = str(tmp_path / "out")
    own = output_of(shared, "b1")
    job = ThrottleJob(str(tmp_path / "trace"), "json", own, f"{own}/checkpoint", True, "b1", shared)
    run_of_b1 = ThrottleRun(spark, job, conf, lambda _batch, _waiting: None, Event())
    sharing_of(throttle_tables(output_of(shared, "b2")), conf, shared, "b2").begin(START)
    assert run_of_b1.run()
    told = [
        row
        for row in throttle_tables(own).read("control").to_pylist()
        if row["broker"] == "b1" and row["kind"] == "limit"
    ]
    before_any_row = sorted((row for row in told if row["effective_time"].timestamp() == 0), key=itemgetter("seq"))
    assert [QUOTA, QUOTA // 2] == [row["messages_per_s"] for row in before_any_row]
    said = [record.getMessage() for record in caplog.records if "an epoch is 0.0 s" in record.getMessage()]
    assert 1 == len(said)


def test_where_nothing_is_attached_nothing_is_reported(engine: Engine, tmp_path: Path) -> None:
    moving(tmp_path / "trace")
    unattached = {"resourcegroups": GROUPS["resourcegroups"]}
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=unattached)
    engine.throttle(conf, tmp_path / "trace", tmp_path / "out")
    counts = asked(tmp_path / "out", "SELECT count(*) AS n FROM rg_usage UNION ALL SELECT count(*) FROM rg_members")
    assert [0, 0] == [row["n"] for row in counts]
    assert total(tmp_path / "out", "messages") == total(tmp_path / "out", "admitted_messages")


@pytest.mark.parametrize("has_groups", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_first_attachment_may_come_to_a_running_job_that_began_with_a_group(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, has_groups: bool
) -> None:
    """Else the log says that it is not enforced, and the next start is refused."""
    trace, later = tmp_path / "trace", tmp_path / "later"
    moving(later)
    trace.mkdir()
    groups = {"resourcegroups": GROUPS["resourcegroups"] if has_groups else {}}
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=groups)
    job = ThrottleJob(str(trace), "json", str(tmp_path / "out"), str(tmp_path / "checkpoint"), once=True)
    requests = [put_group("gold", {"publishRateInMsgs": QUOTA}), attach(AttachedTo.TENANT, "acme", "gold")][has_groups:]

    def run_on(files: int) -> None:
        for file in sorted(later.iterdir())[:files]:
            file.rename(trace / file.name)
        assert ThrottleRun(spark, job, conf, attach_once, Event()).run()

    def attach_once(_batch: BatchResult, _waiting: int) -> None:
        store = opened_config(tmp_path / "out", conf.quota)
        while requests:
            assert 204 == apply(store, requests.pop(0), EVERYWHERE, local_parameters(conf.quota)).response.status

    run_on(3)
    told = [record.getMessage() for record in caplog.records if "cannot enforce them" in record.getMessage()]
    assert ([] if has_groups else ["resource groups are attached"]) == [line[:28] for line in told]
    if has_groups:
        run_on(8)
        assert [] == rows_of(tmp_path / "out", "dead_letters")
        assert 0 < total(tmp_path / "out", "throttled_publishes")
    else:
        with pytest.raises(StateError, match="whole_brokers: the checkpoint has False, the conf files say True"):
            run_on(8)


def test_a_change_over_http_is_in_force_within_an_epoch_of_a_running_job(spark: SparkSession, tmp_path: Path) -> None:
    """A batch is a second of traffic, and so is an epoch."""
    moving(tmp_path / "trace")
    conf = conf_in(tmp_path / "conf", TEXT, broker={}, groups=GROUPS)
    job = ThrottleJob(str(tmp_path / "trace"), "json", str(tmp_path / "out"), str(tmp_path / "checkpoint"), once=True)
    changed_at_us: list[int] = []

    def block(batch: BatchResult, _waiting: int) -> None:
        if batch.batch_id == SECONDS // 2:
            status, *_ = served.ask("PUT", "/admin/v2/resourcegroups/gold", '{"publishRateInMsgs": 0}')
            assert 204 == status
            changed_at_us.append(batch.event_time_us or 0)

    with service(tmp_path / "out", "--token-file", token_file(tmp_path)) as served:
        assert ThrottleRun(spark, job, conf, block, Event()).run()
    zero = "kind = 'limit' AND name = 'gold' AND messages_per_s = 0"
    (blocked,) = asked(tmp_path / "out", f"SELECT min(effective_time) AS since FROM control WHERE {zero}")
    since_us = int(blocked["since"].timestamp() * 1_000_000)
    assert changed_at_us[0] <= since_us <= changed_at_us[0] + conf.quota.epoch_ms * 1000
    usage = rows_of(tmp_path / "out", "topic_usage")
    let_in = {row["event_time"] for row in usage if row["admitted_messages"]}
    assert START < max(let_in) <= blocked["since"] + timedelta(milliseconds=conf.quota.epoch_ms)
    assert max(row["event_time"] for row in usage) > max(let_in) + timedelta(seconds=3)
