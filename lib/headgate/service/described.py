"""What `headgate serve` offers, in the words of OpenAPI 3.1."""

from typing import Any, Final, NamedTuple

import headgate
from headgate.core.quota.admin.request import BASE
from headgate.core.quota.groups import RATE_FIELDS, REPLICATION_FIELDS
from headgate.service.pages.described import BROWSER, described_pages

_GROUP: Final = "ResourceGroup"
_NAME: Final = {"type": "string"}


class _Verb(NamedTuple):
    """summary: what it does. status: of success. answer: its schema, None for no body. body: that of a request."""

    summary: str
    status: int
    answer: dict[str, Any] | None = None
    body: dict[str, Any] | None = None


def _attachment(what: str) -> dict[str, _Verb]:
    return {
        "get": _Verb(f"The group that is attached to a {what}; no body: none", 200, _NAME),
        "delete": _Verb(f"Detach the group of a {what}", 204),
    }


def _attaching(what: str) -> dict[str, _Verb]:
    verb = _Verb(f"Attach a group to a {what}, in place of any other", 204)
    return {"post": verb, "put": verb}


_GROUP_BODY: Final = {"$ref": f"#/components/schemas/{_GROUP}"}
_PATHS: Final[dict[str, dict[str, _Verb]]] = {
    "resourcegroups": {"get": _Verb("Names of all groups", 200, {"type": "array", "items": _NAME})},
    "resourcegroups/{group}": {
        "get": _Verb("Rates of a group; -1: not limited", 200, _GROUP_BODY),
        "put": _Verb("Create a group, or change the rates that are given", 204, body=_GROUP_BODY),
        "delete": _Verb("Delete a group that is attached to nothing", 204),
    },
    "namespaces/{tenant}/{namespace}/resourcegroup": _attachment("namespace"),
    "namespaces/{tenant}/{namespace}/resourcegroup/{group}": _attaching("namespace"),
    "tenants/{tenant}/resourcegroup": _attachment("tenant"),
    "tenants/{tenant}/resourcegroup/{group}": _attaching("tenant"),
    "{domain}/{tenant}/{namespace}/{topic}/resourceGroup": {
        **_attachment("topic"),
        "post": _Verb("Attach a group to a topic; no body: detach it", 204, body=_NAME),
    },
}


def description() -> dict[str, Any]:
    """The document at /openapi.json."""
    rates = {
        field.name: {"type": "integer", "format": "int64", "minimum": -1}
        for field in (*RATE_FIELDS, *REPLICATION_FIELDS)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "headgate", "version": headgate.__version__},
        "security": [{"token": []}],
        "paths": {f"{BASE}{path}": _path(path, verbs) for path, verbs in _PATHS.items()} | described_pages(),
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                BROWSER: {"type": "http", "scheme": "basic"},
            },
            "schemas": {
                _GROUP: {"type": "object", "properties": rates},
                "Refusal": {"type": "object", "properties": {"reason": _NAME}},
            },
        },
    }


def _path(path: str, verbs: dict[str, _Verb]) -> dict[str, Any]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _NAME} for name in names]
    return {"parameters": parameters} | {verb: _operation(one) for verb, one in verbs.items()}


def _operation(verb: _Verb) -> dict[str, Any]:
    def content(schema: dict[str, Any]) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": schema}}}

    refused = {"description": "refused, with the reason"} | content({"$ref": "#/components/schemas/Refusal"})
    done = {"description": "done"} | ({} if verb.answer is None else content(verb.answer))
    operation: dict[str, Any] = {"summary": verb.summary, "responses": {str(verb.status): done, "default": refused}}
    return operation | ({} if verb.body is None else {"requestBody": content(verb.body)})
