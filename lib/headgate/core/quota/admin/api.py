"""The admin API of resource groups: requests in, responses and changes of the tables out (resource-groups 4).

`decide` answers a request from one read of the tables. Where that wants a change, it is written only if nobody wrote
since; if somebody did, `after_conflict` decides again. A request that is refused changes nothing.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace

from headgate.core.quota.admin.body import body_of, rest_of_group
from headgate.core.quota.admin.request import Request, Response, Route, Target, refusal, route_of
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigRow, ConfigTables
from headgate.core.quota.groups import ResourceGroup, initial_shard, is_group_name
from headgate.core.quota.settings import MinusOne
from headgate.core.topic_names import Topic, topic_of
from headgate.errors import InvalidArgument

RETRIES = 3
MINUS_ONE = "minusOne"
APPLIED = "applied"
NO_CONTENT = Response(204)


@dataclass(frozen=True, slots=True)
class AdminParameters:
    """Who may call, and how: tokens of administrators, at least one; what -1 means in an update; shards of usage.

    Raises InvalidArgument without tokens: there is no anonymous mode.
    """

    tokens: frozenset[str]
    minus_one: MinusOne = MinusOne.UNSET
    shards: int = 64

    def __post_init__(self) -> None:
        if not self.tokens:
            raise InvalidArgument("tokens: got none, allowed is at least one; set resourceGroupAdminTokens")


@dataclass(frozen=True, slots=True)
class Presence:
    """The tenants, and namespaces (tenant/namespace), that are declared in the configuration or seen in the input."""

    tenants: Container[str]
    namespaces: Container[str]


@dataclass(frozen=True, slots=True)
class Change:
    """A row to write if `read_version` is still the version of the tables. `creates`: a group that was absent."""

    row: ConfigRow
    read_version: int
    creates: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The response, to be given once `change`, where there is one, is written. `conflicts`: how often it was not."""

    response: Response
    change: Change | None = None
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    request: Request
    route: Route
    tables: ConfigTables
    presence: Presence
    parameters: AdminParameters

    def present(self) -> bool:
        """Whether the tenant or namespace that the path is about exists."""
        if self.route.scope is AttachedTo.TENANT:
            return self.route.resource in self.presence.tenants
        return self.route.namespace in self.presence.namespaces

    def absence(self) -> str:
        """Why nothing was found."""
        return f"{'Tenant' if self.route.scope is AttachedTo.TENANT else 'Namespace'} does not exist"

    def on(self, topic: Topic) -> "_Call":
        """The call about a topic under its full name, which partitions share."""
        return replace(self, route=replace(self.route, resource=topic.name))

    def attached(self) -> str | None:
        """The group attached to the resource itself, whether or not it exists."""
        return self.tables.attachments.by_scope(self.route.scope).get(self.route.resource)


def unauthorized(token: str | None, tokens: Container[str]) -> Response | None:
    """The answer to a request without a token of an administrator, None to others. Source: resource-groups 4."""
    # Looked up by hash: how long it takes says nothing of how much of a wrong token is right.
    if token is None or token not in tokens:
        return refusal(403, "Unauthorized: an admin token is needed")
    return None


def decide(request: Request, tables: ConfigTables, presence: Presence, parameters: AdminParameters) -> Decision:
    """What a call is answered and changes, as of one read of the tables. Source: resource-groups 4."""
    if (refused := unauthorized(request.token, parameters.tokens)) is not None:
        return Decision(refused)
    route = route_of(request.target)
    if route is None:
        return _refused(404, "Unknown path")
    verbs = _VERBS[route.target]
    if request.method not in verbs:
        return Decision(replace(refusal(405, "Method not allowed"), allow=tuple(verbs)))
    return verbs[request.method](_Call(request, route, tables, presence, parameters))


def after_conflict(
    lost: Decision, request: Request, tables: ConfigTables, presence: Presence, parameters: AdminParameters
) -> Decision:
    """What to do where the change of `lost` could not be written; `tables` are read anew.

    A create that lost against a create of the same name is refused at once, everything else is decided again, three
    times at most. Source: resource-groups 4.
    """
    change = lost.change
    created = change.row if change is not None and change.creates else None
    if isinstance(created, ResourceGroup) and created.name in tables.groups:
        return _refused(409, "ResourceGroup already exists")
    if lost.conflicts == RETRIES:
        return _refused(409, "Concurrent modification")
    return replace(decide(request, tables, presence, parameters), conflicts=lost.conflicts + 1)


def _list(call: _Call) -> Decision:
    return Decision(Response(200, sorted(call.tables.groups)))


def _get_group(call: _Call) -> Decision:
    name = call.route.group
    if not is_group_name(name):
        return _refused(412, _BAD_NAME)
    group = call.tables.groups.get(name)
    return _refused(404, _NO_GROUP) if group is None else Decision(Response(200, rest_of_group(group)))


def _put_group(call: _Call) -> Decision:
    name = call.route.group
    if not is_group_name(name):
        return _refused(412, _BAD_NAME)
    minus_one = call.route.query.get(MINUS_ONE, call.parameters.minus_one)
    if minus_one not in tuple(MinusOne):
        return _refused(400, f"{MINUS_ONE}: got {minus_one}, allowed are {' and '.join(MinusOne)}")
    body = body_of(call.request)
    if isinstance(body, Response):
        return Decision(body)
    group = call.tables.groups.get(name)
    if group is None:
        fresh = ResourceGroup(call.tables.last_group_id + 1, name, shard=initial_shard(name, call.parameters.shards))
        written, before = body.created(fresh), None
    else:
        written, before = body.updated(group, MinusOne(minus_one)), group
    return replace(_changed(call, written, before), response=replace(NO_CONTENT, warnings=body.warnings(name)))


def _delete_group(call: _Call) -> Decision:
    name = call.route.group
    if not is_group_name(name):
        return _refused(412, _BAD_NAME)
    group = call.tables.groups.get(name)
    if group is None:
        return _refused(404, _NO_GROUP)
    if name in call.tables.attachments.names():
        return _refused(412, "ResourceGroup is in use; detach it from every tenant, namespace and topic first")
    return _changed(call, replace(group, deleted=True), group)


def _attach(call: _Call) -> Decision:
    if call.route.group not in call.tables.groups:
        return _refused(412, _NO_GROUP)
    return _attached_to(call, call.route.group) if call.present() else _refused(404, call.absence())


def _get_attachment(call: _Call) -> Decision:
    if not call.present():
        return _refused(404, call.absence())
    return Decision(Response(200, text=call.attached() or ""))


def _detach(call: _Call) -> Decision:
    return _attached_to(call, None) if call.present() else _refused(404, call.absence())


def _post_topic(call: _Call) -> Decision:
    name = call.request.text
    if name and name not in call.tables.groups:
        return _refused(412, _NO_GROUP)
    if not call.present():
        return _refused(404, call.absence())
    topic = topic_of(call.route.resource)
    return _refused(412, _BAD_TOPIC) if topic is None else _attached_to(call.on(topic), name or None)


def _get_topic(call: _Call) -> Decision:
    topic = topic_of(call.route.resource)
    if topic is None or not call.present():
        return _refused(404, call.absence())
    applied = call.route.query.get(APPLIED, "").lower() == "true"
    name = call.tables.resolve(topic).group if applied else call.on(topic).attached()
    return Decision(NO_CONTENT if name is None else Response(200, text=name))


def _delete_topic(call: _Call) -> Decision:
    topic = topic_of(call.route.resource)
    if topic is None or not call.present():
        return _refused(404, call.absence())
    return _attached_to(call.on(topic), None)


def _attached_to(call: _Call, group_name: str | None) -> Decision:
    """204, and a change if the resource has another attachment now."""
    before = Attachment(call.route.scope, call.route.resource, call.attached())
    return _changed(call, replace(before, group_name=group_name), before)


def _changed(call: _Call, row: ConfigRow, before: ConfigRow | None) -> Decision:
    """204, with `row` as the next version unless it says what `before` says."""
    if row == before:
        return Decision(NO_CONTENT)
    version = call.tables.version
    return Decision(NO_CONTENT, Change(replace(row, version=version + 1), version, creates=before is None))


def _refused(status: int, reason: str) -> Decision:
    return Decision(refusal(status, reason))


_BAD_NAME = "The name of a ResourceGroup is 1 to 250 of A-Z a-z 0-9 _ - = : ."
_BAD_TOPIC = "The topic has no local name"
_NO_GROUP = "ResourceGroup does not exist"
_Verbs = dict[str, Callable[[_Call], Decision]]
_VERBS: dict[Target, _Verbs] = {
    Target.GROUPS: {"GET": _list},
    Target.GROUP: {"GET": _get_group, "PUT": _put_group, "DELETE": _delete_group},
    Target.ATTACHMENT: {"GET": _get_attachment, "DELETE": _detach},
    Target.NAMED_ATTACHMENT: {"POST": _attach, "PUT": _attach},
    Target.TOPIC: {"POST": _post_topic, "GET": _get_topic, "DELETE": _delete_topic},
}
