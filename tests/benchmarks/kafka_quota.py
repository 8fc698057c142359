"""A user's quota of bytes on two real Kafka brokers: how exactly `headgate enforce` keeps it, and what it costs others.

    .venv/bin/python tests/benchmarks/kafka_quota.py [--minutes M]

Two brokers, six topics of user acme offering 20, 60, 200, 40, 120 and 300 kB/s, three on each broker, quota 300 kB/s;
beside it user globex, without a quota. The brokers' own quota of half of it on each is the other side.
"""

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from _bench import Results, parser
from _clusters import SETTLING_S, Publishers, Seconds, enforced, pushes_in, script
from kafka.admin import NewTopic

from headgate.cluster.kafka_admin import KafkaAdmin
from headgate.cluster.kafka_brokers import KafkaBrokers
from headgate.cluster.kafka_limits import KafkaLimits
from headgate.conf.cluster import ClusterConf, load_cluster

SCRIPT = "kafka-cluster.sh"
SERVERS = "127.0.0.1:19201,127.0.0.1:19202"
QUOTA, PERIOD_S = 300_000, 2
OFFERED = {"t1": 20, "t2": 60, "t3": 200, "t4": 40, "t5": 120, "t6": 300}
OTHER = {"t1": 100, "t4": 100}
ONE_BROKER = {"t1": 5, "t2": 5, "t3": 5}
PATH = "users/acme/producer_byte_rate"
CONF = f"""[cluster]
kind = "kafka"
bootstrap_servers = "{SERVERS}"
security_protocol = "SASL_PLAINTEXT"
sasl_username = "admin"
sasl_password_file = "password"
period_s = {PERIOD_S}
[[resource]]
user = "acme"
topic_prefix = "acme."
producer_byte_rate = {QUOTA}
"""


def publishers_of(user: str) -> Publishers:
    """Rates in kB/s."""
    return Publishers("_kafka_publishers.py", user, SERVERS, prefix=f"{user}.")


def sizes_of(conf: ClusterConf, user: str) -> Seconds:
    """What the logs of a user hold, in bytes."""
    brokers, prefix = KafkaBrokers(conf), f"{user}."
    names = brokers.brokers()

    def totals() -> Mapping[str, int]:
        return {
            topic.removeprefix(prefix): log.bytes
            for broker in names
            for (topic, _), log in brokers.look(broker).readings.items()
            if log is not None and topic.startswith(prefix)
        }

    return Seconds(totals)


def brokers_own(results: Results, sizes: Seconds, acme: Publishers, limits: KafkaLimits, minutes: float) -> None:
    """Each broker holds the user to half of the quota, whatever it wants there."""
    limits.write(PATH, str(QUOTA // 2))
    began_s = sizes.now_s
    time.sleep(SETTLING_S + 60 * minutes + 10)
    told(results, "half of the quota on each broker", sizes, began_s + SETTLING_S, sizes.now_s)
    acme.set(ONE_BROKER)
    step_s = sizes.now_s
    time.sleep(60)
    off = 100 * abs(sizes.mean(step_s + 25, sizes.now_s) / QUOTA - 1)
    results.measure("half of the quota on each broker, demand on one: off", "%", [off])
    acme.set(OFFERED)
    limits.write(PATH, None)


def told(results: Results, what: str, sizes: Seconds, first_s: float, last_s: float) -> None:
    results.measure(
        f"{what}: mean of the worst minute, off", "%", [100 * sizes.off_in_a_minute(first_s, last_s, QUOTA)]
    )
    off = 100 * (sizes.mean(first_s, last_s) / QUOTA - 1)
    results.measure(f"{what}: mean of all the time, off", "%", [off])
    results.measure(f"{what}: worst second", "quotas", [sizes.worst_second(first_s, last_s) / QUOTA])


def enforce(
    results: Results, sizes: Seconds, other: Seconds, acme: Publishers, file: Path, folder: Path, minutes: float
) -> None:
    """Steady, then demand on one broker alone, then as before."""
    with enforced(file, folder / "out") as screen:
        began_s = sizes.now_s
        time.sleep(SETTLING_S + 60 * minutes + 10)
        steady_s, end_s = began_s + SETTLING_S, sizes.now_s
        pushed = pushes_in(screen)
        told(results, "headgate enforce", sizes, steady_s, end_s)
        results.target("pushes a minute", "", [pushed * 60 / (end_s - began_s)], at_most=4)
        got = other.mean(steady_s, end_s) / 1000 / sum(OTHER.values())
        results.target("the other user gets", "x", [got], at_least=0.98)
        acme.set(ONE_BROKER)
        step_s = sizes.now_s
        time.sleep(120)
        off = 100 * abs(sizes.mean(step_s + 50, sizes.now_s) / QUOTA - 1)
        results.target("after demand has moved to one broker: mean of the next 70 s, off", "%", [off], at_most=10)
    sys.stdout.write(screen.read_text())


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--minutes", type=float, default=2, metavar="M", help="of steady demand")
    arguments = options.parse_args()
    if arguments.minutes < 1:
        options.error(f"--minutes: got {arguments.minutes}; allowed is 1 or more, for a worst minute")
    script(SCRIPT, "start")
    try:
        with (
            tempfile.TemporaryDirectory() as name,
            Results("kafka_quota", "A user's quota on two Kafka brokers") as results,
        ):
            folder = Path(name)
            (folder / "password").write_text("admin-secret")
            file = folder / "cluster.toml"
            file.write_text(CONF)
            conf = load_cluster(file)
            topics = [
                NewTopic(f"{user}.t{number}", replica_assignments={0: [1 if number <= 3 else 2]})
                for user in ("acme", "globex")
                for number in range(1, 7)
            ]
            KafkaAdmin(conf).ask(lambda client: client.create_topics(topics))
            users = {user: publishers_of(user) for user in ("acme", "globex")}
            users["acme"].set(OFFERED)
            users["globex"].set(OTHER)
            sizes, other = sizes_of(conf, "acme"), sizes_of(conf, "globex")
            time.sleep(10)
            limits = KafkaLimits(conf)
            brokers_own(results, sizes, users["acme"], limits, arguments.minutes)
            time.sleep(15)
            enforce(results, sizes, other, users["acme"], file, folder, arguments.minutes)
            for one in (sizes, other, *users.values()):
                one.end()
            results.check("nothing is left on the cluster", passed=limits.read(PATH) is None)
    finally:
        script(SCRIPT, "stop")


if __name__ == "__main__":
    main()
