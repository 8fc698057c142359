"""headgate's model of the entry cache beside the cache of a real broker, on the same publishes and reads, in one run.

    python tests/benchmarks/cache_beside_pulsar.py

One Pulsar broker. Five topics get 100 messages a second of 5 kB; each has a reader that takes a message a fixed time
after it was published, one of them at once. First with the cache's default size, where entries leave it by age, then
with 1 MB, where most leave it for size. When each entry was added and read is the input of the model (profile 4.0).
Compared: hits a second, misses a second and bytes in the cache, as the broker's metrics have them and as the model has.
"""

import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import mean
from typing import Any, NamedTuple

import pulsar
from _bench import Results, parser
from cluster_quota import WEB, admin, cluster, new_tenant

from headgate.cluster.pulsar_brokers import look_of
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import EventKind, Row
from headgate.core.cache.settings import CacheSettings

SERVICE = "pulsar://127.0.0.1:6661"
LAGS_S = {"t0": 0.0, "t1": 0.3, "t2": 0.6, "t3": 0.9, "t4": 1.5}
"""After so long each topic's reader takes a message."""
RATE_PER_S, SIZE_BYTES = 100, 5000
SETTLING_S, MEASURED_S = 25, 60
STATS_PERIOD_S = 5
SIZES_MB = (64, 1)
READER = "s"


class Event(NamedTuple):
    at_s: float
    kind: EventKind
    topic: str
    ledger: int
    entry: int


class Traffic:
    """What goes on while the block runs. events: what a cache hears of it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._stop = threading.Event()
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self._clients = [pulsar.Client(SERVICE, logger=logger) for _ in range(2)]

    def publish(self, topic: str) -> None:
        producer = self._clients[0].create_producer(name_of(topic), batching_enabled=False)

        def added(_: Any, at: Any) -> None:
            self._note(EventKind.ADD, topic, at, time.time())

        due_s = time.monotonic()
        while not self._stop.is_set():
            producer.send_async(b"x" * SIZE_BYTES, added)
            due_s += 1 / RATE_PER_S
            time.sleep(max(due_s - time.monotonic(), 0))
        producer.flush()

    def read(self, topic: str, lag_s: float) -> None:
        """One message waits at the client: when that is taken, the broker reads the next one, once it is there."""
        queue = 1 if lag_s else 1000
        consumer = self._clients[1].subscribe(name_of(topic), READER, receiver_queue_size=queue)
        taken_s = before_s = time.time()
        while not self._stop.is_set():
            try:
                message = consumer.receive(1000)
            except pulsar.Timeout:
                continue
            published_s = message.publish_timestamp() / 1000
            read_s = max(before_s, published_s) if lag_s else time.time()
            self._note(EventKind.READ, topic, message.message_id(), read_s)
            time.sleep(max(published_s + lag_s - time.time(), 0))
            before_s, taken_s = taken_s, time.time()
            consumer.acknowledge(message)

    def _note(self, kind: EventKind, topic: str, at: Any, at_s: float) -> None:
        self.events.append(Event(at_s, kind, topic, at.ledger_id(), at.entry_id()))

    @contextmanager
    def running(self) -> Iterator[None]:
        readers = [threading.Thread(target=self.read, args=one) for one in LAGS_S.items()]
        publishers = [threading.Thread(target=self.publish, args=(topic,)) for topic in LAGS_S]
        for thread in readers:
            thread.start()
        time.sleep(2)  # a cache takes in what somebody is there to read
        for thread in publishers:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in (*publishers, *readers):
                thread.join()
            for client in self._clients:
                client.close()


def name_of(topic: str) -> str:
    return f"persistent://cached/a/{topic}"


def of_broker(first_s: float, last_s: float) -> dict[str, float]:
    """Means of what the broker's metrics say in this time, each of a period of its own."""
    looks = []
    while time.time() < last_s:
        with urllib.request.urlopen(f"http://127.0.0.1:{WEB[0]}/metrics/", timeout=5) as response:
            cache = look_of(response.read().decode()).cache
        assert cache
        if time.time() >= first_s:
            looks.append(cache)
        time.sleep(0.5)
    return {
        "hits": mean(look.hits_per_s for look in looks),
        "misses": mean(look.misses_per_s for look in looks),
        "bytes": mean(look.used_bytes for look in looks),
    }


def of_model(events: list[Event], conf: Mapping[str, object], first_s: float, last_s: float) -> dict[str, float]:
    cache = Cache(CacheSettings.of(conf))
    ordered = sorted(events)
    begin_us = round(ordered[0].at_s * 1e6)
    first: dict[str, tuple[int, int]] = {}
    for one in ordered:
        first[one.topic] = min(first.get(one.topic, (one.ledger, one.entry)), (one.ledger, one.entry))
    rows = [Row(begin_us - 1, seq, EventKind.OPEN, topic, READER, *at) for seq, (topic, at) in enumerate(first.items())]
    for seq, one in enumerate(ordered, len(rows)):
        cursor = None if one.kind is EventKind.ADD else READER
        rows.append(
            Row(round(one.at_s * 1e6), seq, one.kind, one.topic, cursor, one.ledger, one.entry, 1, [SIZE_BYTES])
        )
    totals: list[dict[str, int]] = []
    used: list[int] = []
    for row in rows:
        totals.extend(cache.totals() for bound_s in (first_s, last_s)[len(totals) :] if row.t_us >= bound_s * 1e6)
        cache.feed(row)
        if len(totals) == 1:
            used.append(cache.current_bytes)
    before, after = totals
    rates = {name: (after[name] - before[name]) / (last_s - first_s) for name in ("hits", "misses")}
    return rates | {"bytes": mean(used)}


def main() -> None:
    parser(__doc__).parse_args()
    extra = {"PULSAR_BROKERS": "1", "PULSAR_EXTRA_CONF": f"managedLedgerStatsPeriodSeconds={STATS_PERIOD_S}"}
    with cluster(**extra), Results("cache_beside_pulsar", "The entry cache's model beside a broker's cache") as results:
        new_tenant("cached")
        for size_mb in SIZES_MB:
            admin("POST", f"brokers/configuration/managedLedgerCacheSizeMB/{size_mb}")
            traffic = Traffic()
            with traffic.running():
                time.sleep(SETTLING_S)
                first_s = time.time()
                last_s = first_s + MEASURED_S
                broker = of_broker(first_s, last_s)
            conf = {"headgate.cache.profile": "4.0", "managedLedgerCacheSizeMB": size_mb}
            model = of_model(traffic.events, conf, first_s, last_s)
            for name, unit in (("hits", "/s"), ("misses", "/s"), ("bytes", "B")):
                results.measure(f"{size_mb} MB: {name}, broker", unit, [broker[name]])
                results.measure(f"{size_mb} MB: {name}, model", unit, [model[name]])


if __name__ == "__main__":
    main()
