"""The HTTP side of `headgate serve`: what comes in as requests of the admin API, and its answers."""

import json
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.core.quota.admin.request import ABSENT, BASE, Request, Response, bearer_token, refusal
from headgate.service.access import LoopbackNames, SafeHeaders, TokenNeeded
from headgate.service.admin import Admin
from headgate.service.bounds import AtOnce
from headgate.service.described import description
from headgate.service.pages.answers import Pages
from headgate.service.pages.routes import page_routes

MOST_BYTES: Final = 1 << 16
"""Of a request's body; those of the admin API have some hundred."""


def application(admin: Admin, pages: Pages, tokens: frozenset[str], output: str, host: str, *, most: int) -> ASGIApp:
    """All that is served. tokens: with some, every request needs one of them; without, it has to be meant for this
    machine. host: on which the service listens. most: requests at once.
    """
    routes: list[BaseRoute] = [Mount(BASE.rstrip("/"), app=_AdminApi(admin)), Route("/openapi.json", _described)]
    routes += page_routes(pages, output)
    handlers: dict[Any, Any] = {404: _unknown_path, 405: _not_allowed, Exception: _broken}
    app = Starlette(routes=routes, exception_handlers=handlers)
    if tokens:
        unauthorized = _response(refusal(403, "Unauthorized: an admin token is needed"))
        app.add_middleware(TokenNeeded, tokens=tokens, refused=unauthorized)
    else:
        app.add_middleware(LoopbackNames, host=host)
    return SafeHeaders(AtOnce(app, most))  # around what answers an error of our own, too


class _AdminApi:
    """The core routes: it knows which verbs a path has."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = HttpRequest(scope, receive)
        try:
            body = await _body(http)
        except ClientDisconnect:
            return
        if body is None:
            answer = refusal(413, f"got a body of more than {MOST_BYTES} bytes")
        else:
            answer = await run_in_threadpool(self._admin.answer, _request(http, body))
        await _response(answer)(scope, receive, send)


async def _body(http: HttpRequest) -> bytes | None:
    """None for one that is too long; the rest of it is not waited for."""
    body = bytearray()
    async for chunk in http.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


def _request(http: HttpRequest, body: bytes) -> Request:
    query = http.scope["query_string"].decode("ascii", "replace")
    target = http.scope["raw_path"].decode("utf-8", "replace") + (f"?{query}" if query else "")
    return Request(http.method, target, _token(http), body.decode("utf-8", "replace"), _parsed(body))


def _token(http: HttpRequest) -> str | None:
    return bearer_token(http.headers.get("Authorization"))


def _parsed(body: bytes) -> Any:
    """ABSENT for no JSON."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        return ABSENT


def _response(answer: Response) -> HttpResponse:
    headers = {"Allow": ", ".join(answer.allow)} if answer.allow else {}
    if answer.status == 413:
        headers["Connection"] = "close"
    text = json.dumps(answer.json) if answer.json is not ABSENT else answer.text
    return HttpResponse(text, answer.status, headers, media_type=None if text is None else "application/json")


async def _described(_: HttpRequest) -> HttpResponse:
    return JSONResponse(description())


async def _unknown_path(*_: object) -> HttpResponse:
    return _response(refusal(404, "Unknown path"))


async def _broken(*_: object) -> HttpResponse:
    return _response(refusal(500, "An error of headgate; its terminal says more. Please report it."))


async def _not_allowed(_: HttpRequest, error: Exception) -> HttpResponse:
    answer = _response(refusal(405, "Method not allowed"))
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})
    return answer
