"""rg_limits holds for every limit that changed what explains it."""

from deltalake import DeltaTable

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.quota.tables.delta import opened
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.schemas import RG_LIMITS
from unit.quota.places import EPOCH, HOUR, tables

OUTCOME = CellLimit(0, 5, 3, None, 1, 2, 9, Reason.GATED)


def rows(folder):
    return opened(f"{folder}/rg_limits", RG_LIMITS, None).select().to_pylist()


def test_a_limit_is_there_with_its_reasons_null_and_0_apart(tmp_path):
    limits = tables(tmp_path).limits

    assert limits.append([LimitRow(EPOCH, 7, 3, 1, 0, OUTCOME)])
    expected = [HOUR, EPOCH, 7, 3, 1, 0, 0, 5, 3, None, 1, 2, 9, "gated"]
    assert [dict(zip(RG_LIMITS.schema.names, expected, strict=True))] == rows(tmp_path)
    assert {"hour": str(HOUR)} == DeltaTable(f"{tmp_path}/rg_limits").partitions()[0]


def test_an_append_of_the_same_transaction_is_done_once(tmp_path):
    limits = tables(tmp_path).limits
    row = LimitRow(EPOCH, 7, 3, 1, 0, OUTCOME)

    assert [True, False, True, False, True] == [
        limits.append([row], ("job", 1)),
        limits.append([row], ("job", 1)),
        limits.append([row], ("job", 2)),
        limits.append([], ("job", 3)),
        limits.append([row]),
    ]
    assert 3 == len(rows(tmp_path))
