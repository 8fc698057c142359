"""`headgate serve`: from its arguments to its end by a signal."""

import argparse
import ssl
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from headgate.conf import MetricsSettings, load_conf
from headgate.core.quota.settings import QuotaSettings
from headgate.engines.stops import handled
from headgate.errors import EndpointError
from headgate.heap import give_buffers_back, trim_heap
from headgate.hosts import allow_files, is_loopback, listening
from headgate.metrics import endpoint
from headgate.places import tried
from headgate.service.admin import Admin
from headgate.service.app import application
from headgate.service.bounds import BoundedServer
from headgate.service.counted import Counted
from headgate.service.pages.answers import Pages
from headgate.service.pages.output import Output
from headgate.service.patience import PatientProtocol
from headgate.stores import check_reachable

_MOST = 1000
"""Of connections and of requests that are answered. As many files again may be open for tables and metrics."""
_LAST_ANSWERS_S = 5


def serve(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Serve until a signal ends it; requests that are being answered are finished. Raises HeadgateError."""
    quota = QuotaSettings() if arguments.conf_dir is None else load_conf(arguments.conf_dir).quota
    tokens = frozenset({*quota.admin_tokens, *_tokens(arguments.token_file)})
    _check(arguments, tokens)
    output = arguments.output
    check_reachable(output, "OUTPUT")
    is_tried = bool(tried(output))
    admin = Admin(output, quota, tokens, tell, is_tried=is_tried)
    pages = Pages(Output(output, quota), quota, output)
    give_buffers_back()
    most = allow_files(2 * _MOST) // 2
    app = Counted(application(admin, pages, tokens, output, arguments.host, most=most))
    server = BoundedServer(_config(app, arguments), PatientProtocol, most, app.refused.inc)

    def stop(*_: object) -> None:
        """While uvicorn runs, it minds Ctrl-C and SIGTERM itself, and raises them again at its end."""
        server.should_exit = True

    with (
        handled(stop),
        endpoint.listening(MetricsSettings(port=arguments.metrics_port), app.registry),
        listening(arguments.host, arguments.port, is_ipv6_alone=True) as listener,
    ):
        scheme, address = "http" if arguments.tls_cert is None else "https", listener.getsockname()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        tell(f"{scheme}://{host}:{address[1]}: the page and the resource groups of {output}")
        if is_tried:
            tell(f"{output} is of headgate try or replay, and no job reads what is changed there: the admin API is off")
        elif not tokens:
            tell("no tokens: the admin API is off; --token-file switches it on")
        elif admin.is_read_only:
            tell(f"{output} cannot be written: changes are refused")
        server.run(sockets=[listener])
    tell("stopped")
    return 0


def _config(app: ASGIApp, arguments: argparse.Namespace) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
        callback_notify=_trim,  # every 30 s
        ssl_certfile=arguments.tls_cert,
        ssl_keyfile=arguments.tls_key,
    )


async def _trim() -> None:
    trim_heap()


def _tokens(path: str | None) -> list[str]:
    """One a line; blank lines count for nothing."""
    if path is None:
        return []
    try:
        tokens = [line.strip() for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise EndpointError(
            f"--token-file {path}: got {error}; allowed: a file with a token a line; correct it"
        ) from error
    if not tokens or not all(map(str.isascii, tokens)):
        got = "other than ASCII" if tokens else "no token"
        raise EndpointError(
            f"--token-file {path}: got {got}; allowed: one or more of ASCII, each on a line; correct it"
        )
    return tokens


def _check(arguments: argparse.Namespace, tokens: frozenset[str]) -> None:
    """Whoever can reach it must be known, and must not be listened in to. Raises EndpointError."""
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise EndpointError("got one of --tls-cert and --tls-key; allowed: both or none; give the other one")
    if arguments.tls_cert is not None:
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(arguments.tls_cert, arguments.tls_key, password=lambda: b"")
        except OSError as error:
            raise EndpointError(
                f"--tls-cert {arguments.tls_cert}, --tls-key {arguments.tls_key}: got {error.strerror or error}; "
                "allowed: a certificate and its key in PEM, without a passphrase; correct them"
            ) from error
    if not is_loopback(arguments.host) and not (tokens and arguments.tls_cert is not None):
        raise EndpointError(
            f"--host {arguments.host}: got an address that others reach; allowed: 127.0.0.1, or one with --token-file, "
            "--tls-cert and --tls-key; give these, or leave --host out"
        )
