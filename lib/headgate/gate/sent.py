"""How far each connection's commands have been sent, in a file that outlives the gate."""

import json
import os
import threading
from pathlib import Path

from headgate.errors import StateError

VERSION = 1


class Sent:
    """A command is sent once: of each connection those up to a `seq` were.

    The numbers are in the file once `save` has returned, which replaces it as a whole. What was sent after the last
    save is sent again after a crash, and nothing is lost; clients know it by its request id.

    Arguments: `path`, None where nothing is kept; `table_id`, of the table whose commands they are.
    Raises StateError for a file of another table, or that is none of headgate's.
    """

    def __init__(self, path: Path | None, table_id: str) -> None:
        self._path = path
        self._table_id = table_id
        self._until: dict[str, tuple[int, int]] = {}
        self._is_saved = True
        self._saving = threading.Lock()
        if path is not None and path.exists():
            self._until = _read(path, table_id)

    def last_seq(self, connection: str) -> int:
        """The highest number that was sent, 0 if none is known."""
        return self._until.get(connection, (0, 0))[0]

    def note(self, connection: str, seq: int, stale_ms: int) -> None:
        """A command was dealt with. stale_ms: from when on nobody would send it again anyway."""
        known = self._until.get(connection, (0, 0))
        self._until[connection] = (max(known[0], seq), max(known[1], stale_ms))
        self._is_saved = False

    def forget(self, now_ms: int, connections: set[str]) -> None:
        """Drop what would change nothing any more, of those that are not among these connections."""
        kept = {name: until for name, until in self._until.items() if name in connections or until[1] > now_ms}
        self._is_saved = self._is_saved and len(kept) == len(self._until)
        self._until = kept

    def written(self) -> str | None:
        """What is to be saved, None where nothing is."""
        if self._path is None or self._is_saved:
            return None
        return json.dumps({"version": VERSION, "table": self._table_id, "sent": self._until}, separators=(",", ":"))

    def save(self, written: str) -> None:
        """Put what `written` gave into the file. Raises StateError where it cannot be."""
        assert self._path is not None  # noqa: S101  written gave something
        unfinished = self._path.with_name(f"{self._path.name}.unfinished")
        try:
            with self._saving, unfinished.open("w", encoding="utf-8") as file:
                file.write(written)
                file.flush()
                os.fsync(file.fileno())
                unfinished.replace(self._path)
        except OSError as error:
            raise StateError(
                f"--state: {self._path} cannot be written: {error.strerror}; see to it that it can, and restart"
            ) from error

    def saved(self) -> None:
        """All that was noted is in the file, or will be with the next `save`."""
        self._is_saved = True


def _read(path: Path, table_id: str) -> dict[str, tuple[int, int]]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        version, table = kept["version"], kept["table"]
        sent = {str(name): (int(seq), int(until)) for name, (seq, until) in kept["sent"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"--state: {path} is no file of a gate: {error}; give another one, or remove it") from error
    if version != VERSION or table != table_id:
        raise StateError(
            f"--state: {path} is of another table, or of another headgate (version {version}, this one is {VERSION}); "
            "give the one of this table, or a new one"
        )
    return sent
