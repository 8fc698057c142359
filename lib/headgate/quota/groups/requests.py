"""Requests that headgate makes of its own admin API, without HTTP: the checks are the same (resource-groups 4)."""

from collections.abc import Mapping
from urllib.parse import quote

from headgate.core.quota.admin.api import AdminParameters
from headgate.core.quota.admin.request import BASE, Request
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.settings import QuotaSettings
from headgate.core.topic_names import topic_of

LOCAL = "local"
"""The token of whoever may write the tables anyway; no service knows it."""


def local_parameters(settings: QuotaSettings) -> AdminParameters:
    """Parameters for requests of this module: -1 is not limited, whatever older clients mean by it."""
    return AdminParameters(frozenset({LOCAL}), shards=settings.usage_shards)


def put_group(name: str, rates: Mapping[str, int]) -> Request:
    """Create or update a group. rates: by their names in REST, -1 for not limited."""
    return Request("PUT", f"{BASE}resourcegroups/{_quoted(name)}", LOCAL, "{}", dict(rates))


def delete_group(name: str) -> Request:
    """Delete a group."""
    return Request("DELETE", f"{BASE}resourcegroups/{_quoted(name)}", LOCAL)


def attach(scope: AttachedTo, resource: str, group: str | None) -> Request:
    """Attach a group to a tenant, tenant/namespace or topic; None detaches."""
    if scope is AttachedTo.TOPIC:
        topic = topic_of(resource)
        scheme, _, rest = (resource if topic is None else topic.name).partition("://")
        tenant, namespace, local = (*rest.split("/", 2), "", "")[:3]
        path = f"{BASE}{scheme}/{_quoted(tenant)}/{_quoted(namespace)}/{_quoted(local)}/resourceGroup"
        return Request("DELETE", path, LOCAL) if group is None else Request("POST", path, LOCAL, group)
    parts = "/".join(map(_quoted, resource.split("/")))
    path = f"{BASE}{scope}s/{parts}/resourcegroup"
    if group is None:
        return Request("DELETE", path, LOCAL)
    return Request("POST", f"{path}/{_quoted(group)}", LOCAL)


def _quoted(text: str) -> str:
    return quote(text, safe="")
