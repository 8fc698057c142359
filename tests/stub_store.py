"""Object stores that a unit test can have: one that does not answer, and one that refuses everything it is asked.

A real one is in tests/s3_server.py, for integration tests alone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType

import pytest
from deltalake import DeltaTable

from failing_proxy import SLOW_DOWN
from headgate.quota.groups import presence
from headgate.quota.tables import delta as of_quotas
from headgate.quota.tables import topic_tables
from headgate.stores import file_system, file_system_of
from headgate.tables import delta, query
from real_broker import free_ports

SECRET = "only-this-test-knows"


def at(patch: pytest.MonkeyPatch, port: int) -> None:
    """From now on s3a:// is at this port of this machine."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIDTEST",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }.items():
        patch.setenv(name, value)


@pytest.fixture
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens where the store should be."""
    (port,) = free_ports(1)
    at(monkeypatch, port)


def waits(patch: pytest.MonkeyPatch, *others: ModuleType) -> list[dict[str, str] | None]:
    """How long a store would be waited for, as delta-rs has it, by both: for each table that is looked for or opened
    from now on. others: modules that open some besides.
    """
    found = []

    class Watched(DeltaTable):
        def __init__(self, *given, storage_options=None, **more):
            found.append(storage_options)
            super().__init__(*given, storage_options=storage_options, **more)

        @staticmethod
        def is_deltatable(table_uri, storage_options=None):
            found.append(storage_options)
            return DeltaTable.is_deltatable(table_uri, storage_options)

    def watched(by):
        def file_system_by(place, patience):
            found.append(patience.of_delta)
            return by(place, patience)

        return file_system_by

    for module in (delta, query, of_quotas, presence, topic_tables, *others):
        patch.setattr(module, "DeltaTable", Watched)
    for module in (query, of_quotas):
        patch.setattr(module, "file_system_of", watched(file_system_of))
    patch.setattr(topic_tables, "file_system", watched(file_system))
    return found


@contextmanager
def refusing(patch: pytest.MonkeyPatch, status: int, code: str, only: str = "") -> Iterator[None]:
    """A store that answers each request so; only: those with this method, and others as if the bucket were empty."""

    class Refusal(_Quiet):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>So it is.</Message></Error>"
            told = status
            if only and self.command != only:
                is_list = "list-type=2" in self.path
                told = 200 if is_list else 404
                name = "ListBucketResult" if is_list else "Error"
                body = f"<?xml version='1.0'?><{name}>{'' if is_list else '<Code>NoSuchKey</Code>'}</{name}>"
            self.send_response(told)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  as http.server calls them

    with _served(patch, Refusal):
        yield


@contextmanager
def slow_down(patch: pytest.MonkeyPatch, content: bytes, refusals: int) -> Iterator[list[str]]:
    """A store in which each file holds the content, and the first so many times that one is read is 503 SlowDown.

    Yields the methods of the requests.
    """
    methods = []

    class SlowDown(_Quiet):
        def answer(self) -> None:
            methods.append(self.command)
            is_refused = self.command == "GET" and methods.count("GET") <= refusals
            body = SLOW_DOWN if is_refused else content
            self.send_response(503 if is_refused else 206)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_GET = do_HEAD = answer  # noqa: N815  as http.server calls them

    with _served(patch, SlowDown):
        yield methods


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _served(patch: pytest.MonkeyPatch, handler: type[BaseHTTPRequestHandler]) -> Iterator[None]:
    """From now on s3a:// is answered so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            at(patch, server.server_port)
            yield
        finally:
            server.shutdown()
            thread.join()
