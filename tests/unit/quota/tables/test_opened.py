"""The tables of resource groups: created once, as the page has them, and refused where they are another job's."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.tables.opened import Locations
from headgate.quota.tables.schemas import SPECS, TIMESTAMP
from headgate.tables.query import LOG_MINUTES
from stub_store import refusing
from unit.quota.places import tables

PAGE = Path(__file__).parents[4] / "docs" / "resource-groups.md"
TYPES = {
    "int": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}
COLUMN = re.compile(rf"^\| ([a-z_]+) \| ({'|'.join(TYPES)})( null)? \|[^|]*\|[^|]*\|$", re.MULTILINE)


def test_every_table_is_there_from_the_start_with_its_columns_partitions_and_epoch_length(tmp_path):
    tables(tmp_path, epoch_ms=250)

    for spec in SPECS:
        table = DeltaTable(f"{tmp_path}/{spec.name}")
        assert spec.schema == pa.schema(table.schema().to_arrow())
        assert list(spec.partition_by) == table.metadata().partition_columns
        assert "250" == table.metadata().configuration["headgate.epochMillis"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_page_has_every_column_with_its_type_and_no_other(spec):
    section = PAGE.read_text().partition(f"### {spec.name}\n")[2].partition("\n### ")[0]
    documented = [(name, TYPES[word], bool(null)) for name, word, null in COLUMN.findall(section)]

    assert [(column.name, column.type, column.nullable) for column in spec.schema] == documented


def test_a_job_with_another_epoch_length_is_refused_and_told_what_to_do(tmp_path):
    tables(tmp_path, epoch_ms=1000)

    with pytest.raises(TableError) as refused:
        tables(tmp_path, epoch_ms=500)
    assert str(refused.value) == (
        f"the table {tmp_path}/rg_groups has the table property headgate.epochMillis = 1000; allowed: 500, as of "
        "resourceGroupEpochMillis = 500; set resourceGroupEpochMillis=1000, or give new tables"
    )


def test_a_table_that_does_not_say_its_epoch_length_is_refused(tmp_path):
    DeltaTable.create(f"{tmp_path}/rg_groups", schema=SPECS[0].schema)

    with pytest.raises(TableError, match=r"no table property; allowed: 1000.*set headgate\.epochMillis"):
        tables(tmp_path)


def test_a_table_with_other_columns_is_refused(tmp_path):
    write_deltalake(f"{tmp_path}/rg_members", pa.table({"broker_id": [1]}))

    with pytest.raises(TableError, match=r"rg_members has the columns broker_id .*which are not those of rg_members"):
        tables(tmp_path)


def test_a_place_where_no_table_can_be_is_refused(tmp_path):
    (tmp_path / "rg_groups").write_text("a file")

    with pytest.raises(TableError, match="rg_groups cannot be"):
        tables(tmp_path)


@pytest.mark.parametrize(
    ("code", "only", "words"),
    [
        ("AccessDenied", "PUT", "cannot be created: .*; grant these credentials the right to write there$"),
        (
            "SignatureDoesNotMatch",
            "",
            "cannot be opened: .*; check the address, the store's endpoint and",
        ),
    ],
)
def test_where_the_store_refuses_a_table_no_new_place_is_advised(code, only, words, monkeypatch):
    with refusing(monkeypatch, 403, code, only), pytest.raises(TableError, match=words):
        tables("s3a://b/o")


def test_jobs_that_start_together_open_the_same_tables(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: tables(tmp_path), range(4)))

    assert [0] * 5 == [DeltaTable(f"{tmp_path}/{spec.name}").version() for spec in SPECS]


def test_tables_are_under_the_output_unless_settings_place_them():
    settings = QuotaSettings(usage_table="s3://bucket/usage", member_table="elsewhere")

    assert Locations("out/rg_groups", "out/rg_attachments", "elsewhere", "s3://bucket/usage", "out/rg_limits") == (
        Locations.of("out", settings)
    )


def test_logs_with_an_entry_a_batch_are_short_and_those_of_configuration_reach_back(tmp_path):
    tables(tmp_path)

    kept = {
        spec.name: DeltaTable(f"{tmp_path}/{spec.name}").metadata().configuration.get("delta.logRetentionDuration")
        for spec in SPECS
    }
    short = {name for name, duration in kept.items() if duration == f"interval {LOG_MINUTES} minutes"}
    assert {"rg_usage", "rg_limits"} == short
    assert {None} == {duration for name, duration in kept.items() if name not in short}
