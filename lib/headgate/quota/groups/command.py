"""`headgate groups`: looks at the tables of groups and attachments, and changes them as the admin API would."""

import argparse
import getpass
import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.core.quota.admin.api import AdminParameters, Change, Presence, after_conflict, decide
from headgate.core.quota.admin.request import Request, Response
from headgate.core.quota.attachments import FIELDS, AttachedTo
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import RATE_FIELDS, REPLICATION_FIELDS, ResourceGroup, is_group_name
from headgate.core.quota.settings import QuotaSettings
from headgate.core.topic_names import topic_of
from headgate.errors import AdminError, TableError
from headgate.places import tried
from headgate.quota.groups.parser import RATE_OPTIONS
from headgate.quota.groups.presence import EVERYWHERE, presence_of
from headgate.quota.groups.requests import attach, delete_group, local_parameters, put_group
from headgate.quota.tables.config_store import ConfigStore
from headgate.quota.tables.opened import opened_config
from headgate.store_errors import is_away

_MAY_BE_DONE = "whether this was done is not known: look before you repeat it"


@dataclass(frozen=True, slots=True)
class Written:
    """What a request is answered, and what it changed, None for nothing."""

    response: Response
    change: Change | None


def apply(store: ConfigStore, request: Request, presence: Presence, parameters: AdminParameters) -> Written:
    """Answer a request; what it changes is in the tables then, and was decided on what they held just before.

    Where others write at the same time it is decided again, three times at most; the last answer is 409 then, and the
    first for a group that others created. Any number of processes may write at once. Raises TableError, which says so
    where a store did not answer the change: it may be done.
    Source: resource-groups 4.
    """
    decision = decide(request, store.read(), presence, parameters)
    while decision.change is not None:
        try:
            if store.write([decision.change.row], decision.change.read_version):
                break
        except TableError as error:
            if is_away(error):
                raise TableError(f"{error}; {_MAY_BE_DONE}") from error
            raise
        decision = after_conflict(decision, request, store.read(), presence, parameters)
    return Written(decision.response, decision.change)


def _person() -> str:
    """Whoever runs the command, and where."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an id without a name
        user = str(os.getuid())
    return f"{user} on {socket.gethostname()}"


_HEADING = ("GROUP", "PUBLISH MSG/S", "PUBLISH B/S", "DISPATCH MSG/S", "DISPATCH B/S", "ATTACHED TO")
READING = {"list", "get"}
_NOT_LIMITED = "-"
_NAMED = 10


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines that an action prints; a change is in the tables once its line is there.

    Raises AdminError for what is refused, TableError where the tables cannot be read or written.
    """
    settings = QuotaSettings(group_table=arguments.group_table, attachment_table=arguments.attachment_table)
    if arguments.action not in READING and tried(arguments.output):
        raise AdminError(
            409,
            f"{arguments.output} is of headgate try, and no job reads what is changed there; change the group in "
            "resource-groups.json of a conf folder and try that, or give the --output of a job",
        )
    store = opened_config(arguments.output, settings, _person())
    if "name" in arguments and not is_group_name(arguments.name):
        raise AdminError(412, f"got the group name {arguments.name!r}; allowed: 1 to 250 of A-Z a-z 0-9 _ - = : .")
    match arguments.action:
        case "list":
            yield from _listed(store.read(), as_json=arguments.json)
        case "get":
            yield from _shown(store.read(), arguments.name, as_json=arguments.json)
        case "set" | "unset":
            yield _changed_rates(store, settings, arguments)
        case "delete":
            written = _apply(store, settings, delete_group(arguments.name), EVERYWHERE, f"group {arguments.name}")
            yield _said(arguments.name, "deleted", written)
        case "attach":
            yield _attached(store, settings, arguments)
        case "detach":
            scope, resource = _resource(arguments.resource)
            written = _apply(store, settings, attach(scope, resource, None), EVERYWHERE, f"{scope} {resource}")
            yield _said(f"{scope} {resource}", "detached", written)


def _changed_rates(store: ConfigStore, settings: QuotaSettings, arguments: argparse.Namespace) -> str:
    name = arguments.name
    given = vars(arguments)
    rates: dict[str, int] = {field: given[field] for field in RATE_OPTIONS if given[field] is not None}
    for field, (option, _, _) in RATE_OPTIONS.items():
        largest = next(rate.largest for rate in RATE_FIELDS if rate.name == field)
        if field in rates and not -1 <= rates[field] <= largest:
            raise AdminError(
                412, f"--{option}: got {rates[field]}; allowed: 0 (blocks) to {largest}, or -1 (not limited)"
            )
    if arguments.action == "unset":
        if not rates:
            options = ", ".join(f"--{option}" for option, _, _ in RATE_OPTIONS.values())
            raise AdminError(400, f"got no rate to unset; allowed: one or more of {options}")
        if name not in store.read().groups:
            raise AdminError(404, f"group {name}: ResourceGroup does not exist")
    written = _apply(store, settings, put_group(name, rates), EVERYWHERE, f"group {name}")
    created = written.change is not None and written.change.creates
    return _said(name, "created" if created else "changed", written)


def _attached(store: ConfigStore, settings: QuotaSettings, arguments: argparse.Namespace) -> str:
    scope, resource = _resource(arguments.resource)
    tables = store.read()
    presence = EVERYWHERE if arguments.unseen else presence_of(arguments.output, tables.attachments)
    where = f"{scope} {resource}"
    groups = sorted(tables.groups)
    if arguments.name not in groups:
        known = ", ".join(groups[:_NAMED]) or "none"
        raise AdminError(404, f"group {arguments.name}: ResourceGroup does not exist; there are: {known}")
    request = attach(scope, resource, arguments.name)
    try:
        written = _apply(store, settings, request, presence, where)
    except AdminError as error:
        if error.status != 404:
            raise
        raise AdminError(404, f"{error}: no traffic of it was seen; add --unseen to attach it all the same") from None
    return _said(where, f"attached to {arguments.name}", written)


def _resource(text: str) -> tuple[AttachedTo, str]:
    """What a name on the command line means: the number of its parts tells."""
    parts = text.split("/")
    if "://" not in text and len(parts) < 3 and all(map(is_group_name, parts)):
        return (AttachedTo.TENANT if len(parts) == 1 else AttachedTo.NAMESPACE), text
    topic = topic_of(text)
    if topic is None:
        allowed = "tenant, tenant/namespace, tenant/namespace/topic, or a topic with its scheme"
        raise AdminError(412, f"got {text!r}; allowed: {allowed}")
    return AttachedTo.TOPIC, topic.name


def _apply(store: ConfigStore, settings: QuotaSettings, request: Request, presence: Presence, what: str) -> Written:
    written = apply(store, request, presence, local_parameters(settings))
    if written.response.status >= 400:
        body = written.response.json
        reason = body["reason"] if isinstance(body, Mapping) else body
        raise AdminError(written.response.status, f"{what}: {reason}")
    return written


def _said(what: str, done: str, written: Written) -> str:
    if written.change is None:
        return f"{what}: nothing to change"
    return f"{what}: {done} (version {written.change.row.version})"


def _listed(tables: ConfigTables, *, as_json: bool) -> Iterator[str]:
    groups = [tables.groups[name] for name in sorted(tables.groups)]
    if as_json:
        yield json.dumps([_plain(tables, group) for group in groups], indent=2)
        return
    rows = [_HEADING, *(_cells(tables, group) for group in groups)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if groups else []:
        name, *rates, attached = row
        numbers = (rate.rjust(width) for rate, width in zip(rates, widths[1:-1], strict=True))
        yield "  ".join([name.ljust(widths[0]), *numbers, attached])
    if not groups:
        yield "no groups"
    for name in sorted(tables.dangling()):
        yield f"{name} does not exist, but is attached to {_resources(tables, name)}"


def _shown(tables: ConfigTables, name: str, *, as_json: bool) -> Iterator[str]:
    group = tables.groups.get(name)
    if group is None:
        raise AdminError(404, f"group {name}: ResourceGroup does not exist")
    plain = _plain(tables, group)
    if as_json:
        yield json.dumps(plain, indent=2)
        return
    lines = {
        "name": group.name,
        "id": str(group.group_id),
        **{field.name: _rate(rate) for field, rate in zip(RATE_FIELDS, group.rates, strict=True)},
        **{
            field.name: f"{rate:,} (never enforced)"
            for field, rate in zip(REPLICATION_FIELDS, group.replication, strict=True)
            if rate is not None
        },
        "attached to": _resources(tables, name) or "nothing",
        "shard": str(group.shard),
        "version": str(group.version),
    }
    width = max(map(len, lines))
    for label, value in lines.items():
        yield f"{label.ljust(width)}  {value}"


def _plain(tables: ConfigTables, group: ResourceGroup) -> dict[str, Any]:
    rates = zip((*RATE_FIELDS, *REPLICATION_FIELDS), (*group.rates, *group.replication), strict=True)
    return {
        "name": group.name,
        "groupId": group.group_id,
        **{field.name: rate for field, rate in rates},
        **{kind: _of(tables, scope, group.name) for scope, kind in FIELDS.items()},
        "shard": group.shard,
        "version": group.version,
    }


def _cells(tables: ConfigTables, group: ResourceGroup) -> tuple[str, ...]:
    rates = (_NOT_LIMITED if rate is None else f"{rate:,}" for rate in group.rates)
    return (group.name, *rates, _resources(tables, group.name) or _NOT_LIMITED)


def _rate(rate: int | None) -> str:
    if rate is None:
        return "not limited"
    return f"{rate:,}" if rate else "0 (blocked)"


def _resources(tables: ConfigTables, name: str) -> str:
    return ", ".join(f"{scope} {resource}" for scope in FIELDS for resource in _of(tables, scope, name))


def _of(tables: ConfigTables, scope: AttachedTo, name: str) -> list[str]:
    attached = tables.attachments.by_scope(scope)
    return sorted(resource for resource, group in attached.items() if group == name)
