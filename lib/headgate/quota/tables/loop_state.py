"""The state of a quota loop as a Delta table: the newest one alone, by query and batch."""

import json
import zlib
from typing import Any

from deltalake import CommitProperties, Transaction, write_deltalake

from headgate.arrow.schemas import table_of
from headgate.core.state import PlainData
from headgate.errors import StateError
from headgate.quota.tables.delta import Table, told
from headgate.quota.tables.schemas import STATE
from headgate.tables.query import after_commit

SAVES_BETWEEN_VACUUMS = 100
_LEVEL = 1  # the state is written with every batch: speed before size


class LoopStateStore:
    """Holds exactly the state that was saved last; saving is atomic, and of one batch done once.

    One writer. Raises TableError where the table cannot be read or written.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._saves = 0

    def load(self) -> PlainData | None:
        """The state saved last, None before the first. Raises StateError where it cannot be read back."""
        self._table.refresh()
        rows = self._table.select().to_pylist()
        if not rows:
            return None
        try:
            state: Any = json.loads(zlib.decompress(rows[0]["state"]))
        except (zlib.error, ValueError) as error:
            raise StateError(
                f"the state in {self._table.location} cannot be read ({error}); remove the table: brokers begin anew"
            ) from error
        return dict(state)

    def has(self, query_id: str, batch_id: int) -> bool:
        """Whether the state of this batch of the query, or of a later one, was saved: it is measured already then."""
        self._table.refresh()
        return self._table.has(query_id, batch_id)

    def save(self, state: PlainData, query_id: str, batch_id: int) -> bool:
        """Put `state` in the place of the last one; False, and nothing is done, if this batch was saved before."""
        if self.has(query_id, batch_id):
            return False
        packed = zlib.compress(json.dumps(state, separators=(",", ":")).encode(), _LEVEL)
        properties = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(query_id, batch_id)])
        with told(self._table, "written"):
            write_deltalake(
                self._table.delta,
                table_of([(query_id, batch_id, packed)], STATE),
                mode="overwrite",
                commit_properties=properties,
                post_commithook_properties=after_commit(self._table.delta),
            )
            self._saves += 1
            if self._saves % SAVES_BETWEEN_VACUUMS == 0:
                self._table.refresh()
                self._table.delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
        return True
