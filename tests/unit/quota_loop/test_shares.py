"""Shares in both layouts: by demand, within the quota and its floors, from groups and attachments as they change."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate.arrow.schemas import GROUP_LEAVES
from headgate.quota.control_rows import GroupAttachment, GroupLimit
from unit.quota_loop.rig import START, AttachedTo, Cluster, attached, group, rows_of, usage_of, waits_of, write

Q = 1000
BOUND = Q + Q * 5 // 100

layouts = pytest.mark.parametrize("one_job", [True, False], ids=["one job", "a job each"])


def cluster(folder, brokers="abc", *, one_job, rate=Q, **values):
    made = Cluster(folder, list(brokers), one_job=one_job, **values)
    rates = (rate, None, None, None) if made.traffic_class == 0 else (None, None, rate, None)
    write(made.tables, group(rates=rates), attached())
    return made


classes = pytest.mark.parametrize(
    "traffic_class", [0, pytest.param(1, marks=pytest.mark.long)], ids=["publish", "dispatch"]
)


@pytest.mark.parametrize(
    ("one_job", "demands", "shares"),
    [
        (True, {"a": 900, "b": 900, "c": 900}, {"a": 334, "b": 333, "c": 333}),
        (True, {"a": 100, "b": 900, "c": 900}, {"a": 100, "b": 450, "c": 450}),
        (True, {"a": 900}, {"a": 1000, "b": 16, "c": 16}),
        (True, {}, {"a": 334, "b": 333, "c": 333}),
        (False, {"a": 100, "b": 900, "c": 900}, {"a": 100, "b": 450, "c": 450}),
        (False, {"a": 900}, {"a": 1000, "b": 16, "c": 16}),
    ],
    ids=["all want more", "one wants little", "one alone", "nobody", "a job each", "a job each, one alone"],
)
@classes
def test_shares_follow_demand_whatever_the_layout(tmp_path, one_job, demands, shares, traffic_class):
    quota = cluster(tmp_path, one_job=one_job, traffic_class=traffic_class)
    quota.run(4, **demands)

    assert shares == quota.limits()


@layouts
@classes
def test_the_sum_stays_within_the_quota_and_its_floors_while_demand_moves(one_job, traffic_class):
    quota = cluster(None, one_job=one_job, traffic_class=traffic_class)
    quota.run(2, a=900, b=50, c=50)
    quota.run(2, a=50, b=900, c=50)
    quota.run(2, a=900, b=900, c=900)
    quota.run(2, b=2000)

    settled = quota.sums[1:]
    if one_job:
        assert BOUND >= max(settled)
    assert [BOUND >= quota.sums[after] for after in (1, 3, 5, 7)] == [True] * 4
    assert 1000 >= quota.limits()["b"] >= 880  # idle brokers linger without demand


@layouts
def test_a_quota_that_changes_changes_shares_at_the_first_evaluation_that_reads_it(one_job):
    quota = cluster(None, "ab", one_job=one_job)
    quota.run(2, a=900, b=900)
    seen = []
    for rate in (2000, 400, 0, None, 600):
        write(quota.tables, group(rate=rate))
        quota.run(1, a=900, b=900)
        seen.append(quota.limits())

    halves = [{"a": half, "b": half} for half in (1000, 200, 0, None, 300)]
    assert halves == seen


def test_attaching_detaching_and_switching_is_told_once_each():
    quota = cluster(None, "a", one_job=True)
    quota.run(2, a=100)
    write(quota.tables, group("silver", id_=2, rate=50), attached(name="silver"))
    quota.run(1, a=100)
    write(quota.tables, attached(name=None), attached("acme", "gold", AttachedTo.TENANT))
    quota.run(1, a=100)

    told = [row for rows in quota.jobs["all"].said for row in rows.attachments]
    assert [
        GroupAttachment(AttachedTo.NAMESPACE, "acme/a", "gold", (START + 1) * 1000),
        GroupAttachment(AttachedTo.NAMESPACE, "acme/a", "silver", (START + 3) * 1000),
        GroupAttachment(AttachedTo.NAMESPACE, "acme/a", None, (START + 4) * 1000),
        GroupAttachment(AttachedTo.TENANT, "acme", "gold", (START + 4) * 1000),
    ] == told


@pytest.mark.parametrize("one_job", [True, False])
def test_a_broker_whose_topics_all_went_to_another_group_leaves_the_first_though_others_use_it(tmp_path, one_job):
    """It would idle there for `resourceGroupLingerRounds`, with a part of what is left over."""
    quota = Cluster(tmp_path, ["a", "b"], one_job=one_job)
    write(quota.tables, group(), attached(), attached("acme/b"), group("silver", id_=2, rate=50))
    quota.run(3, a=400, b=900)
    write(quota.tables, attached("acme/b", "silver"))
    quota.run(1, a=400, b=900)
    job, clock_ms = quota.job_of("b"), quota.epoch * 1000
    leaves = pa.table([["b"], ["gold"], [0]], schema=GROUP_LEAVES)
    job.loop.measure(usage_of(0, {}, {}), waits_of(0, {}, {}), ["b"], clock_ms, clock_ms, leaves)
    job.take(job.loop.exchange(clock_ms, clock_ms))
    quota.run(3, a=400)

    assert [1] == [row["broker_id"] for row in rows_of(tmp_path, "rg_usage", "WHERE group_id = 1 AND kind = 2")]
    assert {"a": 1000, "b": 25} == quota.limits()


def test_of_a_group_that_is_not_attached_any_more_limits_are_dropped_and_readers_are_told(tmp_path):
    quota = cluster(tmp_path, "a", one_job=True)
    quota.run(2, a=100)
    write(quota.tables, attached(name=None))
    quota.run(1, a=100)

    assert GroupLimit("a", "gold", 0, None, None, (START + 3) * 1000) == quota.jobs["all"].said[-1].limits[0]
    assert [2] == [row["kind"] for row in rows_of(tmp_path, "rg_usage", "WHERE seq = (SELECT max(seq) FROM t)")]
    quota.run(1, a=100)
    last = rows_of(tmp_path, "rg_limits", f"WHERE epoch = {START + 3}")
    assert [(None, "unset")] == [(row["limit"], row["reason"]) for row in last]


@layouts
def test_a_group_that_was_deleted_by_hand_dangles_until_it_is_there_again(one_job):
    quota = cluster(None, "ab", one_job=one_job)
    quota.run(2, a=900, b=900)
    write(quota.tables, group(deleted=True))
    quota.run(1, a=900, b=900)
    gone = quota.limits(), dict(quota.job_of("a").attached), quota.metric("dangling_attachments")
    write(quota.tables, group(id_=2, rate=500))
    quota.run(3, a=900, b=900)

    assert ({"a": None, "b": None}, {("namespace", "acme/a"): None}, 1) == gone
    assert {"a": 250, "b": 250} == quota.limits()
    assert {("namespace", "acme/a"): "gold"} == quota.job_of("a").attached


def test_an_attachment_that_dangles_from_the_start_is_told_when_its_group_appears():
    quota = Cluster(None, ["a"], one_job=True)
    write(quota.tables, attached(), attached("acme/b", "silver"), group("silver", id_=1, rate=10))
    quota.run(1)
    write(quota.tables, group(id_=2))
    quota.run(1)

    assert [[("acme/b", "silver")], [("acme/a", "gold")]] == [
        [(row.resource, row.group) for row in rows.attachments] for rows in quota.jobs["all"].said
    ]


@pytest.mark.parametrize("broker", [None, "a"])
def test_while_nothing_is_attached_nothing_is_written_or_told(tmp_path, broker):
    quota = Cluster(tmp_path, ["a"], one_job=broker is None)
    write(quota.tables, group())
    quota.run(3, a=100)

    written = [len(rows_of(tmp_path, name)) for name in ("rg_usage", "rg_members", "rg_limits")]
    assert [0, 0, 0] == written
    assert [((), ())] * 3 == [(rows.limits, rows.attachments) for rows in quota.job_of("a").said]
    assert 0 == quota.metric("evaluation_seconds")["count"]


def test_every_broker_of_the_input_joins_before_its_first_row_and_idles_when_it_is_gone_from_it(tmp_path):
    quota = cluster(tmp_path, "ab", one_job=True, linger_rounds=2)
    job = quota.jobs["all"]
    for epoch in range(START, START + 3):
        job.run(epoch, {("a", "gold"): 900, ("b", "gold"): 900})
    both = quota.limits()
    for epoch in range(START + 3, START + 9):
        job.run(epoch, {("a", "gold"): 900})

    assert ({"a": 500, "b": 500}, {"a": 1000, "b": 25}) == (both, quota.limits())
    assert ["a", "b"] == sorted(row["name"] for row in rows_of(tmp_path, "rg_members"))


def test_weights_are_those_of_the_jobs():
    heavy = Cluster(None, ["a", "b"], one_job=False)
    write(heavy.tables, group(), attached())
    heavy.settings = type(heavy.settings)(
        **{name: getattr(heavy.settings, name) for name in heavy.settings.__slots__} | {"broker_weight": 3}
    )
    heavy.jobs["b"] = heavy.job("b")
    heavy.run(5, a=2000, b=2000)

    assert {"a": 250, "b": 750} == heavy.limits()


def test_a_burst_inside_an_epoch_is_followed_before_the_epoch_closes():
    quota = cluster(None, "ab", one_job=True)
    quota.run(4, a=600, b=100)
    before = quota.limits()
    job, epoch = quota.jobs["all"], quota.epoch
    usage = {("a", "gold"): 600, ("b", "gold"): 800}
    whole, waits = usage_of(epoch, usage, job.limits), waits_of(epoch, usage, job.limits)
    at_ms = epoch * 1000 + 600
    job.loop.measure(whole.filter(pc.less(whole["at_ms"], at_ms)), waits, ["a", "b"], at_ms, 0)
    job.take(job.loop.exchange(at_ms, 0))

    assert before["b"] < quota.limits()["b"]
    assert BOUND >= quota.total()


@pytest.mark.parametrize(
    ("profile", "shares"),
    [
        ("max_min", {"a": 700, "b": 300}),
        ("pulsar", {"a": 700, "b": 300}),
        ("pip82_residual_equal", {"a": 700, "b": 300}),
    ],
)
def test_every_profile_runs_in_the_loop(profile, shares):
    quota = cluster(None, "ab", one_job=True, allocation_profile=profile)
    quota.run(5, a=700, b=300)

    assert shares == quota.limits()


def test_coupled_dimensions_run_in_the_loop():
    quota = Cluster(None, ["a", "b"], one_job=True, couple_dimensions=True)
    write(quota.tables, group(rates=(1000, 10_000, None, None)), attached())
    quota.run(4, a=900, b=900)

    assert ({"a": 500, "b": 500}, {"a": 5000, "b": 5000}) == (quota.limits(), quota.limits(dimension=1))


def test_without_visible_demand_a_throttled_broker_counts_as_wanting_more():
    quota = cluster(None, "ab", one_job=True, demand_visible=False)
    quota.run(5, a=2000, b=100)

    assert {"a": 900, "b": 100} == quota.limits()


def test_topics_of_a_group_are_counted_into_its_rows(tmp_path):
    quota = cluster(tmp_path, "a", one_job=True, suppress_rounds=0)
    quota.run(3, a=100)

    rows = rows_of(tmp_path, "rg_usage", "WHERE group_id = 1 AND kind = 0 ORDER BY epoch")
    assert [(START, 3), (START + 1, 3), (START + 2, 3)] == [(row["epoch"], row["topics"]) for row in rows]


def test_limits_that_changed_are_in_the_table_with_what_explains_them(tmp_path):
    quota = cluster(tmp_path, "ab", one_job=True)
    quota.run(1, a=900, b=100)
    quota.run(3, a=900, b=100)

    found = rows_of(tmp_path, "rg_limits", "ORDER BY epoch, broker_id")
    newest = {row["broker_id"]: row for row in found}
    names = ("limit", "target", "safe", "demand", "missing", "silent", "report_age", "reason")
    assert [(900, 900, 500, 900, 0, 0, 0, "target"), (100, 100, 500, 100, 0, 0, 0, "target")] == [
        tuple(newest[broker][name] for name in names) for broker in (0, 1)
    ]
    keys = [(row["epoch"], row["broker_id"]) for row in found]
    assert len(set(keys)) == len(keys)
