"""A user's quota of bytes on two real Kafka brokers: how exactly `headgate enforce` keeps it, and what it costs others.

    .venv/bin/python tests/benchmarks/kafka_quota.py [--minutes M]

Two brokers, six topics of user acme offering 20, 60, 200, 40, 120 and 300 kB/s, three on each broker, quota 300 kB/s;
beside it user globex, without a quota. The brokers' own quota of half of it on each is the other side.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from _bench import Results, parser
from kafka.admin import NewTopic

from headgate.cluster.kafka_admin import KafkaAdmin
from headgate.cluster.kafka_brokers import KafkaBrokers
from headgate.cluster.kafka_limits import KafkaLimits
from headgate.conf.cluster import ClusterConf, load_cluster

TESTS = Path(__file__).parents[1]
LIB = Path(__file__).parents[2] / "lib"
SERVERS = "127.0.0.1:19201,127.0.0.1:19202"
QUOTA, PERIOD_S, SETTLING_S = 300_000, 2, 30
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


def script(*arguments: str) -> None:
    done = subprocess.run([TESTS / "kafka-cluster.sh", *arguments], check=False, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"kafka-cluster.sh {arguments[0]} ended with {done.returncode}")


class Publishers:
    """A process that publishes as a user. Rates in kB/s."""

    def __init__(self, user: str) -> None:
        self._user = user
        program = Path(__file__).with_name("_kafka_publishers.py")
        self._process = subprocess.Popen([sys.executable, program, user, SERVERS], stdin=subprocess.PIPE, text=True)

    def set(self, rates: Mapping[str, float]) -> None:
        assert self._process.stdin
        for topic, rate in rates.items():
            self._process.stdin.write(f"{self._user}.{topic} {rate * 1000}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.communicate(timeout=60)


class Sizes:
    """What the logs of a user hold, second by second, from a thread. Seconds are since the start."""

    def __init__(self, conf: ClusterConf, user: str) -> None:
        self._brokers, self._prefix, self._stop = KafkaBrokers(conf), f"{user}.", threading.Event()
        self._names = self._brokers.brokers()
        self._looks: list[tuple[float, dict[str, int]]] = []
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _run(self) -> None:
        while not self._stop.wait(1 - self.now_s % 1):
            at_s, found = self.now_s, {}
            for broker in self._names:
                for (topic, _), log in self._brokers.look(broker).readings.items():
                    if log is not None and topic.startswith(self._prefix):
                        found[topic.removeprefix(self._prefix).partition("-")[0]] = log.bytes
            self._looks.append((at_s, found))

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def mean(self, first_s: float, last_s: float, topic: str | None = None) -> float:
        looks = [(at_s, now) for at_s, now in self._looks if first_s <= at_s <= last_s]
        (start_s, before), (end_s, after) = looks[0], looks[-1]
        return (_of(after, topic) - _of(before, topic)) / (end_s - start_s)

    def worst_second(self, first_s: float, last_s: float) -> float:
        return max(
            (_of(now) - _of(before)) / (end_s - start_s)
            for (start_s, before), (end_s, now) in pairwise(self._looks)
            if first_s < end_s <= last_s
        )

    def off(self, first_s: float, last_s: float, length_s: float) -> float:
        """In percent, how far the mean of the worst interval of that length is off the quota."""
        starts = [at_s for at_s, _ in self._looks if first_s <= at_s <= last_s - length_s]
        return 100 * max((self.mean(start_s, start_s + length_s) / QUOTA - 1 for start_s in starts), key=abs)


def _of(sizes: Mapping[str, int], topic: str | None = None) -> int:
    return sum(sizes.values()) if topic is None else sizes[topic]


@contextmanager
def enforced(file: Path, folder: Path) -> Iterator[Path]:
    """Collect and enforce --apply while the block runs; gives what enforce says."""
    given = ["--cluster", str(file), "--output", str(folder / "out")]
    screen = folder / "enforce.log"
    environment = os.environ | {"PYTHONPATH": str(LIB)}
    with screen.open("w") as log, (folder / "collect.log").open("w") as other:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "headgate", name, *given, *more], env=environment, stdout=to, stderr=to
            )
            for name, more, to in (("collect", [], other), ("enforce", ["--apply"], log))
        ]
        try:
            yield screen
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def brokers_own(results: Results, sizes: Sizes, acme: Publishers, limits: KafkaLimits, minutes: float) -> None:
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


def told(results: Results, what: str, sizes: Sizes, first_s: float, last_s: float) -> None:
    results.measure(f"{what}: mean of the worst minute, off", "%", [sizes.off(first_s, last_s, 60)])
    off = 100 * (sizes.mean(first_s, last_s) / QUOTA - 1)
    results.measure(f"{what}: mean of all the time, off", "%", [off])
    results.measure(f"{what}: worst second", "quotas", [sizes.worst_second(first_s, last_s) / QUOTA])


def enforce(
    results: Results, sizes: Sizes, other: Sizes, acme: Publishers, file: Path, folder: Path, minutes: float
) -> None:
    """Steady, then demand on one broker alone, then as before."""
    with enforced(file, folder) as screen:
        began_s = sizes.now_s
        time.sleep(SETTLING_S + 60 * minutes + 10)
        steady_s, end_s = began_s + SETTLING_S, sizes.now_s
        pushed = sum(" push " in line for line in screen.read_text().splitlines())
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
    script("start")
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
            users = {user: Publishers(user) for user in ("acme", "globex")}
            users["acme"].set(OFFERED)
            users["globex"].set(OTHER)
            sizes, other = Sizes(conf, "acme"), Sizes(conf, "globex")
            time.sleep(10)
            limits = KafkaLimits(conf)
            brokers_own(results, sizes, users["acme"], limits, arguments.minutes)
            time.sleep(15)
            enforce(results, sizes, other, users["acme"], file, folder, arguments.minutes)
            for one in (sizes, other, *users.values()):
                one.end()
            results.check("nothing is left on the cluster", passed=limits.read(PATH) is None)
    finally:
        script("stop")


if __name__ == "__main__":
    main()
