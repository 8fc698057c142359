"""Requests and responses of the admin API as values; HTTP itself is the service's (resource-groups 4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from headgate.core.quota.attachments import AttachedTo
from headgate.core.topic_names import SCHEMES

BASE = "/admin/v2/"
GROUP_PATHS = ("resourcegroups", "resourcegroup")
_BEARER = "bearer"
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class Absent(Enum):
    """Stands for a JSON value that is not there; null is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Request:
    """A call as it came.

    target: path and query, percent-encoded as sent.
    token: of the Authorization header (`bearer_token`), None without one.
    text: the body, "" without one. json: the body parsed, ABSENT where there is none or it is malformed.
    """

    method: str
    target: str
    token: str | None = None
    text: str = ""
    json: object = ABSENT


@dataclass(frozen=True, slots=True)
class Response:
    """What to answer: `json` as JSON, or `text` bare, or neither.

    allow: the verbs that a path has, with 405. warnings: to be logged.
    """

    status: int
    json: object = ABSENT
    text: str | None = None
    allow: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Target(Enum):
    """What a path leads to."""

    GROUPS = "groups"
    GROUP = "group"
    ATTACHMENT = "attachment"
    NAMED_ATTACHMENT = "named attachment"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Route:
    """A path that exists, taken apart.

    scope: of what a group is attached to. resource: its name; of a topic as the path spells it.
    namespace: tenant/namespace, of a namespace's or topic's path. group: a group's name.
    """

    target: Target
    scope: AttachedTo = AttachedTo.EXEMPT
    resource: str = ""
    namespace: str = ""
    group: str = ""
    query: Mapping[str, str] = field(default_factory=dict)


def refusal(status: int, reason: str) -> Response:
    """An error response."""
    return Response(status, {"reason": reason})


def bearer_token(authorization: str | None) -> str | None:
    """The token in the value of an Authorization header, None where it holds none."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == _BEARER else None


def route_of(target: str) -> Route | None:
    """What path and query lead to, None for an unknown path. One trailing "/" is ignored.

    Of a query parameter that is given twice the first value counts.
    """
    path, _, query = target.partition("?")
    if not path.startswith(BASE):
        return None
    segments = [unquoted(segment) for segment in path.removeprefix(BASE).removesuffix("/").split("/")]
    return _route(segments, _parameters(query))


def _route(segments: list[str], query: Mapping[str, str]) -> Route | None:
    match segments:
        case [groups] if groups in GROUP_PATHS:
            return Route(Target.GROUPS, query=query)
        case [groups, group] if groups in GROUP_PATHS:
            return Route(Target.GROUP, group=group, query=query)
        case ["tenants", tenant, "resourcegroup"]:
            return Route(Target.ATTACHMENT, AttachedTo.TENANT, tenant)
        case ["tenants", tenant, "resourcegroup", group]:
            return Route(Target.NAMED_ATTACHMENT, AttachedTo.TENANT, tenant, group=group)
        case ["namespaces", tenant, namespace, "resourcegroup"]:
            name = f"{tenant}/{namespace}"
            return Route(Target.ATTACHMENT, AttachedTo.NAMESPACE, name, name)
        case ["namespaces", tenant, namespace, "resourcegroup", group]:
            name = f"{tenant}/{namespace}"
            return Route(Target.NAMED_ATTACHMENT, AttachedTo.NAMESPACE, name, name, group=group)
        case [scheme, tenant, namespace, topic, "resourceGroup"] if scheme in SCHEMES:
            name = f"{tenant}/{namespace}"
            return Route(Target.TOPIC, AttachedTo.TOPIC, f"{scheme}://{name}/{topic}", name, query=query)
    return None


def unquoted(text: str) -> str:
    """`text` without percent-encoding; what is no escape stays, bytes that are no UTF-8 become U+FFFD."""
    first, *rest = text.split("%")
    decoded = bytearray(first.encode())
    for piece in rest:
        digits = piece[:2]
        if len(digits) == 2 and _HEXADECIMAL.issuperset(digits):
            decoded.append(int(digits, 16))
            decoded += piece[2:].encode()
        else:
            decoded += f"%{piece}".encode()
    return decoded.decode(errors="replace")


def _parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        parameters.setdefault(unquoted(name), unquoted(value))
    return parameters
