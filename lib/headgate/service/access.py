"""Who may ask what: tokens, names of the host that are meant, and what browsers may do with an answer."""

import base64
import binascii
import ipaddress

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.core.quota.admin.api import unauthorized
from headgate.core.quota.admin.request import bearer_token
from headgate.service.pages.routes import ROOTS

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NEEDED = "A token is needed: any user name, and the token as password.\n"
_LOCALHOST = "localhost"


class SafeHeaders:
    """Every answer has them: no page of elsewhere can frame it, and no script runs in it but its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class LoopbackNames:
    """Without tokens: a page from elsewhere whose name is made to lead here (DNS rebinding) learns nothing.

    host: the name or address that the service listens on, which counts as well.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app, self._host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        if self._is_meant(host):
            await self._app(scope, receive, send)
        else:
            said = (
                f"Host: got {host[:100]!r}; allowed without tokens: a name of this machine itself, such as 127.0.0.1.\n"
            )
            await PlainTextResponse(said, 403)(scope, receive, send)

    def _is_meant(self, host: str) -> bool:
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        if name in {_LOCALHOST, self._host.lower()} or name.endswith(f".{_LOCALHOST}"):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


class TokenNeeded:
    """Whoever has none learns nothing, not even which paths there are.

    Browsers are asked for one on paths of the page alone. There HTTP Basic counts as well, with any user; nowhere else:
    a browser sends it along with requests that another site makes.
    """

    def __init__(self, app: ASGIApp, tokens: frozenset[str], refused: Response) -> None:
        self._app, self._tokens, self._refused = app, tokens, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("authorization")
        token, is_page = bearer_token(given), _is_page(scope["path"])
        if token is None and is_page:
            token = basic_password(given)
        if unauthorized(token, self._tokens) is None:
            await self._app(scope, receive, send)
        elif is_page:
            headers = {"WWW-Authenticate": 'Basic realm="headgate", charset="UTF-8"'}
            await PlainTextResponse(_NEEDED, 401, headers)(scope, receive, send)
        else:
            await self._refused(scope, receive, send)


def basic_password(authorization: str | None) -> str | None:
    """The password in the value of an Authorization header, None where it holds none."""
    scheme, _, encoded = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return decoded.partition(":")[2] or None


def _is_page(path: str) -> bool:
    return any(path == root or (root != "/" and path.startswith(f"{root}/")) for root in ROOTS)
