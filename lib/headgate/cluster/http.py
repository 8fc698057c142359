"""Requests to brokers over HTTP or HTTPS, with the token and the authorities of cluster.toml."""

import json
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.client import BadStatusLine, HTTPException, HTTPMessage, HTTPResponse, IncompleteRead, RemoteDisconnected
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from headgate.conf.cluster import ClusterConf
from headgate.errors import ClusterError

_MOST_SHOWN = 200
_MOST_READ = 1 << 16
_PIECE_BYTES: Final = 1 << 20
_NOT_FOUND: Final = 404
_EARLY_END: Final = "the answer ends early"
_TOKEN: Final = re.compile(r"[!-~]+")
_TOKENS: Final = "a readable file with one token, of ASCII characters without blanks"
_UNREADABLE = (OSError, HTTPException)
_UNREACHABLE = (*_UNREADABLE, ValueError, OverflowError)
"""The last two are of names and ports that cannot be: brokers are told of by another one."""


class Http:
    """Each request has its own connection. The token is read anew for each: files of tokens are renewed.

    Every method raises ClusterError, which names the address, and whose `status` is the answer's, None without one. A
    404 that is not a broker's, with its reason, is none: what is in front of brokers does not know what they have. An
    answer takes at most `timeout_s` to its end.
    """

    def __init__(self, conf: ClusterConf) -> None:
        self._timeout_s = conf.settings.timeout_s
        self._token = None if conf.settings.token_file is None else conf.path(conf.settings.token_file)
        context = None
        if conf.settings.ca_file is not None:
            file = conf.path(conf.settings.ca_file)
            try:
                context = ssl.create_default_context(cafile=file)
            except (OSError, ssl.SSLError) as error:
                raise ClusterError(f"ca_file {file}: got {error}; allowed: a PEM file of authorities") from error
        self._opener = build_opener(HTTPSHandler(context=context), _Redirects)

    def get(self, url: str) -> Any:
        """The JSON at an address, None for an empty answer."""
        return self._json("GET", url)

    def send(self, method: str, url: str, body: object = None) -> None:
        """Change something."""
        self._json(method, url, body)

    def stream(self, url: str) -> AbstractContextManager["Answer"]:
        """The answer as it comes, which the block reads to its end."""
        return self._answer("GET", url, None)

    @contextmanager
    def _answer(self, method: str, url: str, body: object) -> Iterator["Answer"]:
        until_s = time.monotonic() + self._timeout_s
        with self._open(method, url, body, until_s) as response:
            try:
                yield Answer(response.headers.get_content_type(), _pieces(response, until_s))
            except _UNREADABLE as error:
                raise ClusterError(f"{url}: {_why(error)}") from error
            if response.length:  # http.client says so only where the whole is read at once
                raise ClusterError(f"{url}: {_EARLY_END}")

    def _json(self, method: str, url: str, body: object = None) -> Any:
        with self._answer(method, url, body) as answer:
            text = b"".join(answer.pieces)
        try:
            return json.loads(text) if text.strip() else None
        except ValueError as error:
            raise ClusterError(
                f"{url}: got {text[:_MOST_SHOWN]!r}; allowed: JSON, as a Pulsar broker answers; correct the address"
            ) from error

    @contextmanager
    def _open(self, method: str, url: str, body: object, until_s: float) -> Iterator[HTTPResponse]:
        headers = {"Accept": "*/*"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {_token_in(self._token)}"
        content = None
        if body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            request = Request(url, content, headers, method=method)  # noqa: S310  the scheme is checked with the conf
            response = self._opener.open(request, timeout=self._timeout_s)
        except HTTPError as error:
            with error:
                told, is_brokers = _refused(method, url, error, until_s)
                raise ClusterError(told, error.code if is_brokers or error.code != _NOT_FOUND else None) from error
        except _UNREACHABLE as error:
            raise ClusterError(f"{url}: {_why(error)}") from error
        with response:
            if time.monotonic() > until_s:
                raise ClusterError(f"{url}: {_why(TimeoutError())}")
            yield response


class Answer(NamedTuple):
    """What comes. pieces: of its body."""

    content_type: str
    pieces: Iterator[bytes]


def _pieces(response: Any, until_s: float) -> Iterator[bytes]:
    """As they come. Raises TimeoutError once it is `until_s`: a broker may send a byte now and then."""
    while piece := response.read1(_PIECE_BYTES):
        yield piece
        if time.monotonic() > until_s:
            raise TimeoutError


class _Redirects(HTTPRedirectHandler):
    """A broker sends requests on to the one that has the topic, with 307: urllib alone follows with GET, not POST.

    A token that went over TLS never goes without it.
    """

    def redirect_request(  # noqa: PLR0917  urllib's own
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if newurl.partition("://")[0] != req.type:
            return None
        if code in (307, 308):
            return Request(newurl, req.data, req.headers, method=req.get_method())  # noqa: S310  the scheme is the same
        return super().redirect_request(req, fp, code, msg, headers, newurl) if req.get_method() == "GET" else None


def _token_in(file: Path) -> str:
    """What a message shows of the file is never part of a token."""
    try:
        token = file.read_text("ascii").strip()
    except OSError as error:
        raise ClusterError(f"token_file {file}: got {error.strerror}; allowed: {_TOKENS}") from error
    except ValueError:
        raise ClusterError(f"token_file {file}: got other than ASCII; allowed: {_TOKENS}") from None
    if not _TOKEN.fullmatch(token):
        got = "blanks or control characters in it" if token else "an empty file"
        raise ClusterError(f"token_file {file}: got {got}; allowed: {_TOKENS}")
    return token


def _refused(method: str, url: str, error: HTTPError, until_s: float) -> tuple[str, bool]:
    """In words, with what to do, and whether a broker said it."""
    reason, is_brokers = _reason(error, until_s)
    told = f"{method} {url}: {error.code} {reason}"
    if error.code == 401:
        told += "; give a token that the broker takes: token_file in cluster.toml"
    elif error.code == 403:
        told += "; give a token of the tenant's admin or of a superuser: token_file in cluster.toml"
    elif error.code == _NOT_FOUND and not is_brokers:
        told += "; no Pulsar broker says so: correct admin_url, or mend what is in front of the brokers"
    return told, is_brokers


def _reason(error: HTTPError, until_s: float) -> tuple[str, bool]:
    """What a broker says under `reason`, or the text of its answer, in one line; what the status says if it is HTML."""
    is_brokers = False
    content = b""
    with suppress(*_UNREADABLE):
        for piece in _pieces(error, until_s):
            content += piece
            if len(content) > _MOST_READ:
                break
    text = content.decode(errors="replace")
    with suppress(ValueError):
        found = json.loads(text)
        is_brokers = isinstance(found, dict) and "reason" in found
        text = str(found["reason"] or "") if is_brokers else text
    if "<html" in text.lower() or not text.strip():
        text = error.reason
    return " ".join(text.split())[:_MOST_SHOWN], is_brokers


def _why(error: BaseException) -> str:
    """In words, and what to do."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"the broker's certificate is refused: {reason.verify_message}; correct ca_file, or renew the certificate"
        )
    if isinstance(reason, ssl.SSLError):
        return f"no TLS there ({reason.reason}); write http:// in admin_url, or another port"
    if isinstance(reason, BadStatusLine) and not isinstance(reason, RemoteDisconnected):
        return "no HTTP there; write https:// in admin_url, or another port"
    if isinstance(reason, IncompleteRead):
        return _EARLY_END
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, ConnectionRefusedError | RemoteDisconnected):
        what = "Connection refused" if isinstance(reason, ConnectionRefusedError) else "no answer"
        return f"{what}; see that a broker's web service is there, which usually has port 8080"
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
