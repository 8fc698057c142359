"""Stands before an S3 server and answers some requests with 503 SlowDown, and others late: what stores do at times.

failing_proxy.py PORT TARGET [--refuse SHARE] [--delay SHARE] [--seconds S] [--seed N]
    GET /-/counts says how many requests were passed on, refused and delayed
"""

import argparse
import http.client
import json
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_OF_CLIENT = {"expect", "connection", "transfer-encoding", "content-length"}
_OF_ONE_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Proxy(ThreadingHTTPServer):
    """Which request fails is drawn from a seed, in the order in which they come."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(("127.0.0.1", options.port), Handler)
        self.options = options
        self.target = urlsplit(options.target).netloc
        self.counts = {"passed": 0, "refused": 0, "delayed": 0}
        self._random = random.Random(options.seed)
        self._lock = threading.Lock()

    def fate(self) -> str:
        with self._lock:
            drawn = self._random.random()
            refused = self.options.refuse
            fate = "refused" if drawn < refused else "delayed" if drawn < refused + self.options.delay else "passed"
            self.counts[fate] += 1
        return fate


class Handler(BaseHTTPRequestHandler):
    """One connection of a client, and one to the server."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def answer(self) -> None:
        if self.path == "/-/counts":
            self._send(200, {}, json.dumps(self.server.counts).encode())
            return
        body = self._body()
        fate = self.server.fate()
        if fate == "refused":
            self._send(503, {"Content-Type": "application/xml"}, SLOW_DOWN)
            return
        if fate == "delayed":
            threading.Event().wait(self.server.options.seconds)
        server = http.client.HTTPConnection(self.server.target)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_CLIENT}
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            content = answer.read()
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OF_ONE_HOP}
            length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self._send(answer.status, headers, content, length)
        finally:
            server.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815  names of the standard library

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, headers: dict[str, str], content: bytes, length: str | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("target")
    for name, default in (("refuse", 0.0), ("delay", 0.0), ("seconds", 1.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--seed", type=int, default=1)
    proxy = Proxy(parser.parse_args())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    proxy.serve_forever()


if __name__ == "__main__":
    main()
