"""The file resource-groups.json in the tables: what is new in it is written, what is as it was is left alone.

The rule, entry by entry (a group, an attachment), comparing the file with itself at the job's last start:

* an entry that is new or was changed is written: the file wins over what was set by hand;
* an entry that is gone is taken back: the group is deleted, the resource detached;
* an entry that is as it was stays as the tables have it now: what was set by hand since then is kept.

What the file said at the last start is a property of a table of the job's own: jobs of one broker may each have a copy
of the file, and one that did not change takes back nothing that another one's said. A job that never started before
adds what is new to all files, by a property of rg_groups: whether its copy or theirs is the older one nobody knows, so
where they differ theirs holds, with a warning. Both properties belong to tables and not to a machine.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from deltalake.exceptions import DeltaError

from headgate.conf.resource_groups import ResourceGroup, ResourceGroups
from headgate.core.quota.admin.api import AdminParameters, decide
from headgate.core.quota.admin.request import Request
from headgate.core.quota.attachments import FIELDS
from headgate.core.quota.config_tables import ConfigRow, ConfigTables
from headgate.core.quota.groups import RATE_FIELDS, rest_of_rate
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.groups.presence import EVERYWHERE
from headgate.quota.groups.requests import attach, delete_group, local_parameters, put_group
from headgate.quota.tables.config_store import ConfigStore
from headgate.quota.tables.delta import Table

IMPORTED = "headgate.importedConf"
"""The property with what the file said at the last start, as JSON."""
_ATTEMPTS = 20

Entries = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Imported:
    """How many rows were written, and lines for the user: what the file says and the tables cannot follow."""

    rows: int
    warnings: tuple[str, ...] = ()


def import_groups(
    store: ConfigStore, conf: ResourceGroups, settings: QuotaSettings, own: Table | None = None
) -> Imported:
    """Bring the file's groups and attachments into the tables, at a start or after an edit.

    own: a table of the job, which keeps what the file said. Jobs that start together may all do it. After a crash on
    the way the next start does the rest. Raises TableError where the tables cannot be read or written.
    """
    now = entries_of(conf)
    parameters = local_parameters(settings)
    for _ in range(_ATTEMPTS):
        tables = store.read()
        said = _last_import(store.groups) or {}
        kept = said if own is None else _last_import(own)
        before = _of_others(tables, said, now) if kept is None else kept
        wanted = _with(before, now) if kept is None else now
        rows, warnings = ([], []) if wanted == before else _changes(tables, before, wanted, parameters)
        if (not rows or store.write(rows, tables.version)) and _remember(store.groups, before, wanted):
            if own is not None and now != kept:
                _remember(own, kept or {}, now)
            return Imported(len(rows), (*warnings, *(_differences(before, now) if kept is None else ())))
    raise TableError(
        f"the table {store.groups.location} cannot be written: in {_ATTEMPTS} attempts others always came before; "
        "start again"
    )


def tables_of(conf: ResourceGroups, settings: QuotaSettings) -> ConfigTables:
    """What new tables hold after `import_groups`."""
    tables = ConfigTables()
    for row in _changes(tables, {}, entries_of(conf), local_parameters(settings))[0]:
        tables = tables.written(row)
    return tables


def entries_of(conf: ResourceGroups) -> Entries:
    """What the file says, by kind (groups, tenants, namespaces, topics) and name. Rates are those of REST."""
    attached = {name: dict(getattr(conf, name)) for name in FIELDS.values()}
    return {"groups": {name: _rates(group) for name, group in conf.groups.items()}, **attached}


def _changes(
    tables: ConfigTables, before: Entries, now: Entries, parameters: AdminParameters
) -> tuple[list[ConfigRow], list[str]]:
    """The rows to write, each with the next version, and what was refused."""
    rows: list[ConfigRow] = []
    warnings: list[str] = []
    for request, entry in _requests(before, now):
        decision = decide(request, tables, EVERYWHERE, parameters)
        if decision.change is not None:
            rows.append(decision.change.row)
            tables = tables.written(decision.change.row)
        elif decision.response.status == 412:
            reason = decision.response.json
            text = reason["reason"] if isinstance(reason, dict) else reason
            warnings.append(f"resource-groups.json no longer names the {entry}, which stays: {text}")
    return rows, warnings


def _of_others(tables: ConfigTables, said: Entries, now: Entries) -> Entries:
    """What a job that joins others leaves as it is: what their files said, and what was set by hand under its names."""
    if not said:
        return {}
    attached = {name: getattr(tables.attachments, name) for name in FIELDS.values()}
    there = {"groups": {name: _rest(group.rates) for name, group in tables.groups.items()}, **attached}
    by_hand = {kind: {name: there[kind][name] for name in now[kind] if name in there[kind]} for kind in now}
    return _with(said, by_hand)


def _with(entries: Entries, others: Entries) -> Entries:
    """Both together; where they differ it is as in `entries`."""
    return {kind: others.get(kind, {}) | entries.get(kind, {}) for kind in entries.keys() | others.keys()}


def _differences(before: Entries, now: Entries) -> Iterator[str]:
    """A line for the user where the file of a job that starts for the first time says something else than others'."""
    names = {"groups": "group"} | {kind: str(scope) for scope, kind in FIELDS.items()}
    differing = [
        f"{names[kind]} {name}"
        for kind, entries in sorted(before.items())
        for name, entry in sorted(entries.items())
        if now[kind].get(name) != entry
    ]
    if differing:
        yield (
            "resource-groups.json says something else than the tables, or nothing, of what other jobs brought in: "
            f"{', '.join(differing)}; as this job starts for the first time the tables stay. Change them by an edit of "
            "the file while the job runs, or by headgate groups"
        )


def _requests(before: Entries, now: Entries) -> list[tuple[Request, str]]:
    """Groups come first and go last, so that no attachment is without its group on the way."""
    old, new = before.get("groups", {}), now["groups"]
    requests = [
        (put_group(name, rates), f"group {name}") for name, rates in sorted(new.items()) if old.get(name) != rates
    ]
    for scope, kind in FIELDS.items():
        was, is_ = before.get(kind, {}), now[kind]
        changed = sorted(name for name in was.keys() | is_.keys() if was.get(name) != is_.get(name))
        requests += [(attach(scope, name, is_.get(name)), f"{scope} {name}") for name in changed]
    return requests + [(delete_group(name), f"group {name}") for name in sorted(old.keys() - new.keys())]


def _rates(group: ResourceGroup) -> dict[str, int]:
    publish = group.publish_messages_per_s, group.publish_bytes_per_s
    return _rest((*publish, group.dispatch_messages_per_s, group.dispatch_bytes_per_s))


def _rest(rates: Iterable[int | None]) -> dict[str, int]:
    return {field.name: rest_of_rate(rate) for field, rate in zip(RATE_FIELDS, rates, strict=True)}


def _last_import(table: Table) -> Entries | None:
    """What the file said last by this table, None: nothing yet."""
    text = table.delta.metadata().configuration.get(IMPORTED)
    if text is None:
        return None
    try:
        entries: Entries = json.loads(text)
    except ValueError as error:
        raise TableError(
            f"the table {table.location} has a property {IMPORTED} that is not JSON ({error}); remove the property: "
            "the next start then writes everything in resource-groups.json"
        ) from error
    return entries


def _remember(table: Table, before: Entries, now: Entries) -> bool:
    """Keep the step from `before` to `now` beside what others said; False if somebody wrote to the table meanwhile."""
    table.refresh()
    said = _last_import(table)
    stepped = _stepped(said or {}, before, now)
    if stepped == said:
        return True
    try:
        table.delta.alter.set_table_properties(
            {IMPORTED: json.dumps(stepped, sort_keys=True)}, raise_if_not_exists=False
        )
    except DeltaError as error:
        if not table.moved():
            raise TableError(f"the table {table.location} cannot be written: {error}; start again") from error
        return False
    return True


def _stepped(said: Entries, before: Entries, now: Entries) -> Entries:
    """`said`, with what `now` has new or changed, and without what it no longer has."""
    stepped = {}
    for kind in said.keys() | now.keys():
        old, new = before.get(kind, {}), now.get(kind, {})
        kept = {name: entry for name, entry in said.get(kind, {}).items() if name in new or name not in old}
        stepped[kind] = kept | {name: entry for name, entry in new.items() if old.get(name) != entry}
    return stepped
