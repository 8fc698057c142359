"""The views of the page in the words of OpenAPI 3.1."""

from typing import Any, Final

from headgate.service.pages.answers import HTML, JSON
from headgate.service.pages.span import LAST_S, MOST_S
from headgate.service.pages.views import VIEWS, View

BROWSER: Final = "browser"
"""HTTP Basic, with any user and a token as password."""
_RANGE: Final = (
    ("from", "Beginning of the range, ISO 8601; default: `last` seconds before its end", {"type": "string"}),
    ("to", "Its end, which is not in it; default: the newest row", {"type": "string"}),
    ("last", "Length of the range in seconds", {"type": "integer", "minimum": 1, "maximum": MOST_S, "default": LAST_S}),
)
_ANSWERS: Final = {
    "200": "the view; in words what is missing, where another job writes its table",
    "304": "as If-None-Match has it",
    "400": "no such range",
    "404": "not there",
    "503": "no table yet, or one that cannot be read",
}


def described_pages() -> dict[str, dict[str, Any]]:
    """Paths with their one verb."""
    return {view.path.replace(":path}", "}"): _path(view) for view in VIEWS}


def _path(view: View) -> dict[str, Any]:
    given: list[dict[str, Any]] = []
    if view.parameter:
        given.append({"name": view.parameter, "in": "path", "required": True, "schema": {"type": "string"}})
    if view.has_range:
        given += [_query(*one) for one in _RANGE]
    if view.query:
        name, about, is_required = view.query
        given.append(_query(name, about, {"type": "string"}) | {"required": is_required})
    given.append(_query("format", "json: as with Accept: application/json", {"type": "string", "enum": ["json"]}))
    content = {JSON: {"schema": {"type": "object"}}, HTML: {"schema": {"type": "string"}}}
    responses = {
        status: {"description": what} | ({} if status == "304" else {"content": content})
        for status, what in _ANSWERS.items()
    }
    security: list[dict[str, list[str]]] = [{"token": []}, {BROWSER: []}]
    return {"parameters": given, "get": {"summary": view.summary, "responses": responses, "security": security}}


def _query(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}
