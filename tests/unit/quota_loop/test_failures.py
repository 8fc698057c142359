"""Changes and failures of resource-groups 10, row by row, as far as shares and restarts do not show them already."""

import logging
import re

import pytest

from headgate.core.quota.usage.usage_report import ReportKind
from headgate.errors import ConfError, TableError
from headgate.quota.failure_detection import lost_after_ms
from headgate.quota.loop import QuotaLoop
from unit.quota_loop.rig import START, Cluster, attached, chosen, group, opened, rows_of, shared, write

Q = 1000
BOUND = Q + Q * 5 // 100


def cluster(folder, brokers="ab", *, one_job=False, **values):
    made = Cluster(folder, list(brokers), one_job=one_job, **values)
    write(made.tables, group(rate=Q), attached())
    return made


class Gone:
    """A table whose folder is somewhere else for a while."""

    def __init__(self, folder, name):
        self.at, self.away = folder / name, folder / f"{name}.away"

    def __enter__(self):
        self.at.rename(self.away)

    def __exit__(self, *error):
        self.away.rename(self.at)


def told(caplog, cause):
    return [record.message.split("(")[0].strip() for record in caplog.records if f"({cause})" in record.message]


@pytest.mark.parametrize(
    ("one_job", "profile"),
    [(True, "max_min"), (False, "max_min"), (True, "pulsar")],
    ids=["one job", "a job each", "pulsar"],
)
def test_without_the_usage_table_everybody_ends_at_its_safe_share_and_it_is_told_once(
    tmp_path, caplog, one_job, profile
):
    caplog.set_level(logging.INFO)
    quota = cluster(tmp_path, one_job=one_job, allocation_profile=profile, silent_rounds=3)
    quota.run(3, a=900, b=100)
    shares = quota.limits()
    jobs = len(quota.jobs)
    with Gone(tmp_path, "rg_usage"):
        quota.run(2, a=900, b=100)
        kept, causes = quota.limits(), quota.degraded()
        quota.run(8, a=900, b=100)
        safe = quota.limits()
    quota.run(4, a=900, b=100)

    assert shares == kept
    assert {"a": 500, "b": 500} == safe
    assert {"usage_read", "usage_append"} == causes
    assert set() == quota.degraded()
    assert ["resource groups degraded"] * jobs + ["resource groups no longer degraded"] * jobs == sorted(
        told(caplog, "usage_read")
    )
    if profile == "max_min":
        assert BOUND >= max(quota.sums[3:13])
        assert {"a": 900, "b": 100} == quota.limits()


def test_what_could_not_be_sent_for_long_is_sent_once_with_its_seqs(tmp_path):
    quota = cluster(tmp_path, one_job=True, suppress_rounds=0)
    quota.run(3, a=900, b=100)
    with Gone(tmp_path, "rg_usage"):
        quota.run(5, a=900, b=100)
    quota.run(1, a=900, b=100)

    rows = rows_of(tmp_path, "rg_usage", f"WHERE group_id = 1 AND broker_id = 0 AND kind = {int(ReportKind.PERIODIC)}")
    assert list(range(START, START + 9)) == sorted(row["epoch"] for row in rows)
    beats = rows_of(tmp_path, "rg_usage", "WHERE broker_id = 0")
    seqs = sorted({row["seq"] for row in beats})
    assert list(range(1, len(seqs) + 1)) == seqs


def test_while_appends_fail_alone_the_loop_keeps_reading_and_its_broker_becomes_silent(tmp_path):
    quota = cluster(tmp_path, silent_rounds=3)
    quota.run(3, a=900, b=900)
    writer = quota.jobs["a"].loop._outbox._writer
    real = writer.append

    def refused(*args):
        raise TableError("disk full")

    writer.append = refused
    quota.run(2, a=900, b=900)
    causes = quota.degraded(), quota.degraded("b")
    quota.run(6, a=100, b=900)
    away = quota.limits()
    writer.append = real
    quota.run(4, a=100, b=900)

    assert ({"usage_append"}, set()) == causes
    assert {"a": 500, "b": 500} == away  # its own fresh demand is nowhere: b has none of what it leaves
    assert {"a": 100, "b": 900} == quota.limits()
    assert BOUND >= max(quota.sums[3:])


@pytest.mark.parametrize(
    ("name", "cause"), [("rg_groups", "groups"), ("rg_attachments", "attachments"), ("rg_members", "members")]
)
def test_tables_that_cannot_be_read_stay_as_they_were_read_last(tmp_path, name, cause):
    quota = cluster(tmp_path)
    quota.run(3, a=900, b=100)
    with Gone(tmp_path, name):
        quota.run(2, a=900, b=100)
        shares, causes = quota.limits(), quota.degraded()
    quota.run(1, a=900, b=100)

    assert ({"a": 900, "b": 100}, {cause}, set()) == (shares, causes, quota.degraded())


def test_a_job_that_never_read_who_the_members_are_limits_nobody_by_a_guess(tmp_path):
    quota = cluster(tmp_path)
    with Gone(tmp_path, "rg_members"):
        quota.run(2, a=900, b=900)
        before = quota.limits(), quota.degraded()
    quota.run(4, a=900, b=900)

    assert (({}, {"members", "upkeep"}), {"a": 500, "b": 500}) == (before, quota.limits())


def test_limits_that_could_not_be_written_down_hold_and_are_written_later_once(tmp_path):
    quota = cluster(tmp_path, one_job=True)
    quota.run(3, a=900, b=100)
    with Gone(tmp_path, "rg_limits"):
        quota.run(2, a=100, b=900)
        held, causes = quota.limits(), quota.degraded()
    quota.run(2, a=100, b=900)

    assert ({"a": 100, "b": 900}, {"limits"}) == (held, causes)
    rows = rows_of(tmp_path, "rg_limits", f"WHERE epoch > {START + 3} ORDER BY epoch, broker_id")
    keys = [(row["epoch"], row["broker_id"]) for row in rows]
    assert len(set(keys)) == len(keys) >= 2
    assert set() == quota.degraded()


def test_without_a_shared_table_each_of_n_brokers_takes_an_nth_for_as_long_as_it_lasts(tmp_path):
    settings = chosen(broker_count=3)
    tables = opened(tmp_path, settings)
    write(tables, group(rate=1000), attached())
    quota = Cluster(tmp_path, ["a"], one_job=False)
    quota.jobs["a"].loop = QuotaLoop(tables, settings, broker="a")
    quota.run(3, a=5000)
    third = quota.limits()
    write(tables, group(rate=90))
    quota.run(1, a=5000)

    assert ({"a": 333}, {"a": 30}) == (third, quota.limits())
    assert {"no_transport"} == quota.degraded()
    assert "no_transport" == rows_of(tmp_path, "rg_limits")[0]["reason"]
    assert ([], []) == (rows_of(tmp_path, "rg_usage"), rows_of(tmp_path, "rg_members"))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (chosen(), "resourceGroupBrokerCount"),
        (chosen(usage_table="x"), "resourceGroupMemberTable"),
        (chosen(usage_table="x", member_table="y"), "resourceGroupGroupTable"),
    ],
)
def test_a_job_of_one_broker_whose_tables_nobody_shares_is_refused(tmp_path, settings, key):
    tables = opened(tmp_path, shared(tmp_path))

    with pytest.raises(ConfError, match=re.escape(key)):
        QuotaLoop(tables, settings, broker="a")


def test_a_broker_that_died_is_lost_after_the_bound_and_its_share_is_free_in_that_evaluation(tmp_path):
    quota = cluster(tmp_path, "abc", silent_rounds=2)
    quota.run(3, a=900, b=900, c=900)
    bound = lost_after_ms(quota.settings) // 1000
    quota.run(bound - 1, running=["a", "b"], a=900, b=900)
    alive = quota.limits()
    states = {row["name"]: row["state"] for row in rows_of(tmp_path, "rg_members", "ORDER BY version")}
    quota.run(2, running=["a", "b"], a=900, b=900)

    assert ({"a": 334, "b": 333, "c": 333}, "up") == (alive, states["c"])
    assert {"a": 500, "b": 500} == {name: quota.limits()[name] for name in "ab"}
    states = {row["name"]: row["state"] for row in rows_of(tmp_path, "rg_members", "ORDER BY version")}
    assert {"a": "up", "b": "up", "c": "lost"} == states
    assert 2 == quota.metric("members")


def test_one_that_was_marked_lost_while_it_ran_joins_again(tmp_path):
    quota = cluster(tmp_path)
    quota.run(4, a=900, b=900)
    life = {row.broker_id: row.incarnation for row in quota.tables.members.read().values() if row.name == "b"}
    quota.tables.members.lose(life)
    quota.run(1, running=["a"], a=900)
    alone = quota.limits()["a"]
    quota.run(4, a=900, b=900)

    assert (1000, {"a": 500, "b": 500}) == (alone, quota.limits())
    assert ["up", "lost", "up"] == [
        row["state"] for row in rows_of(tmp_path, "rg_members", "WHERE name = 'b' ORDER BY version")
    ]


def test_an_outage_of_the_table_loses_nobody(tmp_path):
    quota = cluster(tmp_path, silent_rounds=2)
    quota.run(2, a=900, b=900)
    with Gone(tmp_path, "rg_usage"):
        quota.run(lost_after_ms(quota.settings) // 1000 + 2, a=900, b=900)
    quota.run(2, a=900, b=900)

    assert 2 == quota.metric("members") == len(rows_of(tmp_path, "rg_members"))


def test_a_second_job_for_the_same_broker_is_told_to_the_first(tmp_path, caplog):
    quota = cluster(tmp_path)
    quota.run(3, a=900, b=900)
    other = quota.job("a")
    other.run(quota.epoch, {("a", "gold"): 900}, wall_ms=10**13)
    quota.run(2, a=900, b=900)

    assert "superseded" in quota.degraded()
    assert 1 == len(told(caplog, "superseded"))


@pytest.mark.parametrize(("seconds", "reason"), [(1, None), (-1, None), (6, "future"), (-6, "stale")])
def test_a_clock_may_be_an_epoch_off_and_who_is_further_off_becomes_silent(tmp_path, seconds, reason):
    quota = cluster(tmp_path, silent_rounds=3)
    quota.run(3, a=900, b=300)
    quota.jobs["b"].clock_off_ms = seconds * 1000
    quota.run(9 if reason else 4, a=900, b=300)

    dropped = quota.metric("rows_dropped_total")
    newest = rows_of(tmp_path, "rg_limits", "WHERE broker_id = 0 ORDER BY epoch DESC")[0]
    if reason is None:
        assert {} == {name: count for name, count in dropped.items() if name in {"future", "stale"}}
        assert {"a": 700, "b": 300} == quota.limits()
    else:
        assert 5 <= dropped[reason]
        assert (500, 1) == (newest["limit"], newest["silent"])


def test_members_may_be_taken_from_the_reports(tmp_path):
    quota = cluster(tmp_path, membership="reports", silent_rounds=2)
    quota.run(4, a=900, b=300)
    both = quota.limits()
    quota.run(12, running=["a"], a=900)

    assert {"a": 700, "b": 300} == both
    assert 1000 == quota.limits()["a"]
    assert [] == rows_of(tmp_path, "rg_members")


def test_counters_say_what_was_reported_suppressed_and_dropped(tmp_path):
    quota = cluster(tmp_path, one_job=True)
    quota.run(8, a=500, b=100)

    assert {"first", "mandatory"} <= set(quota.metric("reports_total"))
    assert 4 <= quota.metric("reports_suppressed_total")
    assert 2 == quota.metric("members")
    assert 8 == quota.metric("evaluation_seconds")["count"]
