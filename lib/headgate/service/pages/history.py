"""What changed in the configuration of groups, and when: rows of rg_groups and rg_attachments, newest first."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.errors import TableError
from headgate.quota.tables.delta import BY
from headgate.service.pages.read import Read
from headgate.store_errors import said
from headgate.stores import content_of, file_system_of
from headgate.tables.query import text

MOST, MOST_COMMITS = 100, 300
_RATES = ("publish_msgs", "publish_bytes", "dispatch_msgs", "dispatch_bytes")
_WORDS = {
    "publish_msgs": "publish messages/s",
    "publish_bytes": "publish bytes/s",
    "dispatch_msgs": "dispatch messages/s",
    "dispatch_bytes": "dispatch bytes/s",
}


class Commit(NamedTuple):
    """The first and the last version of its rows, when it was written, and by whom, if it says so."""

    first: int
    last: int
    at_us: int | None
    by: str | None


@dataclass(frozen=True)
class ConfigChange:
    """at_us: when the row was written; by: who wrote it; None where the log does not say so. what: in words."""

    version: int
    at_us: int | None
    by: str | None
    group: str
    what: str


def history(read: Read, group: str | None = None) -> tuple[ConfigChange, ...]:
    """The newest MOST changes, of one group or all. Raises TableError."""
    of_group = "true" if group is None else f"name = {text(group)}"
    columns = ", ".join(_RATES)
    rows = read.rows(
        "rg_groups",
        f"SELECT version, name, deleted, {columns}, lag(deleted) OVER w AS was_deleted, "  # noqa: S608  our own names
        + ", ".join(f"lag({rate}) OVER w AS was_{rate}" for rate in _RATES)
        + f" FROM rg_groups WHERE {of_group} WINDOW w AS (PARTITION BY group_id ORDER BY version) "
        f"ORDER BY version DESC LIMIT {MOST}",
    )
    commits = _commits(read, "rg_groups")
    changes = [_change(commits, row["version"], row["name"], _rates_changed(row)) for row in rows]
    if read.has("rg_attachments"):
        of_group = "true" if group is None else f"group_name = {text(group)}"
        rows = read.rows(
            "rg_attachments",
            f"SELECT version, scope, resource, group_name FROM rg_attachments WHERE {of_group} "  # noqa: S608
            f"ORDER BY version DESC LIMIT {MOST}",
        )
        commits = _commits(read, "rg_attachments")
        changes += [_change(commits, row["version"], row["group_name"] or "", _attached(row)) for row in rows]
    return tuple(sorted(changes, key=lambda one: (-one.version, one.group, one.what))[:MOST])


def _change(commits: list[Commit], version: int, group: str, what: str) -> ConfigChange:
    written = next((one for one in commits if one.first <= version <= one.last), None)
    return ConfigChange(version, written and written.at_us, written and written.by, group, what)


def _rates_changed(row: dict[str, Any]) -> str:
    if row["deleted"]:
        return "deleted"
    is_new = row["was_deleted"] is None
    changed = [rate for rate in _RATES if row[rate] != row[f"was_{rate}"]]
    said = [
        f"{_WORDS[rate]} {_said(row[rate])}"
        if is_new
        else f"{_WORDS[rate]} {_said(row[f'was_{rate}'])} → {_said(row[rate])}"
        for rate in changed
    ]
    return f"{'created' if is_new else 'changed'}: {', '.join(said) or 'no publish or dispatch rate'}"


def _said(rate: int | None) -> str:
    return "not limited" if rate is None else f"{rate:,}"


def _attached(row: dict[str, Any]) -> str:
    place = f"{row['scope']} {row['resource']}"
    return f"detached from {place}" if row["group_name"] is None else f"attached to {place}"


def _commits(read: Read, name: str) -> list[Commit]:
    """The newest commits of rows, from the log itself: entries of it that are gone are left out."""
    found = []
    for part in read.look.parts.get(name, ()):
        files, root = file_system_of(part.table.table_uri)
        newest = part.table.version()
        for number in range(newest, max(-1, newest - MOST_COMMITS), -1):
            try:
                content = content_of(files, f"{root}/_delta_log/{number:020d}.json")
                found += _commit([json.loads(line) for line in content.splitlines() if line])
            except FileNotFoundError:
                break
            except (OSError, ValueError) as error:
                raise TableError(f"the log of the table {part.location} cannot be read: {said(error)}") from error
    return found


def _commit(actions: list[dict[str, Any]]) -> list[Commit]:
    """None for one without rows."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    stats = [json.loads(action["add"].get("stats") or "{}") for action in actions if "add" in action]
    return [
        Commit(one["minValues"]["version"], one["maxValues"]["version"], _us(info.get("timestamp")), info.get(BY))
        for one in stats
        if "version" in one.get("minValues", {})
    ]


def _us(time_ms: int | None) -> int | None:
    return None if time_ms is None else time_ms * 1000
