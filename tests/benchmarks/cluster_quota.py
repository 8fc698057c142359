"""A tenant's quota on two real Pulsar brokers: Pulsar's own resource group, and headgate enforce, in one run.

    python tests/benchmarks/cluster_quota.py [--minutes 2] [--draw] [--only PART]

Six topics in two namespaces offer 20, 60, 200, 40, 120 and 300 messages a second, the tenant's quota is 300. Parts:

* group: Pulsar's resource group of that rate, with its transport of usage, for a minute and a half.
* enforce: headgate collect and enforce --apply for so many minutes after the first half, then a step of demand down
  and up again, then a broker that is killed and started again.
* tenants: how long publishes of a small tenant take alone, and beside one that floods, with and without enforce.
* many: 1,000 topics in 20 namespaces: how long a look, a decision and its pushes take.

What topics get is what the brokers count, second by second. With `--draw` draws docs/pictures/cluster_quota.svg.
"""

import json
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from _bench import Results, parser, ratios
from _clusters import SETTLING_S, Publishers, Seconds, enforced, pushes_in, script
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from headgate.cluster.collect import Collector
from headgate.cluster.enforce import Enforcer
from headgate.cluster.feed import Feed
from headgate.cluster.ledger import Ledger
from headgate.cluster.pulsar_brokers import PulsarBrokers, look_of
from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import clock
from headgate.cluster.schemas import OF_COLLECTOR, OF_ENFORCER
from headgate.conf.cluster import load_cluster
from headgate.tables.delta import Tables

SCRIPT = "pulsar-cluster.sh"
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "cluster_quota.svg"
PORT, WEB_PORT = 6660, 8090
WEB = [WEB_PORT + broker for broker in (1, 2)]
ADMIN = f"http://127.0.0.1:{WEB[0]}/admin/v2"
SERVICE = f"pulsar://127.0.0.1:{PORT + 1},127.0.0.1:{PORT + 2}"
QUOTA, PERIOD_S = 300, 2
ALONE, FLOOD, BY_HAND, ENFORCED = (
    "alone",
    "beside a flood",
    "beside a flood with limits set by hand",
    "beside a flood, enforced",
)
MEASURED_S, TURNS = 30, 2
OFFERED = {"a/t1": 20, "a/t2": 60, "a/t3": 200, "b/t4": 40, "b/t5": 120, "b/t6": 300}


def admin(method: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{ADMIN}/{path}", content, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
    return json.loads(text) if text else None


@contextmanager
def cluster(**environment: str) -> Iterator[None]:
    script(SCRIPT, "start", **environment)
    try:
        yield
    finally:
        script(SCRIPT, "stop", **environment)


def new_tenant(name: str, namespaces: int = 2) -> None:
    admin("PUT", f"tenants/{name}", {"allowedClusters": ["real"]})
    for number in range(namespaces):
        admin("PUT", f"namespaces/{name}/{'ab'[number] if namespaces == 2 else f'n{number}'}", {})


def publishers_of(tenant: str, pending: int = 100) -> Publishers:
    """pending: how many messages of a topic wait at most; then the next one is sent late."""
    return Publishers("_publishers.py", SERVICE, str(pending), prefix=f"persistent://{tenant}/")


def took(publishers: Publishers) -> dict[str, list[tuple[float, float]]]:
    """End them: when each message was sent, and how long it took, by topic."""
    return {topic.split("/", 3)[3]: took for topic, took in json.loads(publishers.end()).items()}


def counts_of(tenant: str) -> Seconds:
    """What the brokers count of a tenant."""
    last: dict[tuple[int, str], int] = {}
    total: Counter[str] = Counter()

    def totals() -> Mapping[str, int]:
        for port in WEB:
            for topic, count in _counted(port, f"persistent://{tenant}/").items():
                before = last.get((port, topic), 0)
                total[topic] += count - before if count >= before else count
                last[port, topic] = count
        return dict(total)

    return Seconds(totals)


def _counted(port: int, prefix: str) -> dict[str, int]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/", timeout=2) as response:
            look = look_of(response.read().decode())
    except OSError:  # a broker that was killed
        return {}
    return {
        topic.removeprefix(prefix): reading.messages
        for (topic, direction), reading in look.readings.items()
        if direction == "in" and topic.startswith(prefix) and "__" not in topic
    }


def conf_in(folder: Path, tenant: str, quota: int = QUOTA) -> Path:
    file = folder / f"{tenant}.toml"
    file.write_text(
        f'[cluster]\nadmin_url = "http://127.0.0.1:{WEB[0]}"\nperiod_s = {PERIOD_S}\n'
        f'[[resource]]\ntenant = "{tenant}"\npublishRateInMsgs = {quota}\n'
    )
    return file


def group(results: Results) -> Seconds:
    """Pulsar's own."""
    new_tenant("grouped")
    admin("PUT", "resourcegroups/quota", {"publishRateInMsgs": QUOTA, "publishRateInBytes": -1})
    for namespace in ("a", "b"):
        admin("POST", f"namespaces/grouped/{namespace}/resourcegroup/quota")
    publishers = publishers_of("grouped")
    counts = counts_of("grouped")
    publishers.set(OFFERED)
    time.sleep(SETTLING_S + 65)
    last_s = counts.now_s
    counts.end()
    publishers.end()
    results.measure(
        "Pulsar's group: mean in the worst minute, off", "%", [100 * counts.off_in_a_minute(SETTLING_S, last_s, QUOTA)]
    )
    results.measure("Pulsar's group: worst second", "quotas", [counts.worst_second(SETTLING_S, last_s) / QUOTA])
    return counts


def enforce(results: Results, folder: Path, minutes: float) -> Seconds:
    """Steady, then steps of demand, then a broker that is gone for a while."""
    new_tenant("acme")
    publishers, counts = publishers_of("acme"), counts_of("acme")
    publishers.set(OFFERED)
    time.sleep(10)
    with enforced(conf_in(folder, "acme"), folder / "out-acme") as screen:
        began_s = counts.now_s
        time.sleep(SETTLING_S + 60 * minutes + 5)
        steady_s, end_s = began_s + SETTLING_S, counts.now_s
        pushed = pushes_in(screen)
        off = 100 * counts.off_in_a_minute(steady_s, end_s, QUOTA)
        results.target("headgate enforce: mean in the worst minute, off", "%", [abs(off)], at_most=3)
        results.target("worst second", "quotas", [counts.worst_second(steady_s, end_s) / QUOTA], at_most=1.5)
        results.target("pushes a minute", "", [pushed * 60 / (end_s - began_s)], at_most=4)
        for topic in ("a/t1", "b/t4"):
            got = counts.mean(steady_s, end_s, topic) / OFFERED[topic]
            results.target(f"a topic below the level ({OFFERED[topic]}/s) gets", "x", [got], at_least=0.98)
        for what, rates in (("down", {"b/t6": 20, "a/t3": 20}), ("up", {"b/t6": 300, "a/t3": 200})):
            publishers.set(rates)
            step_s = counts.now_s
            time.sleep(45)
            wanted = min(QUOTA, sum((OFFERED | rates).values()))
            off = 100 * abs(counts.mean(step_s + 15, step_s + 25) / wanted - 1)
            results.target(f"15 to 25 s after a step of demand {what}: off", "%", [off], at_most=10)
        script(SCRIPT, "kill-broker", "2")
        time.sleep(10)
        script(SCRIPT, "start-broker", "2")
        back_s = counts.now_s
        time.sleep(100)
        off = 100 * abs(counts.mean(back_s + 60, back_s + 90) / QUOTA - 1)
        results.target("a minute after a broker was killed and started again: off", "%", [off], at_most=5)
    counts.end()
    publishers.end()
    left = [admin("GET", f"namespaces/acme/{name}/publishRate") for name in ("a", "b")]
    results.check("nothing is left on the cluster", passed=left == [None, None])
    return counts


def p99_ms(took: list[tuple[float, float]], spans: list[tuple[float, float]]) -> list[float]:
    """In each span of time."""
    of = [sorted(took_s for sent_s, took_s in took if first_s <= sent_s <= last_s) for first_s, last_s in spans]
    return [1000 * one[int(0.99 * len(one))] for one in of]


def tenants(results: Results, folder: Path) -> None:
    """One floods; the other should not notice.

    The same limit, set by hand, says what of it is the machine's, which brokers, clients and headgate share. In turns,
    as brokers grow faster in their first minutes.
    """
    new_tenant("innocent")
    new_tenant("greedy")
    flood = {f"{namespace}/t{n}": 1500 for namespace in "ab" for n in range(3)}
    innocent, greedy = publishers_of("innocent"), publishers_of("greedy")
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def measured(name: str) -> None:
        time.sleep(15)
        first_s = time.time()
        time.sleep(MEASURED_S)
        spans[name].append((first_s, time.time()))

    innocent.set({"a/t": 100, "b/t": 100})
    greedy.set(flood)
    time.sleep(SETTLING_S)
    for turn in range(TURNS):
        greedy.set(dict.fromkeys(flood, 0))
        measured(ALONE)
        greedy.set(flood)
        measured(FLOOD)
        with limited_by_hand(QUOTA // len(flood)):
            measured(BY_HAND)
        with enforced(conf_in(folder, "greedy"), folder / f"out-greedy-{turn}"):
            measured(ENFORCED)
    greedy.end()
    all_took = [one for of_topic in took(innocent).values() for one in of_topic]
    p99 = {name: p99_ms(all_took, of) for name, of in spans.items()}
    for name, values in p99.items():
        results.measure(f"p99 of a small tenant's publishes, {name}", "ms", values)
    results.target(f"{ENFORCED} / {ALONE}", "x", ratios(p99[ENFORCED], p99[ALONE]), at_most=1.1)
    results.measure(f"{ENFORCED} / {BY_HAND}", "x", ratios(p99[ENFORCED], p99[BY_HAND]))


@contextmanager
def limited_by_hand(messages_per_s: int) -> Iterator[None]:
    """Each topic of greedy."""
    paths = [f"namespaces/greedy/{namespace}/publishRate" for namespace in "ab"]
    for path in paths:
        admin("POST", path, {"publishThrottlingRateInMsg": messages_per_s, "publishThrottlingRateInByte": -1})
    yield
    for path in paths:
        admin("DELETE", path)


def many(results: Results, folder: Path) -> None:
    """A thousand topics, all looked at, decided about and limited."""
    new_tenant("many", 20)
    publishers = publishers_of("many")
    for number in range(20):
        admin("PUT", f"persistent/many/n{number}/t/partitions", 50)
    publishers.set({f"n{number}/t": 50 for number in range(20)})
    time.sleep(10)
    conf, now_us = load_cluster(conf_in(folder, "many")), clock()
    output = str(folder / "out-many")
    collector = Collector(PulsarBrokers(conf), Tables(output, OF_COLLECTOR), "benchmark", now_us)
    collector.look()
    limits = PulsarLimits(conf)
    ledger = Ledger(Tables(output, OF_ENFORCER), "benchmark", now_us)
    ledger.take(threading.Event(), print)
    enforcer, feed = Enforcer(conf.resources, limits, Pushing(limits, ledger), print), Feed(output, now_us())
    time.sleep(PERIOD_S)
    began_s = time.monotonic()
    collector.look()
    looked_s = time.monotonic()
    enforcer.round(feed, now_us())
    ended_s = time.monotonic()
    results.measure("1,000 topics: look", "s", [looked_s - began_s])
    results.target("1,000 topics, 20 namespaces: look, decision, pushes", "s", [ended_s - began_s], at_most=1)
    enforcer.release("end")
    ledger.end()
    publishers.end()


def draw(of_group: Seconds, of_enforce: Seconds) -> None:
    mpl.rcParams["svg.hashsalt"] = "headgate"
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    for counts, label, colour in (
        (of_group, "Pulsar's resource group", "#cc4125"),
        (of_enforce, "headgate enforce", "#0b5394"),
    ):
        seconds = counts.seconds()
        axes.plot([at_s for at_s, _ in seconds], [rate for _, rate in seconds], label=label, color=colour, linewidth=1)
    axes.axhline(QUOTA, color="black", linewidth=0.8, linestyle="--", label=f"quota, {QUOTA}/s")
    axes.set(xlabel="seconds", ylabel="messages/s let in", ylim=(0, None))
    axes.legend(loc="upper right")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--minutes", type=float, default=2, metavar="M", help="of steady demand")
    options.add_argument("--draw", action="store_true", help="draw docs/pictures/cluster_quota.svg")
    options.add_argument("--only", choices=("group", "enforce", "tenants", "many"), help="one part")
    arguments = options.parse_args()
    if arguments.minutes < 1:
        options.error(f"--minutes: got {arguments.minutes}; allowed is 1 or more, for a worst minute")

    def is_wanted(part: str) -> bool:
        return arguments.only in {None, part}

    with (
        tempfile.TemporaryDirectory() as name,
        cluster(),
        Results("cluster_quota", "A tenant's quota on two Pulsar brokers") as results,
    ):
        folder = Path(name)
        of_group = group(results) if is_wanted("group") else None
        of_enforce = enforce(results, folder, arguments.minutes) if is_wanted("enforce") else None
        if arguments.draw and of_group and of_enforce:
            draw(of_group, of_enforce)
        if is_wanted("tenants"):
            tenants(results, folder)
        if is_wanted("many"):
            many(results, folder)


if __name__ == "__main__":
    main()
