"""`headgate serve` as a process: its answers, who may ask, bad input, and how it starts and ends."""

import http.client
import json
import os
import random
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.cli import main
from headgate.core.quota.settings import QuotaSettings
from headgate.quota.tables.opened import opened_config
from headgate.service.app import MOST_BYTES
from headgate.service.pages.views import VIEWS
from real_broker import free_ports
from unit.quota.places import tables

LIB = Path(__file__).parents[3] / "lib"
TOKEN = "secret"
GROUPS = "/admin/v2/resourcegroups"
TIMEOUT_S = 60


class Service:
    """A process of it on a free port, with a low limit on open files, which it may raise to the hard one.

    said: its lines so far.
    """

    def __init__(self, *arguments, files="hard"):
        command = ["bash", "-c", f'ulimit -Sn 100; ulimit -Hn {files}; exec "$@"', "bash"]
        command += [sys.executable, "-m", "headgate", "serve", *map(str, arguments), "--port", "0"]
        environment = os.environ | {"PYTHONPATH": str(LIB)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.url = self.process.stdout.readline().decode().partition(": ")[0]
        self.said = ""

    @property
    def address(self):
        return self.url.rpartition("/")[2]

    def ask(self, method, path, body=None, token=TOKEN, headers=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT_S)
        try:
            given = {} if token is None else {"Authorization": f"Bearer {token}"}
            connection.request(method, path, body, given | (headers or {}))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def stop(self, number=signal.SIGTERM):
        """Its exit status, and what it said on its error stream."""
        self.process.send_signal(number)
        said, error = self.process.communicate(timeout=TIMEOUT_S)
        self.said = said.decode()
        return self.process.returncode, error.decode()


@contextmanager
def service(*arguments, **limits):
    one = Service(*arguments, **limits)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.communicate()


def token_file(folder):
    (folder / "tokens").write_text(f"\n{TOKEN}\nother\n")
    return folder / "tokens"


def read(output):
    return opened_config(output, QuotaSettings()).read()


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """With traffic of acme/orders."""
    folder = tmp_path_factory.mktemp("served")
    tables(folder / "out")
    write_deltalake(f"{folder}/out/topic_usage", pa.table({"topic": ["persistent://acme/orders/new"]}))
    return folder / "out"


@pytest.fixture(scope="module")
def served(output):
    with service(output, "--token-file", token_file(output.parent)) as one:
        yield one


def test_a_group_is_created_attached_and_deleted(served, output):
    steps = [
        ("PUT", f"{GROUPS}/gold", '{"publishRateInMsgs": 10}', 204, ""),
        ("GET", GROUPS, None, 200, '["gold"]'),
        ("POST", "/admin/v2/namespaces/acme/orders/resourcegroup/gold", None, 204, ""),
        ("GET", "/admin/v2/namespaces/acme/orders/resourcegroup", None, 200, "gold"),
        ("GET", "/admin/v2/tenants/acme/resourcegroup", None, 200, ""),
        ("DELETE", "/admin/v2/namespaces/acme/orders/resourcegroup", None, 204, ""),
        ("POST", "/admin/v2/persistent/acme/orders/a%2Fb/resourceGroup", "gold", 204, ""),
        ("GET", "/admin/v2/persistent/acme/orders/a%2Fb/resourceGroup?applied=true", None, 200, "gold"),
        ("POST", "/admin/v2/persistent/acme/orders/a%2Fb/resourceGroup", "", 204, ""),
        ("DELETE", f"{GROUPS}/gold", None, 204, ""),
    ]
    for method, path, body, status, text in steps:
        found, headers, answer = served.ask(method, path, body)
        assert (status, text) == (found, answer), path
        assert not text or headers["content-type"] == "application/json"
    assert read(output).groups == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", f"{GROUPS}/none", None, 404, "ResourceGroup does not exist"),
        ("PUT", f"{GROUPS}/gold", "{", 400, "body"),
        ("PUT", f"{GROUPS}/gold", '{"publishRateInMsgs": NaN}', 400, "body"),
        ("PUT", f"{GROUPS}/gold", "[" * 60_000, 400, "body"),
        ("PUT", f"{GROUPS}/gold", b'{"publishRateInMsgs": "\xff"}', 400, "body"),
        ("PUT", f"{GROUPS}/gold", " " * (MOST_BYTES + 1), 413, "more than 65536 bytes"),
        ("PATCH", GROUPS, None, 405, "Method not allowed"),
        ("GET", "/admin/v2/other", None, 404, "Unknown path"),
        ("GET", "/elsewhere", None, 404, "Unknown path"),
        ("POST", "/openapi.json", None, 405, "Method not allowed"),
    ],
)
def test_what_is_refused_has_a_reason(served, method, path, body, status, reason):
    found, _, answer = served.ask(method, path, body)
    assert found == status
    assert reason in json.loads(answer)["reason"]


@pytest.mark.parametrize("path", [GROUPS, "/openapi.json", "/elsewhere"])
@pytest.mark.parametrize("token", [None, "", "secre", "secret2"])
def test_without_a_token_nothing_is_told(served, path, token):
    status, _, answer = served.ask("GET", path, token=token)
    assert status == 403
    assert json.loads(answer) == {"reason": "Unauthorized: an admin token is needed"}


def test_every_token_of_the_file_is_one(served):
    assert [served.ask("GET", GROUPS, token=one)[0] for one in (TOKEN, "other")] == [200, 200]


def test_openapi_describes_each_path_with_the_verbs_that_it_has(served):
    described = json.loads(served.ask("GET", "/openapi.json")[2])
    assert len(described["paths"]) == 7 + len(VIEWS)
    queries = {
        path: [one["name"] for one in of_path["parameters"] if one["in"] == "query"][3:-1]
        for path, of_path in described["paths"].items()
        if path.startswith(("/topics", "/why"))
    }
    assert queries == {
        **{
            path: []
            for path in ("/topics/{topic}", "/why/{topic}", "/why-connection/{connection}", "/why-cache/{topic}")
        },
        "/topics": ["q"],
        "/why-subscription/{topic}": ["subscription"],
    }
    for path, verbs in described["paths"].items():
        example = path.replace("{domain}", "persistent").replace("{", "").replace("}", "")
        allow = set(served.ask("PATCH", example)[1]["allow"].lower().split(", "))
        assert verbs.keys() - {"parameters"} == allow - {"head"}, path


def test_twenty_writers_at_two_services_lose_nothing(served, output):
    """Who is told of a conflict asks again; nobody else's change is lost, nor taken for done."""

    def write(number, one):
        while (status := one.ask("PUT", f"{GROUPS}/w{number}", f'{{"publishRateInMsgs": {number}}}')[0]) == 409:
            pass
        return status

    before = read(output).version
    with service(output, "--token-file", token_file(output.parent)) as other, ThreadPoolExecutor(20) as writers:
        statuses = list(writers.map(write, range(20), [served, other] * 10))
    assert statuses == [204] * 20
    tables = read(output)
    assert {f"w{n}": n for n in range(20)} == {name: group.rates[0] for name, group in tables.groups.items()}
    assert tables.version == before + 20
    for name in tables.groups:
        assert served.ask("DELETE", f"{GROUPS}/{name}")[0] == 204


def fuzzed(chance):
    """A request that means nothing."""
    words = ["resourcegroups", "tenants", "namespaces", "acme", "orders", "resourcegroup", "%", "%zz", "..", "a b", "é"]
    path = "/".join(chance.choice([*words, chance.randbytes(3).hex()]) for _ in range(chance.randrange(5)))
    body = chance.choice([None, chance.randbytes(chance.randrange(99)), b'{"publishRateInMsgs": -2}', b"[1]", b'""'])
    method = chance.choice(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    return method, f"/admin/v2/{quote(path, safe='/%')}", body


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_requests_that_mean_nothing_are_refused_and_change_nothing(served, output, count):
    chance, before = random.Random(count), read(output).version
    for _ in range(count):
        method, path, body = fuzzed(chance)
        status = served.ask(method, path, body)[0]
        assert status < 500, (method, path, body)
        assert status >= 400 or method == "GET", (method, path, body)
    assert read(output).version == before


def test_slow_clients_do_not_keep_others_waiting(served):
    host, _, port = served.address.partition(":")
    slow = [socket.create_connection((host, int(port)), TIMEOUT_S) for _ in range(200)]
    try:
        for one in slow:
            one.sendall(b"PUT /admin/v2/resourcegroups/gold HTTP/1.1\r\nContent-Length: 100\r\n")
        assert served.ask("GET", GROUPS)[0] == 200
    finally:
        for one in slow:
            one.close()


def test_half_of_the_files_that_may_be_open_can_be_connections(tmp_path):
    (port,) = free_ports(1)
    with service(tmp_path / "out", "--metrics-port", port, files=200) as one, ExitStack() as clients:
        host, _, number = one.address.partition(":")
        address = host, int(number)
        there = [clients.enter_context(socket.create_connection(address, TIMEOUT_S)) for _ in range(150)]
        while len(there) > 100:
            closed, _, _ = select.select(there, [], [], TIMEOUT_S)
            assert closed
            there = [client for client in there if client not in closed]
        with urlopen(f"http://127.0.0.1:{port}/metrics") as told:
            lines = told.read().decode().splitlines()
        clients.close()
        assert one.stop() == (0, "")
    assert "headgate_serve_refused_connections_total 50.0" in lines


def test_it_starts_before_the_job_and_goes_on_once_there_are_tables(tmp_path):
    with service(tmp_path / "out", "--token-file", token_file(tmp_path)) as one:
        status, _, answer = one.ask("GET", GROUPS)
        assert status == 503
        assert "start a job that shares quotas with this output once" in json.loads(answer)["reason"]
        tables(tmp_path / "out")
        assert one.ask("PUT", f"{GROUPS}/gold", "{}")[0] == 204
        assert one.ask("GET", GROUPS)[2] == '["gold"]'


def test_an_output_that_was_made_anew_is_read_anew(tmp_path):
    tables(tmp_path / "out")
    with service(tmp_path / "out", "--token-file", token_file(tmp_path)) as one:
        assert one.ask("PUT", f"{GROUPS}/old", "{}")[0] == 204
        shutil.rmtree(tmp_path / "out")
        assert one.ask("GET", GROUPS)[0] == 503
        tables(tmp_path / "out")
        assert one.ask("GET", GROUPS)[2] == "[]"
        assert one.ask("PUT", f"{GROUPS}/new", "{}")[0] == 204


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(tmp_path, number):
    with service(tmp_path) as one:
        status, _, answer = one.ask("GET", GROUPS)
        assert status == 403
        assert "--token-file" in json.loads(answer)["reason"]
        assert one.stop(number) == (0, "")
        assert one.said.splitlines() == ["no tokens: the admin API is off; --token-file switches it on", "stopped"]


def test_answers_are_counted_for_prometheus(tmp_path):
    (port,) = free_ports(1)
    with service(tmp_path / "out", "--metrics-port", port) as one:
        assert one.ask("GET", "/reasons", token=None)[0] == 200
        assert [one.ask("GET", path, token=None)[0] for path in ("/a", "/b")] == [404, 404]
        with urlopen(f"http://127.0.0.1:{port}/metrics") as told:
            lines = told.read().decode().splitlines()
    found = {line for line in lines if line.startswith("headgate_serve_answers_total")}
    assert found == {f'headgate_serve_answers_total{{status="{status}"}} {n}.0' for status, n in ((200, 1), (404, 2))}
    assert any(line.startswith("process_start_time_seconds") for line in lines)


def test_what_the_conf_says_of_tokens_and_updates_holds(tmp_path):
    tables(tmp_path / "out")
    (tmp_path / "conf").mkdir()
    keys = "resourceGroupAdminTokens=of-conf\nresourceGroupUpdateMinusOne=keep\n"
    (tmp_path / "conf" / "broker.conf").write_text(keys)
    with service(tmp_path / "out", "--conf-dir", tmp_path / "conf") as one:
        for rate in (5, -1):
            assert one.ask("PUT", f"{GROUPS}/gold", f'{{"publishRateInMsgs": {rate}}}', token="of-conf")[0] == 204
    assert read(tmp_path / "out").groups["gold"].rates[0] == 5


def test_with_tls_it_is_open_to_others(tmp_path, certificates):
    tls = ["--tls-cert", certificates / "broker.pem", "--tls-key", certificates / "key.pem"]
    with service(tmp_path, "--token-file", token_file(tmp_path), "--host", "0.0.0.0", *tls) as one:
        context = ssl.create_default_context(cafile=certificates / "broker.pem")
        port = int(one.url.rpartition(":")[2])
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=TIMEOUT_S)
        connection.request("GET", "/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
        assert connection.getresponse().status == 200
        connection.close()


def test_on_all_addresses_of_ipv6_it_is_not_on_those_of_ipv4(tmp_path, certificates):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    tls = ["--tls-cert", certificates / "broker.pem", "--tls-key", certificates / "key.pem"]
    with service(tmp_path, "--token-file", token_file(tmp_path), "--host", "::", *tls) as one:
        port = int(one.url.rpartition(":")[2])
        socket.create_connection(("::1", port), TIMEOUT_S).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()


def test_what_it_does_not_start_with(tmp_path, certificates, served, capsys):
    def refused(*arguments):
        assert main(["serve", str(tmp_path), *map(str, arguments)]) == 2
        return capsys.readouterr().err

    tokens, missing = token_file(tmp_path), tmp_path / "missing"
    (tmp_path / "blank").write_text("\n")
    host, _, port = served.address.partition(":")
    assert "allowed: 127.0.0.1, or one with --token-file" in refused("--host", "0.0.0.0", "--token-file", tokens)
    assert "got one of --tls-cert and --tls-key" in refused("--tls-cert", certificates / "broker.pem")
    swapped = ["--tls-key", certificates / "broker.pem", "--tls-cert", certificates / "key.pem"]
    assert "allowed: a certificate and its key in PEM" in refused(*swapped)
    assert f"--token-file {missing}: got" in refused("--token-file", missing)
    assert "got no token" in refused("--token-file", tmp_path / "blank")
    (tmp_path / "odd").write_text("schlüssel\n")
    assert "got other than ASCII" in refused("--token-file", tmp_path / "odd")
    assert f"nothing can listen on {host} port {port}: Address already in use" in refused("--port", port)
