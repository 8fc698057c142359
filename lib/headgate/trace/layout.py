"""Who exists in a trace: tenants, namespaces, topics on brokers, producers and the connections that they share.

Topics are numbered 0, 1, ... by popularity. All of this follows from the spec's counts alone, not from the seed.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.draws import Longs
from headgate.trace.spec import TraceSpec

TENANTS = ("acme", "globex", "initech", "umbrella", "hooli")
NAMESPACE_TOPICS = {
    "shop": ("orders", "payments", "carts", "refunds", "invoices", "shipments", "reviews", "prices"),
    "devices": ("telemetry", "alerts", "heartbeats", "commands", "locations", "sensors", "firmware", "errors"),
    "mail": ("sent", "opened", "bounced", "delivered", "queued", "replies", "unsubscribed", "spam"),
    "ads": ("clicks", "impressions", "conversions", "bids", "budgets", "audiences", "campaigns", "keywords"),
}
NAMED_TOPICS = 8
MIX = np.uint64(0x9E3779B97F4A7C15)


class Layout:
    """Where each topic lives, and what it and its clients are called.

    * Tenants take turns in popularity, then namespaces: topic i is number i // tenants // namespaces of its namespace.
    * The topics of each namespace take turns on the brokers.
    * A connection belongs to one tenant on one broker and serves about `topics_per_connection` topics; further
      producers of a topic sit on the tenant's next connections there. So a throttled topic holds back its neighbours.
    * The moving topic goes to the next broker `moves` times, and its clients follow: its bundle was unloaded.

    stage: how often the moving topic has moved by then, 0 for all others.
    """

    def __init__(self, spec: TraceSpec) -> None:
        self._spec = spec
        named_topics = spec.topics <= spec.tenants * spec.namespaces_per_tenant * NAMED_TOPICS
        self._tenant_names = _last_is_noisy(spec.tenants, TENANTS, "tenant")
        self._namespace_names = _last_is_noisy(spec.namespaces_per_tenant, tuple(NAMESPACE_TOPICS), "ns")
        self._broker_names = pa.array([f"broker-{number}" for number in range(1, spec.brokers + 1)])
        known = named_topics and spec.namespaces_per_tenant <= len(NAMESPACE_TOPICS)
        self._topic_names = (
            pa.array([topic for name in self._namespace_names.to_pylist() for topic in NAMESPACE_TOPICS[name]])
            if known
            else None
        )
        self.noisy_topic = min(spec.topics, spec.tenants * spec.namespaces_per_tenant) - 1
        self._moving_topic = min(1, spec.tenants - 1, spec.topics - 1)
        self._slots, self._connections = self._place_connections()

    def stage(self, topic: Longs, time_us: Longs) -> Longs:
        """How often each topic has moved by its time, us from the beginning."""
        moved = time_us * (self._spec.moves + 1) // self._spec.duration_us
        return np.where(topic == self._moving_topic, moved, 0)

    def broker(self, topic: Longs) -> Longs:
        """Broker number of each topic at the beginning."""
        tenant, namespace, number = self._coordinates(topic)
        return (number + namespace + tenant) % self._spec.brokers

    def producers(self, topic: Longs) -> Longs:
        """How many producers each topic has: 1 to producers_per_topic, the noisy topic the most."""
        most = self._spec.producers_per_topic
        mixed = (topic.astype(np.uint64) + np.uint64(1)) * MIX >> np.uint64(33)
        return np.where(topic == self.noisy_topic, most, 1 + (mixed % np.uint64(most)).astype(np.int64))

    def broker_names(self, topic: Longs, stage: Longs) -> pa.Array:
        return self._broker_names.take(pa.array((self.broker(topic) + stage) % self._spec.brokers))

    def topic_names(self, topic: Longs) -> pa.Array:
        """Full names: persistent://tenant/namespace/topic."""
        tenant, namespace, local = self._name_parts(topic)
        return pc.binary_join_element_wise(
            pc.binary_join_element_wise("persistent:/", tenant, "/"), namespace, local, "/"
        )

    def producer_names(self, topic: Longs, producer: Longs) -> pa.Array:
        """Names that are unique in the trace. `producer` counts from 0 within its topic."""
        number = pc.binary_join_element_wise("p", pa.array(producer + 1).cast(pa.string()), "")
        return pc.binary_join_element_wise(*self._name_parts(topic), number, "-")

    def connection_names(self, topic: Longs, producer: Longs, stage: Longs) -> pa.Array:
        """The connection that carries each producer."""
        slot = (self._slots[topic] + producer) % self._connections[self._pair(topic)]
        tenant = self._tenant_names.take(pa.array(topic % self._spec.tenants))
        number = pc.binary_join_element_wise("c", pa.array(slot + 1).cast(pa.string()), "")
        return pc.binary_join_element_wise(tenant, self.broker_names(topic, stage), number, "-")

    def _coordinates(self, topic: Longs) -> tuple[Longs, Longs, Longs]:
        """Tenant, namespace within it, topic within that; all from 0."""
        of_tenant = topic // self._spec.tenants
        spaces = self._spec.namespaces_per_tenant
        return topic % self._spec.tenants, of_tenant % spaces, of_tenant // spaces

    def _name_parts(self, topic: Longs) -> tuple[pa.Array, pa.Array, pa.Array]:
        tenant, namespace, number = self._coordinates(topic)
        if self._topic_names is None:
            digits = pc.utf8_lpad(pa.array(number + 1).cast(pa.string()), _width(self._spec.topics), "0")
            local = pc.binary_join_element_wise("topic", digits, "-")
        else:
            local = self._topic_names.take(pa.array(namespace * NAMED_TOPICS + number))
        return self._tenant_names.take(pa.array(tenant)), self._namespace_names.take(pa.array(namespace)), local

    def _pair(self, topic: Longs) -> Longs:
        return topic % self._spec.tenants * self._spec.brokers + self.broker(topic)

    def _place_connections(self) -> tuple[Longs, Longs]:
        """Each topic's first connection among its tenant's on its broker, and how many there are per such pair."""
        pair = self._pair(np.arange(self._spec.topics))
        order = np.argsort(pair, kind="stable")
        per_pair = np.bincount(pair, minlength=self._spec.tenants * self._spec.brokers)
        rank = np.empty(len(pair), np.int64)
        rank[order] = np.arange(len(pair)) - np.repeat(np.cumsum(per_pair) - per_pair, per_pair)
        return rank // self._spec.topics_per_connection, -(-per_pair // self._spec.topics_per_connection)


def _last_is_noisy(count: int, names: tuple[str, ...], stem: str) -> pa.Array:
    """The first names and always the last one, which is the noisy neighbour's; numbered names beyond the known ones."""
    if count <= len(names):
        return pa.array([*names[: count - 1], names[-1]])
    return pa.array([f"{stem}-{number:0{_width(count)}d}" for number in range(1, count + 1)])


def _width(count: int) -> int:
    return len(str(count))
