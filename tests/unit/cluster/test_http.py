"""Requests to real local servers, with and without TLS: what comes back, what is sent, and what errors say."""

import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest

from headgate.cluster.http import Http
from headgate.conf.cluster import ClusterConf, ClusterSettings
from headgate.errors import ClusterError

TOKEN = "eyJhbGciOiJIUzI1NiJ9.hunter2"
JETTYS_404 = b"<html>\n<head><title>Error 404 Not Found</title></head>\n<body>HTTP ERROR 404</body>\n</html>\n"
TOKENS = "a readable file with one token, of ASCII characters without blanks"


PORT = "see that a broker's web service is there, which usually has port 8080"


class Answer(NamedTuple):
    """reason: None for that of the status. is_stalled: the connection stays open after the body. byte_every_s: the body
    comes so slowly.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    reason: str | None = None
    is_stalled: bool = False
    byte_every_s: float = 0.0


class Asked(NamedTuple):
    method: str
    path: str
    authorization: str | None
    body: bytes


class Handler(BaseHTTPRequestHandler):
    server: "Broker"

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.server.asked.append(Asked(self.command, self.path, self.headers["Authorization"], self.rfile.read(length)))
        answer = self.server.answers[self.path]
        self.send_response(answer.status, answer.reason)
        for name, value in ({"Content-Length": str(len(answer.body))} | dict(answer.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        if answer.byte_every_s:
            for at in range(len(answer.body)):
                self.wfile.write(answer.body[at : at + 1])
                if self.server.is_stopped.wait(answer.byte_every_s):
                    return
        self.wfile.write(answer.body)
        if answer.is_stalled:
            self.wfile.flush()
            self.server.is_stopped.wait()

    do_POST = do_DELETE = do_GET  # noqa: N815  http.server's names

    def log_message(self, *_: object) -> None:
        pass


class Broker(ThreadingHTTPServer):
    """Answers each path as it is told to, and keeps what it is asked."""

    def __init__(self, answers: Mapping[str, Answer], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.is_stopped = dict(answers), list[Asked](), Event()
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server_port}"


@contextmanager
def serving(answers: Mapping[str, Answer], tls: ssl.SSLContext | None = None) -> Iterator[Broker]:
    with Broker(answers, tls) as broker:
        thread = Thread(target=broker.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield broker
        finally:
            broker.is_stopped.set()
            broker.shutdown()
            thread.join()


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Connections are accepted by the system, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def http(folder: Path = Path(), **settings: object) -> Http:
    return Http(ClusterConf(ClusterSettings.model_validate({"timeout_s": 5, **settings}), [], folder))


def refusal(url: str, requests: Http | None = None) -> str:
    with pytest.raises(ClusterError) as raised:
        (requests or http()).get(url)
    return str(raised.value)


def refusal_by(answer: Answer) -> tuple[str, int | None]:
    """Without the address, which it must name."""
    with serving({"/x": answer}) as broker, pytest.raises(ClusterError) as raised:
        http().get(f"{broker.url}/x")
    assert f"{broker.url}/x: " in str(raised.value)
    return str(raised.value).replace(f"{broker.url}/x: ", ""), raised.value.status


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": [1, "\xc3\xa4"]}', {"a": [1, "ä"]}),
        (b"[]", []),
        (b"null", None),
        (b"0", 0),
        (b"", None),
        (b" \n", None),
    ],
)
def test_the_json_at_an_address_is_read_and_an_empty_answer_is_none(body: bytes, expected: object):
    with serving({"/x": Answer(body=body)}) as broker:
        assert expected == http().get(f"{broker.url}/x")


def test_an_answer_without_content_is_none():
    with serving({"/x": Answer(204)}) as broker:
        assert http().get(f"{broker.url}/x") is None


def test_a_change_is_sent_as_json_and_a_removal_without_a_body():
    with serving({"/x": Answer(204)}) as broker:
        http().send("POST", f"{broker.url}/x", {"rate": 1})
        http().send("DELETE", f"{broker.url}/x")
    assert [Asked("POST", "/x", None, b'{"rate": 1}'), Asked("DELETE", "/x", None, b"")] == broker.asked


@pytest.mark.parametrize(
    ("body", "got"),
    [
        (JETTYS_404, repr(JETTYS_404)),
        (b"\xff", repr(b"\xff")),
        (b"x" * 300, repr(b"x" * 200)),
    ],
)
def test_what_is_not_json_is_shown_by_its_beginning(body: bytes, got: str):
    expected = f"got {got}; allowed: JSON, as a Pulsar broker answers; correct the address"
    assert (expected, None) == refusal_by(Answer(body=body))


def with_reason(reason: object) -> bytes:
    return json.dumps({"reason": reason}).encode()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(404, with_reason("Tenant not found")), "404 Tenant not found"),
        (Answer(404, with_reason(None), reason="Tenant not found"), "404 Tenant not found"),
        (Answer(409, with_reason(3)), "409 3"),
        (Answer(412, b'["x"]'), '412 ["x"]'),
        (Answer(412, b'{"reason": "cut o'), '412 {"reason": "cut o'),
        (Answer(500, b"\n --- An unexpected error occurred in the server ---\n\nMessage: x"), None),
        (Answer(500, with_reason("y" * 1000)), f"500 {'y' * 200}"),
        (Answer(503, b"\xff busy"), "503 \ufffd busy"),
        (Answer(304), "304 Not Modified"),
        (
            Answer(401, JETTYS_404, reason="Authentication required"),
            "401 Authentication required; give a token that the broker takes: token_file in cluster.toml",
        ),
        (
            Answer(403, with_reason("Unauthorized to get publish rate")),
            (
                "403 Unauthorized to get publish rate; give a token of the tenant's admin or of a superuser: "
                "token_file in cluster.toml"
            ),
        ),
    ],
)
def test_a_refusal_tells_the_brokers_own_reason_in_one_line(answer: Answer, expected: str | None):
    with serving({"/x": answer}) as broker, pytest.raises(ClusterError) as raised:
        http().get(f"{broker.url}/x")
    expected = expected or "500 --- An unexpected error occurred in the server --- Message: x"
    assert (f"GET {broker.url}/x: {expected}", answer.status) == (str(raised.value), raised.value.status)


@pytest.mark.parametrize("body", [JETTYS_404, b"", b"{}", b"default backend - 404"])
def test_what_is_in_front_of_brokers_does_not_know_what_they_have(body: bytes):
    with serving({"/x": Answer(404, body)}) as broker, pytest.raises(ClusterError) as raised:
        http().get(f"{broker.url}/x")
    assert raised.value.status is None
    assert "no Pulsar broker says so: correct admin_url" in str(raised.value)


def test_a_refused_change_names_its_method():
    with serving({"/x": Answer(405)}) as broker, pytest.raises(ClusterError) as raised:
        http().send("DELETE", f"{broker.url}/x")
    assert (f"DELETE {broker.url}/x: 405 Method Not Allowed", 405) == (str(raised.value), raised.value.status)


def test_a_refusal_whose_body_does_not_come_tells_the_status():
    with serving({"/x": Answer(500, b"", {"Content-Length": "5"}, is_stalled=True)}) as broker:
        with pytest.raises(ClusterError) as raised, http(timeout_s=1).stream(f"{broker.url}/x"):
            pass
        broker.is_stopped.set()
    assert (f"GET {broker.url}/x: 500 Internal Server Error", 500) == (str(raised.value), raised.value.status)


def test_a_port_where_nobody_listens_is_named():
    with listening() as server:
        url = url_of(server)
    assert f"{url}/x: Connection refused; {PORT}" == refusal(f"{url}/x")


def test_a_broker_that_does_not_answer_is_waited_for_as_long_as_conf_says():
    with listening() as server:
        url = url_of(server)
        assert f"{url}/x: no answer in time" == refusal(f"{url}/x", http(timeout_s=1))


def test_an_answer_that_stops_is_waited_for_as_long_as_conf_says():
    with serving({"/x": Answer(200, b"[", {"Content-Length": "5"}, is_stalled=True)}) as broker:
        assert f"{broker.url}/x: no answer in time" == refusal(f"{broker.url}/x", http(timeout_s=1))
        with pytest.raises(ClusterError) as raised, http(timeout_s=1).stream(f"{broker.url}/x") as answer:
            list(answer.pieces)
        broker.is_stopped.set()
    assert f"{broker.url}/x: no answer in time" == str(raised.value)


def test_an_answer_that_comes_byte_by_byte_is_waited_for_as_long_as_conf_says():
    with serving({"/x": Answer(body=b" " * 100, byte_every_s=0.1)}) as broker:
        assert f"{broker.url}/x: no answer in time" == refusal(f"{broker.url}/x", http(timeout_s=1))
        assert len(broker.asked) == 1


def test_a_refusal_that_comes_byte_by_byte_is_waited_for_as_long_as_conf_says():
    with serving({"/x": Answer(500, b" " * 100, byte_every_s=0.6)}) as broker:
        began_s = time.monotonic()
        assert f"GET {broker.url}/x: 500 Internal Server Error" == refusal(f"{broker.url}/x", http(timeout_s=1))
        assert time.monotonic() - began_s < 30


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.0.0.1:9999999999999999999", "too large"),
        ("127.0.0.1:x", "nonnumeric port: 'x'"),
        ("one two:1", "can't contain control characters"),
        ("a..b:1", "label empty or too long"),
        ("[::1:1", "Invalid IPv6 URL"),
    ],
)
def test_a_broker_whose_address_cannot_be_is_named(host: str, why: str):
    message = refusal(f"http://{host}/x")
    assert message.startswith(f"http://{host}/x: ")
    assert why in message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x46", "no HTTP there; write https:// in admin_url, or another port"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "no HTTP there; write https:// in admin_url, or another port"),
        (b"", f"no answer; {PORT}"),
    ],
)
def test_a_server_of_another_protocol_is_told_without_its_bytes(answer: bytes, expected: str):
    def answer_one() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with listening() as server:
        thread = Thread(target=answer_one)
        thread.start()
        url = url_of(server)
        assert f"{url}/x: {expected}" == refusal(f"{url}/x")
        thread.join()


def streamed(answer: Answer) -> bytes:
    with serving({"/x": answer}) as broker, http().stream(f"{broker.url}/x") as found:
        return b"".join(found.pieces)


CHUNKED = {"Transfer-Encoding": "chunked"}


def test_an_answer_is_streamed_whether_in_chunks_or_by_its_length():
    bodies = streamed(Answer(body=b"one\ntwo\n")), streamed(Answer(body=b"3\r\none\r\n0\r\n\r\n", headers=CHUNKED))
    assert (b"one\ntwo\n", b"one") == bodies


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"one\ntwo\n", headers={"Content-Length": "10"}),
        Answer(body=b"9\r\none", headers=CHUNKED),
        Answer(body=b"3\r\none\r\n", headers=CHUNKED),
        Answer(body=b"", headers=CHUNKED),
    ],
)
def test_a_streamed_answer_that_ends_early_is_an_error(answer: Answer):
    with pytest.raises(ClusterError) as raised:
        streamed(answer)
    assert str(raised.value).endswith("/x: the answer ends early")


def test_json_that_ends_early_is_an_error():
    assert ("the answer ends early", None) == refusal_by(Answer(body=b"[1]", headers={"Content-Length": "10"}))


@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("POST", b'{"rate": 1}'), ("DELETE", b"")])
def test_a_broker_that_sends_on_to_the_owner_of_a_topic_is_followed_with_method_body_and_token(
    tmp_path: Path, method: str, body: bytes
):
    (tmp_path / "token").write_text(TOKEN)
    with ExitStack() as stack:
        owner = stack.enter_context(serving({"/x?authoritative=false": Answer(204)}))
        other = Answer(307, headers={"Location": f"{owner.url}/x?authoritative=false"})
        broker = stack.enter_context(serving({"/x": other}))
        http(tmp_path, token_file="token").send(method, f"{broker.url}/x", json.loads(body) if body else None)
    assert [Asked(method, "/x?authoritative=false", f"Bearer {TOKEN}", body)] == owner.asked


def test_brokers_that_send_on_in_a_circle_are_an_error():
    with serving({"/x": Answer(307, headers={"Location": "/x"})}) as broker:
        message = refusal(f"{broker.url}/x")
    assert message.startswith(f"GET {broker.url}/x: 307 The HTTP server returned a redirect error")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (TOKEN, TOKEN),
        (f"{TOKEN}\n", TOKEN),
        (f" \t{TOKEN} \r\n", TOKEN),
    ],
)
def test_the_token_is_sent_as_bearer_without_blanks_around_it(tmp_path: Path, text: str, sent: str):
    (tmp_path / "token").write_text(text)
    with serving({"/x": Answer()}) as broker:
        http(tmp_path, token_file="token").get(f"{broker.url}/x")
    assert [Asked("GET", "/x", f"Bearer {sent}", b"")] == broker.asked


def test_the_token_is_read_anew_for_each_request(tmp_path: Path):
    requests = http(tmp_path, token_file="token")
    with serving({"/x": Answer()}) as broker:
        for token in ("first", "second"):
            (tmp_path / "token").write_text(token)
            requests.get(f"{broker.url}/x")
    assert ["Bearer first", "Bearer second"] == [asked.authorization for asked in broker.asked]


def test_without_a_token_file_none_is_sent():
    with serving({"/x": Answer()}) as broker:
        http().get(f"{broker.url}/x")
    assert [None] == [asked.authorization for asked in broker.asked]


def test_a_missing_token_file_is_named(tmp_path: Path):
    expected = f"token_file {tmp_path / 'token'}: got No such file or directory; allowed: {TOKENS}"
    assert expected == refusal("http://127.0.0.1:1/x", http(tmp_path, token_file="token"))


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"", "an empty file"),
        (b" \n", "an empty file"),
        (TOKEN.encode() + b"\xc3\xa4", "other than ASCII"),
        (TOKEN.encode() + b"\nsecond", "blanks or control characters in it"),
        (b"token: " + TOKEN.encode(), "blanks or control characters in it"),
        (TOKEN.encode() + b"\x00", "blanks or control characters in it"),
    ],
)
def test_a_file_that_is_no_token_is_named_and_nothing_of_it_is_shown(tmp_path: Path, content: bytes, got: str):
    (tmp_path / "token").write_bytes(content)
    with serving({}) as broker:
        message = refusal(f"{broker.url}/x", http(tmp_path, token_file="token"))
    assert (f"token_file {tmp_path / 'token'}: got {got}; allowed: {TOKENS}", []) == (message, broker.asked)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_no_refusal_shows_the_token(tmp_path: Path, status: int):
    (tmp_path / "token").write_text(TOKEN)
    with serving({"/x": Answer(status)}) as broker:
        message = refusal(f"{broker.url}/x", http(tmp_path, token_file="token"))
    assert [f"Bearer {TOKEN}"] == [asked.authorization for asked in broker.asked]
    assert "hunter2" not in message


def serving_tls(
    certificates: Path, certificate: str, answers: Mapping[str, Answer] = {"/x": Answer(body=b"[1]")}
) -> AbstractContextManager[Broker]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / certificate, certificates / "key.pem")
    return serving(answers, context)


def test_a_broker_is_reached_over_tls_with_its_authority(certificates: Path):
    with serving_tls(certificates, "broker.pem") as broker:
        assert [1] == http(certificates, ca_file="broker.pem").get(f"{broker.url}/x")
        with http(certificates, ca_file="broker.pem").stream(f"{broker.url}/x") as answer:
            assert [b"[1]"] == list(answer.pieces)


@pytest.mark.parametrize(
    ("certificate", "ca_file", "why"),
    [
        ("broker.pem", "other.pem", "self-signed certificate"),
        ("broker.pem", None, "self-signed certificate"),
        ("expired.pem", "expired.pem", "certificate has expired"),
        (
            "elsewhere.pem",
            "elsewhere.pem",
            "IP address mismatch, certificate is not valid for '127.0.0.1'.",
        ),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted_is_refused_before_the_token_is_sent(
    certificates: Path, tmp_path: Path, certificate: str, ca_file: str | None, why: str
):
    (tmp_path / "token").write_text(TOKEN)
    settings = {} if ca_file is None else {"ca_file": str(certificates / ca_file)}
    with serving_tls(certificates, certificate) as broker:
        message = refusal(f"{broker.url}/x", http(tmp_path, token_file="token", **settings))
    remedy = "correct ca_file, or renew the certificate"
    assert f"{broker.url}/x: the broker's certificate is refused: {why}; {remedy}" == message
    assert [] == broker.asked


def test_http_to_a_port_with_tls_is_an_error_of_printable_characters(certificates: Path):
    with serving_tls(certificates, "broker.pem") as broker:
        url = f"{broker.url.replace('https', 'http')}/x"
        message = refusal(url)
    assert message.startswith(f"{url}: ")
    assert message.isprintable()
    assert [] == broker.asked


def test_tls_to_a_port_without_it_says_so(certificates: Path):
    with serving({}) as broker:
        url = f"{broker.url.replace('http', 'https')}/x"
        message = refusal(url, http(certificates, ca_file="broker.pem"))
    assert message.startswith(f"{url}: no TLS there (")
    assert message.endswith("); write http:// in admin_url, or another port")


@pytest.mark.parametrize("status", [302, 307])
def test_a_token_never_follows_from_tls_to_a_port_without_it(certificates: Path, status: int):
    token = certificates / "token"
    token.write_text(TOKEN)
    with ExitStack() as stack:
        clear = stack.enter_context(serving({"/x": Answer()}))
        answers = {"/x": Answer(status, headers={"Location": f"{clear.url}/x"})}
        broker = stack.enter_context(serving_tls(certificates, "broker.pem", answers))
        message = refusal(f"{broker.url}/x", http(certificates, token_file="token", ca_file="broker.pem"))
    assert ([], True) == (clear.asked, message.startswith(f"GET {broker.url}/x: {status} "))


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_ca_file_that_is_none_is_named_at_once(tmp_path: Path, content: bytes | None):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ClusterError) as raised:
        http(tmp_path, ca_file="ca.pem")
    assert str(raised.value).startswith(f"ca_file {file}: got ")
    assert str(raised.value).endswith("; allowed: a PEM file of authorities")
