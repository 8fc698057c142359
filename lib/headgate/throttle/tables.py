"""The Delta tables under the output folder, written and read without Spark."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from headgate.errors import TableError
from headgate.throttle.schemas import BATCHES, CONTROL, DEAD_LETTERS, MARKS, TOPIC_USAGE

SCHEMAS = {
    "marks": MARKS,
    "topic_usage": TOPIC_USAGE,
    "dead_letters": DEAD_LETTERS,
    "batches": BATCHES,
    "control": CONTROL,
}

CONFIGURATIONS: dict[str, dict[str, str | None]] = {"control": {"delta.appendOnly": "true"}}
"""A stream of a table ends for good where rows of it are changed or deleted."""


class Tables:
    """Tables of one output folder. An append is atomic, and repeated with the same transaction it is done once.

    A transaction is an application id and a version that grows with each append to a table: the id of a streaming query
    and its batch. Tables are created on construction, so that readers find them before the first row.
    """

    def __init__(self, output: str | PurePath) -> None:
        self._tables = {
            name: self._opened(f"{output}/{name}", schema, CONFIGURATIONS.get(name, {}))
            for name, schema in SCHEMAS.items()
        }

    @staticmethod
    def _opened(path: str, schema: pa.Schema, configuration: dict[str, str | None]) -> DeltaTable:
        """Raises TableError if no table can be there, or one with other columns is."""
        remedy = "give an --output that can be written: a new folder, or one of an earlier run"
        try:
            table = DeltaTable.create(path, schema=schema, mode="ignore", configuration=configuration)
        except (DeltaError, OSError) as error:
            raise TableError(f"the table {path} cannot be opened: {str(error).splitlines()[0]}; {remedy}") from error
        found = pa.schema(table.schema().to_arrow())
        if found != schema:
            raise TableError(
                f"the table {path} has the columns {', '.join(found.names)}, which are not those of headgate; {remedy}"
            )
        return table

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool:
        """Append `rows`; False, and nothing is written, if this transaction was there already or there are no rows."""
        if not len(rows):
            return False
        table = self._tables[name]
        table.update_incremental()
        done = table.transaction_version(application)
        if done is not None and done >= version:
            return False
        write_deltalake(
            table,
            rows.cast(SCHEMAS[name]),
            mode="append",
            commit_properties=CommitProperties(
                app_transactions=[Transaction(application, version)], max_commit_retries=50
            ),
        )
        return True

    def append_control(self, rows: list[dict[str, Any]]) -> None:
        """Append rows to `control`; others may append at the same time."""
        if rows:
            write_deltalake(
                self._tables["control"],
                pa.Table.from_pylist(rows, CONTROL),
                mode="append",
                commit_properties=CommitProperties(max_commit_retries=50),
            )

    def read(self, name: str, columns: Iterable[str] | None = None) -> pa.Table:
        """The table as it is now."""
        table = self._tables[name]
        table.update_incremental()
        return table.to_pyarrow_table(columns=None if columns is None else list(columns))

    def is_empty(self, name: str) -> bool:
        table = self._tables[name]
        table.update_incremental()
        return not table.file_uris()
