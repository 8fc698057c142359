"""rg_usage: a cut is one commit and is there once; a reader gets every row once, and goes on after anything."""

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.quota.usage.usage_map import Member, UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow
from headgate.errors import TableError
from headgate.quota.tables.schemas import RG_USAGE
from headgate.quota.tables.usage_rows import usage_rows, usage_table
from unit.quota.places import EPOCH, HOUR, NOW_MS, SETTINGS, SHARDS, USAGE, cut, said, tables


@pytest.fixture
def folder(tmp_path):
    """A path that has to be written with escapes in a URI."""
    return tmp_path / "a b ü"


def files(folder):
    return sorted(DeltaTable(f"{folder}/rg_usage").file_uris())


def damaged_log(folder, version):
    (folder / "rg_usage" / "_delta_log" / f"{version:020d}.json").unlink()


def test_a_cut_and_its_heartbeat_are_one_commit_of_rows_sorted_by_group(folder):
    quota = tables(folder)
    reader = quota.usage_reader(version=0)

    assert quota.usage.append([cut(1, 2, 5)], SHARDS)

    read = reader.read(NOW_MS)
    assert (1, False, [(7, 1, 0), (7, 1, 2), (7, 1, 5)]) == (read.version, read.whole, said(read))


def test_what_is_read_back_is_what_was_sent(folder):
    quota = tables(folder)
    quota.usage.append([cut(4, 9)], SHARDS | {9: 63})

    heartbeat, row = usage_rows(quota.usage_reader(version=0).read(NOW_MS).rows)
    head = (7, 1_700_000_000_000, 4, EPOCH, NOW_MS)
    assert UsageRow(*head, 0, 0, 0, (0, 0), (None, None), (None, None), (False, False), 2) == heartbeat
    assert UsageRow(*head, 9, 0, 0, USAGE.admitted, USAGE.offered, USAGE.limit, USAGE.throttled, 2) == row


def test_the_partition_is_the_hour_of_the_epoch_and_the_shard_of_the_group():
    table = usage_table([cut(1, 2, 3, epoch=EPOCH - 1)], {2: 8, 3: 0}, 1000)

    assert [(HOUR - 1, -1, 0), (HOUR - 1, 8, 2), (HOUR - 1, 0, 3)] == [
        (row["hour"], row["shard"], row["topics"]) for row in table.to_pylist()
    ]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (cut(1), [(0, 0)]),
        (cut(1, 4), [(0, 0), (4, 0)]),
        (cut(1, 4, kind=ReportKind.EVENT, closes=False), [(4, 1)]),
        (cut(1, 4, kind=ReportKind.LEAVE, closes=False), [(4, 2)]),
        (cut(1, kind=ReportKind.LEAVE, closes=False), [(0, 2)]),
    ],
    ids=["heartbeat", "periodic", "event", "leave", "leave-all"],
)
def test_each_kind_of_cut_has_its_rows(sent, expected):
    rows = usage_table([sent], SHARDS, 1000)

    assert expected == list(zip(rows["group_id"].to_pylist(), rows["kind"].to_pylist(), strict=True))


def test_a_cut_that_is_appended_again_is_there_once(folder):
    one, other = tables(folder), tables(folder)

    assert [True, False, False, True] == [
        one.usage.append([cut(1, 2)], SHARDS),
        one.usage.append([cut(1, 2)], SHARDS),
        other.usage.append([cut(1, 2)], SHARDS),
        one.usage.append([cut(1, 2), cut(2, 2)], SHARDS),
    ]
    assert [(7, 1, 0), (7, 1, 2), (7, 2, 0), (7, 2, 2)] == said(one.usage_reader().read(NOW_MS))


def test_a_new_incarnation_counts_its_cuts_anew(folder):
    quota = tables(folder)
    quota.usage.append([cut(9, 2)], SHARDS)

    assert quota.usage.append([cut(1, 2, incarnation=1_700_000_000_001)], SHARDS)


def test_cuts_of_several_brokers_may_share_a_commit(folder):
    quota = tables(folder)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 2, broker=1)], SHARDS)

    assert quota.usage.append([cut(1, 2, broker=1), cut(1, 2, broker=2), cut(2, broker=1)], SHARDS)

    read = reader.read(NOW_MS)
    assert 2 == read.version
    assert [(1, 1, 0), (1, 1, 2), (1, 2, 0), (2, 1, 0), (2, 1, 2)] == sorted(said(read))


def test_a_reader_gets_each_row_once_and_what_others_wrote_meanwhile(folder):
    quota, other = tables(folder), tables(folder)
    reader = quota.usage_reader()
    assert (True, []) == ((first := reader.read(NOW_MS)).whole, said(first))

    quota.usage.append([cut(1, 2)], SHARDS)
    other.usage.append([cut(1, broker=8)], SHARDS)
    assert [(7, 1, 0), (7, 1, 2), (8, 1, 0)] == said(reader.read(NOW_MS))
    quota.usage.append([cut(2)], SHARDS)
    assert [[(7, 2, 0)], []] == [said(reader.read(NOW_MS)), said(reader.read(NOW_MS))]


@pytest.mark.parametrize(("stale", "suppressed", "kept"), [(3, 0, 5), (3, 5, 7), (4, -1, 6)])
def test_a_new_reader_begins_with_the_last_epochs(folder, stale, suppressed, kept):
    quota = tables(folder, max_staleness_rounds=stale, suppress_rounds=suppressed)
    for seq, epoch in enumerate(range(EPOCH - 8, EPOCH + 1), start=1):
        quota.usage.append([cut(seq, epoch=epoch)], SHARDS)

    read = quota.usage_reader().read(EPOCH * 1000)
    assert list(range(EPOCH - kept, EPOCH + 1)) == read.rows["epoch"].to_pylist()


@pytest.mark.parametrize("loss", ["commit", "file"])
def test_a_reader_that_is_too_far_behind_begins_anew_and_goes_on_from_there(folder, loss):
    quota = tables(folder)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 2, epoch=EPOCH - 100)], SHARDS)
    gone = files(folder)
    quota.usage.append([cut(2, 2)], SHARDS)
    delta = DeltaTable(f"{folder}/rg_usage")
    delta.delete(f"epoch = {EPOCH - 100}")
    delta.create_checkpoint()
    if loss == "commit":
        for version in (0, 1):  # a log is cleaned from its beginning
            damaged_log(folder, version)
    else:
        delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
        assert not set(gone) & set(files(folder))

    read = reader.read(NOW_MS)
    assert (True, [(7, 2, 0), (7, 2, 2)]) == (read.whole, said(read))
    quota.usage.append([cut(3)], SHARDS)
    after = reader.read(NOW_MS)
    assert (False, [(7, 3, 0)]) == (after.whole, said(after))


def test_a_reader_of_some_shards_gets_their_rows_and_all_heartbeats(folder):
    quota = tables(folder)
    reader = quota.usage_reader()
    reader.read(NOW_MS, {4})
    quota.usage.append([cut(1, 2, 3)], {2: 4, 3: 5})

    assert [(7, 1, 0), (7, 1, 2)] == said(reader.read(NOW_MS, {4}))
    widened = reader.read(NOW_MS, {4, 5})
    assert (True, [(7, 1, 0), (7, 1, 2), (7, 1, 3)]) == (widened.whole, said(widened))
    assert (False, []) == ((again := reader.read(NOW_MS, {5})).whole, said(again))


def test_a_table_that_cannot_be_read_loses_no_row(folder):
    quota = tables(folder)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 2)], SHARDS)
    (broken,) = (path for path in (folder / "rg_usage").rglob("*.parquet") if "shard=0" in str(path))
    content = broken.read_bytes()
    broken.write_bytes(b"PAR1" + bytes(20))

    with pytest.raises(TableError, match="rg_usage cannot be read"):
        reader.read(NOW_MS)
    broken.write_bytes(content)
    assert [(7, 1, 0), (7, 1, 2)] == said(reader.read(NOW_MS))


def test_a_table_that_is_away_for_a_while_loses_no_row(folder):
    quota = tables(folder)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 2)], SHARDS)
    away = (folder / "rg_usage").rename(folder / "away")

    with pytest.raises(TableError, match="rg_usage cannot be read"):
        reader.read(NOW_MS)
    with pytest.raises(TableError, match="rg_usage cannot be"):
        quota.usage.append([cut(2, 2)], SHARDS)
    away.rename(folder / "rg_usage")
    assert quota.usage.append([cut(2, 2)], SHARDS)
    assert [(7, 1, 0), (7, 1, 2), (7, 2, 0), (7, 2, 2)] == said(reader.read(NOW_MS))


def test_an_append_that_fails_is_made_good_with_the_same_cut(folder):
    quota = tables(folder)
    log = folder / "rg_usage" / "_delta_log"
    aside = log.rename(folder / "aside")
    log.write_text("no folder")

    with pytest.raises(TableError, match="rg_usage cannot be"):
        quota.usage.append([cut(1, 2)], SHARDS)
    log.unlink()
    aside.rename(log)
    assert quota.usage.append([cut(1, 2)], SHARDS)
    assert [(7, 1, 0), (7, 1, 2)] == said(quota.usage_reader().read(NOW_MS))


def test_rows_of_other_engines_are_read_with_their_types(folder):
    """As Spark may write them: other encodings, timestamps of 96 bits, every column nullable."""
    quota = tables(folder)
    reader = quota.usage_reader(version=0)
    quota.usage.append([cut(1, 2)], SHARDS)
    for path in (folder / "rg_usage").rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(path).read(), path, use_deprecated_int96_timestamps=True, compression="snappy")
    write_deltalake(f"{folder}/rg_usage", usage_table([cut(2, 3)], SHARDS, 1000), mode="append")

    read = reader.read(NOW_MS)
    assert [(7, 1, 0), (7, 1, 2), (7, 2, 0), (7, 2, 3)] == sorted(said(read))
    assert {NOW_MS} == {row.publish_time_ms for row in usage_rows(read.rows)}
    assert RG_USAGE.schema.types == read.rows.schema.types


def test_other_engines_read_the_files(folder):
    quota = tables(folder)
    quota.usage.append([cut(1, *range(1, 50))], SHARDS)

    paths = [str(path) for path in (folder / "rg_usage").rglob("*.parquet")]
    found = duckdb.read_parquet(paths).aggregate("count(*), sum(admitted_msgs), count(limit_msgs), max(weight)")
    assert [(50, 490, 0, 2)] == found.fetchall()


def test_of_writers_at_once_no_cut_is_lost_and_none_is_there_twice(folder):
    reader = tables(folder).usage_reader(version=0)

    def write(broker):
        quota = tables(folder)
        return [quota.usage.append([cut(seq, broker=broker)], SHARDS) for seq in range(1, 6)]

    with ThreadPoolExecutor(4) as pool:
        assert [[True] * 5] * 4 == list(pool.map(write, range(4)))
    assert sorted((broker, seq, 0) for broker in range(4) for seq in range(1, 6)) == sorted(said(reader.read(NOW_MS)))


STEPS = st.lists(
    st.sampled_from(["one", "two", "again", "read", "compact", "reopen", "checkpoint"]), min_size=1, max_size=14
)


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_whatever_happens_between_the_map_is_that_of_all_cuts(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("steps")
    quota = tables(folder)
    reader = quota.usage_reader()
    seqs, sent = {1: 0, 2: 0}, []
    by_reader, by_sender = (UsageMap(SETTINGS.map_parameters()) for _ in range(2))
    for usage_map in (by_reader, by_sender):
        usage_map.set_members({1: Member(5), 2: Member(5)}, NOW_MS)

    def take(read):
        for row in usage_rows(read.rows):
            by_reader.receive(row, NOW_MS)

    for step in [*steps, "read"]:
        if step in {"one", "two"}:
            broker = 1 if step == "one" else 2
            seqs[broker] += 1
            sent.append(cut(seqs[broker], broker, 3, broker=broker, incarnation=5))
            quota.usage.append(sent[-1:], SHARDS)
        elif step == "again":
            assert not sent or not quota.usage.append(sent[-1:], SHARDS)
        elif step == "read":
            take(reader.read(NOW_MS))
        elif step == "compact":
            quota.upkeep_of_usage().run(NOW_MS + 2 * 3_600_000)
        elif step == "checkpoint":
            DeltaTable(f"{folder}/rg_usage").create_checkpoint()
        else:
            reader = quota.usage_reader(reader.version)
    for one in sent:
        for row in usage_rows(usage_table([one], SHARDS, 1000)):
            by_sender.receive(row, NOW_MS)
    assert by_sender.entries() == by_reader.entries()
    assert {} == by_reader.dropped
