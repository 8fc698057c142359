"""What changed in the configuration of groups, and when: rows of rg_groups and rg_attachments, newest first."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.service.pages.read import Read, text

MOST = 100
_RATES = ("publish_msgs", "publish_bytes", "dispatch_msgs", "dispatch_bytes")
_WORDS = {
    "publish_msgs": "publish messages/s",
    "publish_bytes": "publish bytes/s",
    "dispatch_msgs": "dispatch messages/s",
    "dispatch_bytes": "dispatch bytes/s",
}


@dataclass(frozen=True)
class ConfigChange:
    """at_us: when the file with the row was written, None where the log no longer says. by: who wrote it, where the
    commit says so. what: in words.
    """

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
    times = _times(read, "rg_groups")
    changes = [_change(times, row["version"], row["name"], _rates_changed(row)) for row in rows]
    if read.has("rg_attachments"):
        of_group = "true" if group is None else f"group_name = {text(group)}"
        rows = read.rows(
            "rg_attachments",
            f"SELECT version, scope, resource, group_name FROM rg_attachments WHERE {of_group} "  # noqa: S608
            f"ORDER BY version DESC LIMIT {MOST}",
        )
        times = _times(read, "rg_attachments")
        changes += [_change(times, row["version"], row["group_name"] or "", _attached(row)) for row in rows]
    return tuple(sorted(changes, key=lambda one: (-one.version, one.group, one.what))[:MOST])


def _change(times: list[tuple[int, int, int]], version: int, group: str, what: str) -> ConfigChange:
    at_us = next((at_us for first, last, at_us in times if first <= version <= last), None)
    return ConfigChange(version, at_us, None, group, what)


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


def _times(read: Read, name: str) -> list[tuple[int, int, int]]:
    """Of each file: the first and the last version of its rows, and when it was written."""
    return [
        (file["min.version"], file["max.version"], file["modification_time"] * 1000)
        for part in read.look.parts.get(name, ())
        for file in pa.table(part.table.get_add_actions(flatten=True)).to_pylist()
        if file.get("min.version") is not None
    ]
