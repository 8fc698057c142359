"""A row of a large cut costs at most 15 bytes (resource-groups 13)."""

import random

import pyarrow.parquet as pq
import pytest

from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.errors import TableError
from headgate.quota.tables.delta import opened
from headgate.quota.tables.hourly_files import read_file
from headgate.quota.tables.schemas import RG_USAGE
from headgate.quota.tables.usage_rows import Sender, SentReport
from random_usage import usage
from unit.quota.places import EPOCH, NOW_MS, tables

GROUPS = 5000
ALL_GROUPS = 100_000
BYTES_A_ROW = 15


def large_cut():
    chance = random.Random(7)
    groups = sorted(chance.sample(range(1, ALL_GROUPS + 1), GROUPS))
    rows = tuple(ReportRow(group, 0, usage(chance), ReportReason.CHANGE) for group in groups)
    topics = {(group, 0): chance.randrange(1, 20) for group in groups}
    return SentReport(
        Sender(7, 1_700_000_000_000), UsageReport(9, EPOCH, ReportKind.PERIODIC, True, 0, 3, rows), NOW_MS, topics
    )


def test_a_row_of_a_large_cut_costs_at_most_15_bytes(tmp_path):
    tables(tmp_path).usage.append([large_cut()], dict.fromkeys(range(1, ALL_GROUPS + 1), 3))

    (path,) = (tmp_path / "rg_usage").rglob("shard=3/*.parquet")
    assert path.stat().st_size <= BYTES_A_ROW * GROUPS


def test_columns_are_delta_encoded_and_compressed_with_zstd(tmp_path):
    tables(tmp_path).usage.append([large_cut()], dict.fromkeys(range(1, ALL_GROUPS + 1), 3))

    (path,) = (tmp_path / "rg_usage").rglob("shard=3/*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in columns["group_id"].encodings
    assert {"ZSTD"} == {column.compression for column in columns.values()}
    assert not {"hour", "shard"} & columns.keys()


class Refusing:
    """A file system that lets nobody open a file."""

    def __init__(self, error):
        self.error = error

    def open_input_file(self, path):
        raise self.error(path)


@pytest.mark.parametrize(
    ("error", "raised"), [(PermissionError, TableError), (TimeoutError, TableError), (FileNotFoundError,) * 2]
)
def test_a_file_that_cannot_be_opened_is_an_error_of_its_table_and_one_that_is_gone_is_not(tmp_path, error, raised):
    tables(tmp_path)
    table = opened(f"{tmp_path}/rg_usage", RG_USAGE, None)
    table.files = Refusing(error)

    with pytest.raises(raised, match="hour=1"):
        read_file(table, "hour=1/shard=0/cut.parquet", {"hour": "1", "shard": "0"})
