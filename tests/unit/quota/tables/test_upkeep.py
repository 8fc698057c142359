"""Hours that are over become sorted files, old ones go; readers get no row twice and lose none."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.quota.tables.delta import opened
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.schemas import RG_LIMITS, RG_MEMBERS, RG_USAGE
from headgate.quota.tables.upkeep import CLOSED_AFTER_MS, LATE_FILES, Kept
from unit.quota.places import EPOCH, HOUR, NOW_MS, SHARDS, cut, said, tables

CLOSED_MS = (HOUR + 1) * 3_600_000 + CLOSED_AFTER_MS


LIMIT = LimitRow(EPOCH, 7, 3, 1, 0, CellLimit(None, 5, 3, None, 1, 2, 9, Reason.GATED))
DAY_MS = 86_400_000


def rows_of(folder, name="rg_usage"):
    spec = RG_USAGE if name == "rg_usage" else RG_LIMITS
    table = opened(f"{folder}/{name}", spec, None)
    return sorted(map(str, table.select().to_pylist()))


def names(folder):
    return sorted(uri.rpartition("/")[2].partition("-")[0] for uri in DeltaTable(f"{folder}/rg_usage").file_uris())


def test_a_closed_hour_becomes_one_sorted_file_a_shard(tmp_path):
    quota = tables(tmp_path)
    for seq, epoch in ((1, EPOCH), (2, EPOCH + 1)):
        for broker in (8, 7):
            quota.usage.append([cut(seq, 1, 2, 3, epoch=epoch, broker=broker)], {1: 0, 2: 0, 3: 5})
    before = rows_of(tmp_path)

    assert Kept(compacted=(HOUR,)) == quota.upkeep_of_usage().run(CLOSED_MS)

    assert before == rows_of(tmp_path)
    assert ["compacted"] * 3 == names(tmp_path)
    (path,) = (uri for uri in DeltaTable(f"{tmp_path}/rg_usage").file_uris() if "shard=0" in uri)
    rows = pq.ParquetFile(path).read(["group_id", "broker_id", "epoch"]).to_pylist()
    expected = [(group, broker, epoch) for group in (1, 2) for broker in (7, 8) for epoch in (EPOCH, EPOCH + 1)]
    assert expected == [tuple(row.values()) for row in rows]


def test_compaction_is_no_news_to_a_reader(tmp_path):
    quota = tables(tmp_path)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 1)], SHARDS)
    behind = quota.usage_reader(version=0)
    reader.read(NOW_MS)
    quota.upkeep_of_usage().run(CLOSED_MS)
    quota.usage.append([cut(2, epoch=EPOCH + 3600)], SHARDS)

    assert [[(7, 2, 0)], [(7, 1, 0), (7, 1, 1), (7, 2, 0)]] == [said(one.read(NOW_MS)) for one in (reader, behind)]


def test_an_hour_is_compacted_once_and_only_when_it_is_over(tmp_path):
    quota = tables(tmp_path)
    quota.usage.append([cut(1)], SHARDS)
    upkeep = quota.upkeep_of_usage()

    assert [Kept(), Kept(compacted=(HOUR,)), Kept()] == [upkeep.run(at) for at in (CLOSED_MS - 1, CLOSED_MS, CLOSED_MS)]
    quota.usage.append([cut(2)], SHARDS)
    assert Kept() == upkeep.run(CLOSED_MS)
    assert ["compacted", "cut"] == names(tmp_path)


def test_hours_that_are_due_together_are_all_compacted(tmp_path):
    quota = tables(tmp_path)
    for hours in (0, 1, 2):
        quota.limits.append([replace(LIMIT, epoch=EPOCH + 3600 * hours)])

    assert Kept(compacted=(HOUR, HOUR + 1)) == quota.upkeep_of_limits().run(CLOSED_MS + 3_600_000)


def test_an_hour_that_many_late_files_came_to_is_compacted_once_more(tmp_path):
    quota = tables(tmp_path)
    upkeep = quota.upkeep_of_limits()
    quota.limits.append([LIMIT])
    upkeep.run(CLOSED_MS)
    for epoch in range(EPOCH + 1, EPOCH + LATE_FILES):
        quota.limits.append([replace(LIMIT, epoch=epoch)])
    before = upkeep.run(CLOSED_MS)
    quota.limits.append([replace(LIMIT, epoch=EPOCH + LATE_FILES)])

    assert [Kept(), Kept(compacted=(HOUR,)), Kept()] == [before, upkeep.run(CLOSED_MS), upkeep.run(CLOSED_MS)]
    assert list(range(EPOCH, EPOCH + LATE_FILES + 1)) == sorted(
        row["epoch"] for row in opened(f"{tmp_path}/rg_limits", RG_LIMITS, None).select().to_pylist()
    )
    assert 1 == len(DeltaTable(f"{tmp_path}/rg_limits").file_uris())


@pytest.mark.parametrize("name", ["rg_usage", "rg_limits"])
def test_of_two_that_compact_at_once_one_does_it(tmp_path, name):
    quota = tables(tmp_path)
    quota.usage.append([cut(1, 1)], SHARDS)
    quota.limits.append([LIMIT])
    before = rows_of(tmp_path, name)
    upkeeps = (tables(tmp_path) for _ in range(2))
    one, other = (each.upkeep_of_usage() if name == "rg_usage" else each.upkeep_of_limits() for each in upkeeps)
    found = {}

    def meanwhile(*given, join=one._join):
        found["other"] = other.run(CLOSED_MS)
        return join(*given)

    one._join = meanwhile
    found["one"] = one.run(CLOSED_MS)

    assert {"other": Kept(compacted=(HOUR,)), "one": Kept()} == found
    assert before == rows_of(tmp_path, name)


@pytest.mark.parametrize(("replaced_minutes_ago", "is_there"), [(50, True), (70, False)])
def test_limits_of_a_closed_hour_become_one_file_and_stay_whatever_their_age(
    tmp_path, monkeypatch, replaced_minutes_ago, is_there
):
    """The files that it replaces stay for an hour, for who is reading them."""
    quota = tables(tmp_path)
    for epoch in (EPOCH, EPOCH + 1):
        for broker in (8, 7):
            quota.limits.append([replace(LIMIT, broker_id=broker, epoch=epoch)])
    before, version = rows_of(tmp_path, "rg_limits"), DeltaTable(f"{tmp_path}/rg_limits").version()

    replaced_s = time.time() - replaced_minutes_ago * 60
    for file in tmp_path.glob("rg_limits/hour=*/*"):
        os.utime(file, (replaced_s, replaced_s))
    with monkeypatch.context() as patch:
        patch.setattr("headgate.quota.tables.upkeep.time.time_ns", lambda: int(replaced_s * 1e9))
        assert [Kept(compacted=(HOUR,)), Kept()] == [
            quota.upkeep_of_limits().run(CLOSED_MS + days * DAY_MS) for days in (0, 400)
        ]

    after = DeltaTable(f"{tmp_path}/rg_limits")
    (path,) = after.file_uris()
    order = [(row["broker_id"], row["epoch"]) for row in pq.ParquetFile(path).read().to_pylist()]
    assert [(broker, epoch) for broker in (7, 8) for epoch in (EPOCH, EPOCH + 1)] == order
    assert before == rows_of(tmp_path, "rg_limits")
    past = DeltaTable(f"{tmp_path}/rg_limits", version=version).file_uris()
    assert [is_there] * 4 == [Path(uri).exists() for uri in past]


def test_cuts_that_come_while_an_hour_is_compacted_are_kept(tmp_path):
    quota = tables(tmp_path)
    quota.usage.append([cut(1, 1)], SHARDS)
    upkeep = quota.upkeep_of_usage()

    def meanwhile(*given, join=upkeep._join):
        quota.usage.append([cut(2, 1)], SHARDS)
        return join(*given)

    upkeep._join = meanwhile
    assert Kept(compacted=(HOUR,)) == upkeep.run(CLOSED_MS)
    assert [(7, 1, 0), (7, 1, 1), (7, 2, 0), (7, 2, 1)] == said(quota.usage_reader().read(NOW_MS))


def test_hours_before_the_retention_go(tmp_path):
    quota = tables(tmp_path, usage_retention_hours=2)
    for seq, hours in enumerate((0, 1, 2, 3), start=1):
        quota.usage.append([cut(seq, epoch=EPOCH + hours * 3600)], SHARDS)

    kept = quota.upkeep_of_usage().run((HOUR + 3) * 3_600_000)
    assert (HOUR,) == kept.removed
    assert [2, 3, 4] == sorted(row["seq"] for row in quota.usage_reader(version=None)._table.select().to_pylist())


@pytest.mark.parametrize("name", ["rg_usage", "rg_limits"])
def test_an_open_hour_has_few_files_however_many_cuts_it_has(tmp_path, monkeypatch, name):
    monkeypatch.setattr("headgate.quota.tables.upkeep.LOOSE_FILES", 10)
    quota = tables(tmp_path)
    reader = quota.usage_reader(version=0)
    for seq in range(1, 11):
        quota.usage.append([cut(seq, epoch=EPOCH + seq)], SHARDS)
        quota.limits.append([replace(LIMIT, epoch=EPOCH + seq)])
    upkeep = quota.upkeep_of_usage() if name == "rg_usage" else quota.upkeep_of_limits()
    before = rows_of(tmp_path, name)

    assert [Kept(joined=(HOUR,)), Kept()] == [upkeep.run(NOW_MS), upkeep.run(NOW_MS)]

    assert 1 == len(DeltaTable(f"{tmp_path}/{name}").file_uris())
    assert before == rows_of(tmp_path, name)
    quota.usage.append([cut(11, epoch=EPOCH + 3600)], SHARDS)
    assert list(range(1, 12)) == [seq for _, seq, _ in said(reader.read(NOW_MS))]
    assert Kept(compacted=(HOUR,)) == upkeep.run(CLOSED_MS)
    assert ["compacted"] == [
        uri.rpartition("/")[2].partition("-")[0]
        for uri in DeltaTable(f"{tmp_path}/{name}").file_uris()
        if f"hour={HOUR}/" in uri
    ]


def test_files_that_were_replaced_stay_an_hour_for_readers_behind(tmp_path):
    quota = tables(tmp_path)
    quota.usage.append([cut(1, 1)], SHARDS)
    behind = quota.usage_reader(version=0)
    quota.upkeep_of_usage().run(CLOSED_MS)

    read = behind.read(NOW_MS)
    assert (False, [(7, 1, 0), (7, 1, 1)]) == (read.whole, said(read))


def test_changes_of_members_are_joined_into_one_file_and_no_reader_hears_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr("headgate.quota.tables.upkeep.LOOSE_FILES", 3)
    quota = tables(tmp_path)
    quota.members.join({"a": 1}, 1)
    quota.members.join({"b": 1}, 2)
    quota.keep_up(NOW_MS)
    folder = f"{tmp_path}/rg_members"
    before = len(DeltaTable(folder).file_uris())
    quota.members.join({"a": 1}, 3)
    known, version = quota.members.read(), DeltaTable(folder).version()
    quota.keep_up(NOW_MS)

    assert (2, 1) == (before, len(DeltaTable(folder).file_uris()))
    assert known == quota.members.read()
    assert [] == opened(folder, RG_MEMBERS, None).added_since(version)
    assert 2 == quota.members.join({"c": 1}, 4)["c"].broker_id
