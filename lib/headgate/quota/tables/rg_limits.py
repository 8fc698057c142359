"""rg_limits: a row for each change of a limit that matters, with everything that explains it (resource-groups 5.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import Transaction

from headgate.arrow.schemas import table_of
from headgate.core.quota.evaluation.step_parameters import CellLimit
from headgate.errors import TableError
from headgate.quota.tables.delta import COMMIT_RETRIES, Table
from headgate.quota.tables.schemas import LIMITS
from headgate.quota.tables.usage_rows import hour_of


@dataclass(frozen=True, slots=True)
class LimitRow:
    """The limit of one broker in one cell from this epoch on, and why."""

    epoch: int
    broker_id: int
    group_id: int
    traffic_class: int
    dimension: int
    outcome: CellLimit


class LimitWriter:
    """Appends limits; with a transaction once, however often it is tried."""

    def __init__(self, table: Table, epoch_ms: int) -> None:
        self._table = table
        self._epoch_ms = epoch_ms

    def append(self, rows: Sequence[LimitRow], transaction: tuple[str, int] | None = None) -> bool:
        """Append rows; False, and nothing is done, without any or if they are there.

        transaction: an application id, and a version that grows with each append. Raises TableError if that fails.
        """
        if not rows:
            return False
        self._table.refresh()
        if transaction is not None and self._table.has(*transaction):
            return False
        transactions = [] if transaction is None else [Transaction(*transaction)]
        if not self._table.append_pinned(limit_table(rows, self._epoch_ms), transactions, retries=COMMIT_RETRIES):
            raise TableError(
                f"the table {self._table.location} cannot be written: others always came before; try again"
            )
        return True


def limit_table(rows: Sequence[LimitRow], epoch_ms: int) -> pa.Table:
    """As rows of rg_limits."""
    flat = [
        (
            hour_of(row.epoch, epoch_ms),
            *(row.epoch, row.broker_id, row.group_id, row.traffic_class, row.dimension),
            *(row.outcome.limit, row.outcome.target, row.outcome.safe_share, row.outcome.demand),
            *(row.outcome.missing, row.outcome.silent, row.outcome.report_age, str(row.outcome.reason)),
        )
        for row in rows
    ]
    return table_of(flat, LIMITS)
