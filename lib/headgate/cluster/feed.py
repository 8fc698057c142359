"""What a collector has found, round by round, as looks at the topics of resources."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headgate.cluster.running import ENFORCER_PATIENCE
from headgate.cluster.schemas import OF_COLLECTOR
from headgate.conf.cluster import Resource
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.shared_quota import Amounts, TopicLook
from headgate.errors import ClusterError
from headgate.tables.delta import Tables

_BACK_US = 30 * SECOND_US
"""A start begins with rounds of so long ago."""


class Looked(NamedTuple):
    """A look at a topic, which may have had no traffic, on its broker."""

    topic: str
    direction: str
    look: TopicLook
    broker: str


def of_resource(resource: Resource, direction: str, looked: Iterable[Looked]) -> Iterator[tuple[str, TopicLook]]:
    """Looks at what shares a resource's quota, in the order in which they end: its topics, or brokers with these.

    Of a broker, a look begins when it was looked at before; what a topic had elsewhere until then is part of it.
    """
    found: dict[tuple[int, str], TopicLook] = {}
    for one in looked:
        if one.direction == direction and resource.has(one.topic):
            key = one.look.at_us, resource.shared_by(one.topic, one.broker)
            other = found.get(key)
            found[key] = one.look if other is None else _together(other, one.look)
    for (_, shared_by), look in sorted(found.items()):
        yield shared_by, look


def _together(one: TopicLook, other: TopicLook) -> TopicLook:
    amounts = Amounts(*(map(sum, zip(one.amounts, other.amounts, strict=True))))
    return TopicLook(max(one.from_us, other.from_us), one.at_us, amounts)


def has_counters_of(output: str, cluster: str) -> bool:
    """Whether there are any in an output. Raises ClusterError where they are of another cluster, and TableError."""
    tables = Tables(output, OF_COLLECTOR, patience=ENFORCER_PATIENCE)
    rows = tables.select("broker_looks", "SELECT DISTINCT cluster FROM t").to_pylist()
    others = sorted({row["cluster"] for row in rows} - {cluster})
    if others:
        raise ClusterError(
            f"--output has counters of the cluster {', '.join(others)}, and cluster.toml names {cluster}; give the "
            "--output of that cluster"
        )
    return bool(rows)


class Feed:
    """Follows the tables of a collector. A round is taken once, when it is whole.

    A topic is where it was counted last. If its broker was looked at and its counters stood still, nothing came; if the
    broker did not answer, nothing is known. Raises TableError.
    """

    def __init__(self, output: str, now_us: int) -> None:
        self._tables = Tables(output, OF_COLLECTOR, patience=ENFORCER_PATIENCE)
        self._seq = self._first(now_us)
        self._broker_of: dict[tuple[str, str], str] = {}
        self._looked_us: dict[str, int] = {}
        self.newest_us = 0
        self._version: int | None = None

    def _first(self, now_us: int) -> int:
        sql = f"SELECT max(seq) AS seq FROM t WHERE at_us < {now_us - _BACK_US}"  # noqa: S608  a number
        return int(self._tables.select("broker_looks", sql).to_pylist()[0]["seq"] or 0)

    def take(self) -> Iterator[Looked]:
        """All looks of the rounds that are new. Where nothing was written since, no rows are read."""
        version = self._tables.version("broker_looks")
        if version == self._version:
            return
        brokers = self._after("broker_looks")
        counters = self._after("counters") if brokers else {}
        self._version = version
        for seq in sorted(brokers):
            yield from self._round(brokers[seq], counters.get(seq, []))
            self._seq = seq

    def _round(self, brokers: list[dict[str, Any]], counters: list[dict[str, Any]]) -> Iterator[Looked]:
        ended: set[tuple[str, str]] = set()
        for row in sorted(counters, key=lambda row: row["at_us"]):
            key = row["topic"], row["direction"]
            is_left = row["from_us"] == row["at_us"] and not row["messages_total"] and not row["bytes_total"]
            if is_left:
                if self._broker_of.get(key) == row["broker"]:
                    del self._broker_of[key]
                continue
            self._broker_of[key] = row["broker"]
            if row["from_us"] < row["at_us"]:
                ended.add(key)
                amounts = Amounts(row["messages"], row["bytes"])
                yield Looked(*key, TopicLook(row["from_us"], row["at_us"], amounts), row["broker"])
        answered = {row["broker"]: row["at_us"] for row in brokers if row["error"] is None}
        for key, broker in self._broker_of.items():
            at_us, from_us = answered.get(broker), self._looked_us.get(broker)
            if key not in ended and at_us is not None and from_us is not None and from_us < at_us:
                yield Looked(*key, TopicLook(from_us, at_us, Amounts(0, 0)), broker)
        self._looked_us |= answered
        self.newest_us = max([self.newest_us, *answered.values()])

    def _after(self, table: str) -> Mapping[int, list[dict[str, Any]]]:
        """Rows of new rounds, by round."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._tables.select(table, f"SELECT * FROM t WHERE seq > {self._seq}").to_pylist():  # noqa: S608
            found[row["seq"]].append(row)
        return found
