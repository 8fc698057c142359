"""Two real Kafka brokers: what came is counted once, a user's quota is shared between them, and is put back."""

import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.admin import NewTopic

from cluster_processes import TIMEOUT_S, Followed, Process, again_and_again
from headgate.cluster.check import check
from headgate.cluster.kafka_admin import KafkaAdmin
from headgate.cluster.kafka_limits import KafkaLimits
from headgate.cluster.ledger import Ledger, Step
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import clock, own_name
from headgate.cluster.schemas import OF_ENFORCER
from headgate.conf.cluster import load_cluster
from headgate.core.clusters.ledger import PUSH, RELEASED
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError
from headgate.tables.delta import Tables
from integration.runs import await_that
from kafka_cluster import KafkaCluster

CONF = """[cluster]
kind = "kafka"
bootstrap_servers = "{servers}"
security_protocol = "SASL_PLAINTEXT"
sasl_username = "{user}"
sasl_password_file = "password"
period_s = 1
timeout_s = 5
[[resource]]
user = "acme"
topic_prefix = "acme."
producer_byte_rate = 100000
"""
PATH, DEFAULT = "users/acme/producer_byte_rate", "users/<default>/producer_byte_rate"
PLACED = {"acme.one": 1, "acme.two": 2}
# kafka-python does not close the sockets of connections that did not come about.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class User(Followed):
    """acme, whose tables are in `folder`/out, on a cluster that `asked_by` looks at."""

    def __init__(self, cluster: KafkaCluster, folder: Path, asked_by: str = "admin") -> None:
        self.cluster, self.folder, self.file = cluster, folder, folder / "cluster.toml"
        self.file.write_text(CONF.format(servers=cluster.servers, user=asked_by))
        (folder / "password").write_text(f"{asked_by}-secret\n")
        self.conf = load_cluster(self.file)


@pytest.fixture
def user(kafka_cluster: KafkaCluster, tmp_path: Path) -> User:
    return User(kafka_cluster, tmp_path)


@contextmanager
def published(servers: str, bytes_per_s: int) -> Iterator[list[int]]:
    """So much to each topic while the block runs; how many messages arrived is in the list after it."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"} | {
        "bootstrap.servers": servers,
        "sasl.username": "acme",
        "sasl.password": "acme-secret",
        "linger.ms": 5,
    }
    arrived: list[int] = []
    producer = Producer(settings)

    def publish() -> None:
        for topic in PLACED:
            for _ in range(bytes_per_s // 20_000):
                producer.produce(topic, b"x" * 1000, callback=lambda error, _: error or arrived.append(1))
        producer.poll(0)

    try:
        with again_and_again(publish, 0.05):
            yield arrived
    finally:
        producer.flush(TIMEOUT_S)


def test_a_user_shares_its_quota_between_brokers_and_everything_is_put_back_after_a_kill(user: User) -> None:
    topics = [NewTopic(name, replica_assignments={0: [broker]}) for name, broker in PLACED.items()]
    KafkaAdmin(user.conf).ask(lambda client: client.create_topics(topics))
    limits = KafkaLimits(user.conf)
    limits.write(DEFAULT, "5000000")  # the operator's, for all users
    with Process("collect", user) as collect:
        collect.await_text("2 of 2 brokers")
        with published(user.cluster.servers, 200_000) as arrived:
            await_that(
                lambda: len(user.rows("counters", "SELECT DISTINCT seq FROM t WHERE messages > 100")) > 2,
                "traffic in three looks",
                TIMEOUT_S,
            )
            with Process("enforce", user, "--apply") as enforce:
                await_that(lambda: limits.read(PATH), "a limit", TIMEOUT_S)
                assert limits.read(PATH) == "50000"
                enforce.kill()
            assert Process("enforce", user, "--release").run() == 0
        assert (limits.read(PATH), limits.read(DEFAULT)) == (None, "5000000")
        limits.write(DEFAULT, None)
        counted = "SELECT sum(messages) AS n, sum(bytes) AS size FROM t WHERE topic LIKE 'acme.%'"
        await_that(lambda: user.rows("counters", counted)[0]["n"] == len(arrived), "all messages", TIMEOUT_S)
        assert 1000 <= user.rows("counters", counted)[0]["size"] / len(arrived) <= 1200
        user.cluster.run("kill-broker", "2")
        collect.await_text("does not answer")
        limits.write(PATH, "70000")  # which the broker that is away learns before it serves again
        assert limits.read(PATH) == "70000"
        limits.write(PATH, None)
        user.cluster.run("start-broker", "2")
        collect.await_text("answers again")
        assert user.rows("counters", counted)[0]["n"] == len(arrived)
    actions = user.rows("enforced", "SELECT action, before, after FROM t WHERE path LIKE 'users%' ORDER BY at_us")
    assert [tuple(row.values()) for row in actions] == [(PUSH, None, "50000"), (RELEASED, None, None)]


def test_a_user_without_rights_is_told_which_it_lacks(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    guest, said = User(kafka_cluster, tmp_path, "guest"), []
    assert check(Namespace(cluster=str(guest.file), output=None), said.append) == 1
    assert said[-1] == "2 problems"
    assert any(": version 4." in line and "topics would be collected" in line for line in said)
    assert "user acme: no topic is seen that begins with acme.; give Describe on topics" in said
    assert any("ClusterAuthorizationFailedError" in line and "AlterConfigs to set quotas" in line for line in said)


def test_limits_of_many_users_are_set_and_put_back_at_once(user: User) -> None:
    limits, paths = KafkaLimits(user.conf), [f"users/many-{number}/producer_byte_rate" for number in range(20)]
    ledger = Ledger(Tables(user.folder / "out", OF_ENFORCER), own_name(), clock())
    assert ledger.take(threading.Event(), str)
    pushing = Pushing(limits, ledger)
    assert pushing.push(Step("many"), paths, Limit(bytes=1000)) == {}
    assert {limits.read(path) for path in paths} == {"1000"}
    assert pushing.release(Step("many"), paths) == {}
    assert {limits.read(path) for path in paths} == {None}


def test_a_quota_of_another_kind_is_in_the_way(user: User) -> None:
    limits, path = KafkaLimits(user.conf), "clients/<default>/producer_byte_rate"
    assert limits.averaged_us() == 11_000_000
    limits.write(path, "5000000")
    with pytest.raises(ClusterError, match="a quota of client id <default> is there, and Kafka goes by one"):
        limits.paths(user.conf.resources[0], "in")
    limits.write(path, None)
    assert limits.paths(user.conf.resources[0], "in") == [PATH]
