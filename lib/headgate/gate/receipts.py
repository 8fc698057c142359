"""Receipts as rows of the protocol job's input, so that its machines hear of them."""

import threading
import uuid
from collections.abc import Callable

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from headgate.errors import TableError
from headgate.protocol.schemas import INPUTS
from headgate.store_errors import remedy, said
from headgate.tables.delta import FOLLOWED
from headgate.tables.query import LOG_RETENTION, Followed, after_commit, has_transaction
from headgate.tables.upkeep import is_due, keep_up, tidying

MOST_WAITING = 100_000
RETRIES = 50
_WRITTEN = ("event_id", "kind", "at_ms", "connection", "request_id")


class ReceiptLog:
    """Receipts are appended to a Delta table in the order in which they were read, each once.

    While the table cannot be written up to MOST_WAITING wait in memory besides those of the commit that failed; after
    that the oldest go, for which a broker that waits turns reads off: that is what its deadline is for. A table that is
    not there is created, and kept up as those of jobs are: a job that follows it may stand still for as long as one
    that follows `marks`.

    Arguments: `say`, hears when it cannot be written and when it can again.
    Raises TableError if no table can be there.
    """

    def __init__(self, location: str, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[tuple[str, int, int]] = []
        self._taken: list[tuple[str, int, int]] = []
        self._application, self._commits = f"headgate-receipts-{uuid.uuid4().hex}", 0
        self._is_failing = False
        self.dropped = 0
        try:
            table = DeltaTable.create(location, schema=INPUTS, mode="ignore", configuration=FOLLOWED)
            self._table = Followed(table)
        except (DeltaError, OSError) as error:
            raise TableError(
                f"--receipts: the table {location} cannot be opened: {said(error)}; give the --input of "
                "a job jobs/protocol.py, or a new folder"
            ) from error
        self._columns = _columns(location, pa.schema(table.schema().to_arrow()))
        self._location = location
        self._kept_up = table.version()
        self._is_own = table.metadata().configuration.get(LOG_RETENTION) == FOLLOWED[LOG_RETENTION]

    def add(self, connection: str, request_id: int, read_ms: int) -> None:
        """A receipt was read."""
        with self._lock:
            self._waiting.append((connection, request_id, read_ms))
            too_many = len(self._waiting) - MOST_WAITING
            if too_many > 0:
                del self._waiting[:too_many]
                self.dropped += too_many

    def flush(self) -> None:
        """Append what waits: first the commit that failed, if one has, then the rest in one. What cannot be written
        waits on.
        """
        with self._writing:
            if self._taken and not self._append_taken():
                return
            with self._lock:
                self._taken, self._waiting = self._waiting, []
            if self._taken:
                self._commits += 1
                self._append_taken()

    def _append_taken(self) -> bool:
        """Append what is taken; False: not now. A commit that failed may be in the table all the same, so it keeps its
        number.
        """
        rows = [
            {
                "event_id": f"receipt {read_ms:020} {place:06}",
                "kind": "receipt",
                "at_ms": read_ms,
                "connection": connection,
                "request_id": request_id,
            }
            for place, (connection, request_id, read_ms) in enumerate(self._taken)
        ]
        try:
            table = self._table.refresh()
            if not has_transaction(table, self._application, self._commits):
                once = [Transaction(self._application, self._commits)]
                write_deltalake(
                    table,
                    pa.Table.from_pylist(rows, INPUTS).select(self._columns),
                    mode="append",
                    schema_mode="merge",
                    commit_properties=CommitProperties(app_transactions=once, max_commit_retries=RETRIES),
                    post_commithook_properties=after_commit(table),
                )
        except (DeltaError, OSError) as error:
            otherwise = "see to it that the table can be written; what waits is written then"
            self._tell(
                f"receipts cannot be written to {self._location}: {said(error)}; {remedy(error, otherwise)}",
                is_failing=True,
            )
            return False
        self._taken = []
        self._tell("receipts are written again", is_failing=False)
        return True

    def end(self) -> None:
        """Append what waits, for the last time, and tell what was lost."""
        self.flush()
        if self._taken:
            self.flush()  # a commit that failed may be in the table all the same
        with self._lock:
            lost = self.dropped + len(self._taken) + len(self._waiting)
        if lost:
            self._say(f"receipts that were not written: {lost:,}; a broker that waits for one turns reads off")

    def keep_up(self) -> None:
        """Join small files of a table of its own, and delete replaced ones, if it is time. No receipt waits for it."""
        version = self._table.table.version()
        if self._is_own and is_due(version, self._kept_up):  # keep_up asks again, of a table that has to be opened
            with tidying(self._location):
                keep_up(DeltaTable(self._location), self._kept_up, in_order=True)
            self._kept_up = version

    def _tell(self, text: str, *, is_failing: bool) -> None:
        if self._is_failing != is_failing:
            self._say(text)
        self._is_failing = is_failing


def _columns(location: str, table: pa.Schema) -> list[str]:
    """Columns of INPUTS that the table has. Raises TableError where it cannot take a receipt."""
    wrong = [name for name in _WRITTEN if name not in table.names or table.field(name).type != INPUTS.field(name).type]
    if wrong:
        needed = ", ".join(f"{name} {INPUTS.field(name).type}" for name in wrong)
        raise TableError(
            f"--receipts: the table {location} cannot take receipts: got columns {', '.join(table.names)}, needed"
            f" {needed}; give the --input of jobs/protocol.py, or a new folder"
        )
    return [name for name in table.names if name in INPUTS.names]
