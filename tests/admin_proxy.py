"""An HTTP proxy before a broker's admin API that a test makes sick, or that calls the test at a change."""

from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Lock, Thread
from typing import Literal, NamedTuple, Self
from urllib.parse import urlsplit

TIMEOUT_S = 60


class Answer(NamedTuple):
    """What a client gets."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"


class Stop(NamedTuple):
    """A change at which the proxy calls `call`: the n-th from now, before or after the broker has it."""

    change: int
    when: Literal["before", "after"]
    call: Callable[[], object]


class AdminProxy:
    """Forwards each request to the broker, changes one after the other.

    refuse: the answer in place of the broker's, None where the broker answers. changes: how many reached the proxy, or
    since `stop_at`, without those that were refused.
    """

    def __init__(self, broker_url: str) -> None:
        self.refuse: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self.changes = 0
        self._delay_s = 0.0
        self._broker = urlsplit(broker_url).netloc
        self._stop: Stop | None = None
        self._is_well, self._change = Event(), Lock()
        self._under_way, self._moved = 0, Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """What cluster.toml is to name as admin_url."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.well()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(TIMEOUT_S)

    def stop_at(self, change: int, when: Literal["before", "after"], call: Callable[[], object]) -> None:
        """Once: `call` at that change. Changes that come later in the same moment share its fate: all are lost before,
        and all arrive after.
        """
        with self._change:
            self._stop, self.changes = Stop(change, when, call), 0

    def go_on(self) -> None:
        """Forget the stop, once nothing is under way that it applies to."""
        with self._moved:
            assert self._moved.wait_for(lambda: not self._under_way, TIMEOUT_S), "requests are under way"
        with self._change:
            self._stop = None

    def answer_late(self, delay_s: float) -> None:
        """The broker has each request at once, and its client waits so long for the answer."""
        self._is_well.clear()
        self._delay_s = delay_s

    def well(self) -> None:
        """Answer as the broker does, at once, also what waits."""
        self.refuse, self._delay_s = lambda _method, _path: None, 0.0
        self._is_well.set()

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """For a request."""
        with self._moved:
            self._under_way += 1
        try:
            refused = self.refuse(method, path)
            if refused is None:
                refused = self._forwarded(method, path, body) if method == "GET" else self._changed(method, path, body)
            if self._delay_s:
                self._is_well.wait(self._delay_s)
            return refused
        finally:
            with self._moved:
                self._under_way -= 1
                self._moved.notify_all()

    def _changed(self, method: str, path: str, body: bytes) -> Answer:
        with self._change:
            self.changes += 1
            stop = self._stop
            if stop is None or self.changes < stop.change:
                return self._forwarded(method, path, body)
            lost = Answer(503)
            if stop.when == "after":
                lost = self._forwarded(method, path, body)
            if self.changes == stop.change:
                stop.call()
            return lost

    def _forwarded(self, method: str, path: str, body: bytes) -> Answer:
        connection = HTTPConnection(self._broker, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body or None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return Answer(response.status, response.read(), response.headers.get_content_type())
        except (OSError, HTTPException) as error:
            return Answer(502, str(error).encode())
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    proxy: AdminProxy
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.server.proxy.answer(self.command, self.path, body)
        try:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        except OSError:  # the client is killed, or waits no more
            self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  http.server's names

    def log_message(self, *_: object) -> None:
        """Nothing."""
