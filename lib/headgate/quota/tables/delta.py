"""One Delta table through delta-rs: opened or created, read, and its log looked at commit by commit."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from headgate.errors import TableError
from headgate.quota.tables.schemas import EPOCH_PROPERTY, TableSpec
from headgate.store_errors import remedy, said, unreadable
from headgate.stores import PATIENT, Patience, content_of, file_system_of
from headgate.tables.query import CHECKPOINTS, Followed, after_commit, has_transaction, newest, query

BY = "headgate.by"
"""Key of a commit's metadata: who wants the change."""
COMMIT_RETRIES = 50
_CREATE_ATTEMPTS = 5
_LOG = "_delta_log"
_WRITER = WriterProperties(compression="ZSTD")


@dataclass(frozen=True)
class AddedFile:
    """A file of new rows, by its path below the table, and the values of its partition as the log writes them."""

    path: str
    partition: Mapping[str, str | None]


class Table:
    """A table at one place. `delta` is its state as of the last `refresh`, whatever was written since; for one thread.

    patience: for a store. Every method raises TableError where the table cannot be read or written.
    """

    def __init__(self, location: str, spec: TableSpec, delta: DeltaTable, patience: Patience | None = None) -> None:
        self.location = location
        self.spec = spec
        self.patience = patience
        self._options = patience and patience.of_delta
        self.metadata: dict[str, str] = {}
        """What commits of rows say besides, such as BY."""
        self._followed = Followed(delta, patience)
        self.files, self.root = file_system_of(delta.table_uri, patience or PATIENT)

    @property
    def delta(self) -> DeltaTable:
        """The table as of the last `refresh`."""
        return self._followed.table

    @property
    def version(self) -> int:
        """The version of `delta`."""
        version: int = self.delta.version()
        return version

    def as_of(self, version: int) -> "Table":
        """The table at the same place as it was at a version. Raises DeltaError and OSError."""
        delta = DeltaTable(self.location, version=version, storage_options=self._options)
        return Table(self.location, self.spec, delta, self.patience)

    def refresh(self) -> int:
        """Take in what others wrote, and return the version."""
        with told(self, "read"):
            self._check_log()
            self._followed.refresh()
        return self.version

    def transaction_version(self, application: str) -> int | None:
        """The version of the last transaction of an application that is in the table, as of the last `refresh`."""
        version: int | None = self.delta.transaction_version(application)
        return version

    def has(self, application: str, version: int) -> bool:
        """Whether that transaction is in the table, or a later one of its application, as of the last `refresh`."""
        return has_transaction(self.delta, application, version)

    def select(self, where: str = "") -> pa.Table:
        """The rows as of the last `refresh`, in any order. where: a condition in SQL."""
        return self._rows(f"SELECT {self._columns} FROM t" + (f" WHERE {where}" if where else ""))  # noqa: S608  our names

    def _rows(self, sql: str) -> pa.Table:
        try:
            rows = query(sql, {"t": self.delta})
        except Exception as error:  # query raises no other
            raise _failure(self, "read", error) from error
        return rows.cast(nullable(self.spec.schema))

    def newest(self, where: str, keys: Sequence[str], order: str) -> pa.Table:
        """As `select`, of the rows with equal `keys` the first in this order alone; both are expressions of SQL."""
        return self._rows(newest(self._columns, keys, order, where))

    @property
    def _columns(self) -> str:
        return ", ".join(f'"{name}"' for name in self.spec.schema.names)

    def added_since(self, version: int) -> list[AddedFile] | None:
        """Files with rows that are new in the commits after `version`, in the order of the commits.

        Files that a compaction put in the place of others hold no new rows. None where a commit is gone from the log.
        """
        added: list[AddedFile] = []
        for number in range(version + 1, self.version + 1):
            commit = self._commit(number)
            if commit is None:
                return None
            added += [
                AddedFile(unquote(action["path"]), action["partitionValues"])
                for action in commit
                if action.get("dataChange", True)
            ]
        return added

    def commit_pinned(
        self, actions: Sequence[Any], transactions: Sequence[Transaction] = (), *, retries: int = 0
    ) -> bool:
        """Commit file actions; False, and nothing is done, if the table is not as it was at the last `refresh`.

        retries: how many commits of others may come between, as long as they concern other rows.
        """

        def commit(properties: CommitProperties) -> None:
            partitions = list(self.spec.partition_by)
            self.delta.create_write_transaction(
                list(actions),
                "append",
                self.spec.schema,
                partitions,
                commit_properties=properties,
                post_commithook_properties=after_commit(self.delta),
            )

        return self._pinned(commit, transactions, retries)

    def append_pinned(self, rows: pa.Table, transactions: Sequence[Transaction] = (), *, retries: int = 0) -> bool:
        """Append rows as `commit_pinned` commits files."""

        def append(properties: CommitProperties) -> None:
            write_deltalake(
                self.delta,
                rows.cast(self.spec.schema),
                mode="append",
                commit_properties=properties,
                post_commithook_properties=after_commit(self.delta),
                writer_properties=_WRITER,
            )

        return self._pinned(append, transactions, retries)

    def _pinned(
        self, write: Callable[[CommitProperties], None], transactions: Sequence[Transaction], retries: int
    ) -> bool:
        properties = CommitProperties(
            custom_metadata=self.metadata or None,
            max_commit_retries=retries,
            app_transactions=list(transactions) or None,
        )
        with told(self, "written"):
            try:
                write(properties)
            except CommitFailedError:
                if not self.moved():
                    raise
                return False
        return True

    def moved(self) -> bool:
        """Whether somebody wrote since the last `refresh`."""
        with told(self, "read"):
            newest: int = DeltaTable(self.location, storage_options=self._options).version()
        return newest != self.version

    def path(self, relative: str) -> str:
        """Where a file of the table is, for its file system."""
        return f"{self.root}/{relative}"

    def content(self, path: str) -> bytes:
        """What the file at a `path` holds. Raises FileNotFoundError, OSError."""
        return content_of(self.files, path, self.patience or PATIENT)

    def _check_log(self) -> None:
        """Raise OSError if the log cannot be read: delta-rs then takes the table for unchanged."""
        try:
            self.files.open_input_stream(self._commit_path(self.version)).close()
        except FileNotFoundError:
            log = self.files.get_file_info(self.path(_LOG))
            if log.type is not pafs.FileType.Directory:
                raise

    def _commit_path(self, number: int) -> str:
        return self.path(f"{_LOG}/{number:020d}.json")

    def _commit(self, number: int) -> list[dict[str, Any]] | None:
        try:
            lines = self.content(self._commit_path(number)).decode().splitlines()
            actions = [json.loads(line) for line in lines if line]
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _failure(self, "read", error) from error
        return [action["add"] for action in actions if "add" in action]


def opened(location: str, spec: TableSpec, epoch_ms: int | None, patience: Patience | None = None) -> Table:
    """The table at `location`, which is created where there is none.

    epoch_ms: T, which the table must have been created with; None: whatever it is, and nothing is created. patience: as
    `Table` has it.
    Raises TableError for another T, other columns, and where no table can be. Source: resource-groups 5.
    """
    table = Table(location, spec, _opened(location, spec, epoch_ms, patience), patience)
    _check_columns(table)
    if epoch_ms is not None:
        _check_epoch(table, epoch_ms)
    return table


def nullable(schema: pa.Schema) -> pa.Schema:
    """`schema`, whose columns may hold null: whatever an engine wrote can be read."""
    return pa.schema([pa.field(column.name, column.type) for column in schema])


def wrong_row(table: str, of: str, version: int, wrong: Sequence[str]) -> str:
    """What is said of a row that people wrote wrongly. wrong: each value, and what is allowed."""
    return (
        f"{table} has a row for {of} (version {version}) with {'; '.join(wrong)}; delete the row "
        '("Rows that people wrote" in docs/resource-groups.md)'
    )


@contextmanager
def told(table: Table, done: str, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what fails inside into a TableError. done: what the table cannot be, "read" or "written". but: stays so."""
    try:
        yield
    except but:
        raise
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise _failure(table, done, error) from error


def _failure(table: Table, done: str, error: Exception) -> TableError:
    return _refusal(
        table.location, done, error, remedy(error, "see to it that the table is there and can be read and written")
    )


def _refusal(location: str, done: str, error: Exception, remedy: str) -> TableError:
    return TableError(f"the table {location} cannot be {done}: {said(error)}; {remedy}")


def _opened(location: str, spec: TableSpec, epoch_ms: int | None, patience: Patience | None) -> DeltaTable:
    options = patience and patience.of_delta
    otherwise = "give a place that can be written: a new one, or that of an earlier run"
    for attempt in range(1, _CREATE_ATTEMPTS + 1):
        try:
            return DeltaTable(location, storage_options=options)
        except TableNotFoundError as error:
            if epoch_ms is None:
                absent = (
                    "start a job that shares quotas with this output once, which creates its tables, "
                    "or correct the path"
                )
                raise _refusal(location, "opened", error, absent) from error
        except (DeltaError, OSError) as error:
            if epoch_ms is None:
                raise unreadable(location, error) from error
            raise _refusal(location, "opened", error, remedy(error, otherwise)) from error
        try:
            return DeltaTable.create(
                location,
                schema=spec.schema,
                partition_by=list(spec.partition_by) or None,
                configuration={EPOCH_PROPERTY: str(epoch_ms), **CHECKPOINTS, **spec.properties},
                raise_if_key_not_exists=False,
                storage_options=options,
                commit_properties=CommitProperties(max_commit_retries=0),  # a second one would be made over the first
            )
        except (DeltaError, OSError) as error:  # somebody else may just have created it
            if attempt == _CREATE_ATTEMPTS:
                raise _refusal(location, "created", error, remedy(error, otherwise)) from error
    raise AssertionError


def _check_columns(table: Table) -> None:
    found = pa.schema(table.delta.schema().to_arrow())
    partitions = tuple(table.delta.metadata().partition_columns)
    if nullable(found) != nullable(table.spec.schema) or partitions != table.spec.partition_by:
        raise TableError(
            f"the table {table.location} has the columns {', '.join(found.names)} (partitions: "
            f"{', '.join(partitions) or 'none'}), which are not those of {table.spec.name}; allowed: "
            f"{', '.join(table.spec.schema.names)} (partitions: {', '.join(table.spec.partition_by) or 'none'}), with "
            "the types of docs/resource-groups.md; give another place, or remove the table"
        )


def _check_epoch(table: Table, epoch_ms: int) -> None:
    stored = table.delta.metadata().configuration.get(EPOCH_PROPERTY)
    if stored != str(epoch_ms):
        got = "no table property" if stored is None else f"the table property {EPOCH_PROPERTY} = {stored}"
        wanted = f"resourceGroupEpochMillis = {epoch_ms}"
        remedy = f"set {EPOCH_PROPERTY}" if stored is None else f"set resourceGroupEpochMillis={stored}"
        raise TableError(
            f"the table {table.location} has {got}; allowed: {epoch_ms}, as of {wanted}; {remedy}, or give new tables"
        )
