"""A running Kafka cluster as its brokers tell: who they are, and what their partitions hold (clusters 1)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.protocol.metadata import MetadataRequest

from headgate.cluster.brokers import BrokerLook
from headgate.cluster.kafka_admin import KafkaAdmin, sent
from headgate.conf.cluster import ClusterConf
from headgate.core.clusters.counters import Counted, Increase
from headgate.core.clusters.logs import Log, Logs
from headgate.errors import ClusterError

_NONE = 0
"""Error code."""


class KafkaBrokers:
    """A Kafka cluster. A topic here is a partition, TOPIC-partition-N; internal topics are left out.

    Raises ClusterError where a broker does not answer, or refuses.
    """

    def __init__(self, conf: ClusterConf) -> None:
        self._conf, self._admin = conf, KafkaAdmin(conf)
        self._nodes: Mapping[str, int] = {}
        self._of_broker: dict[str, KafkaAdmin] = {}

    def name(self) -> str:
        """The cluster id."""
        return self._admin.cluster_id()

    def brokers(self) -> Sequence[str]:
        """HOST:PORT, as clients reach them."""
        self._nodes = self._admin.nodes()
        return sorted(self._nodes)

    def look(self, broker: str) -> BrokerLook[Log | None]:
        """Ends and sizes of the partitions that it leads, and which others there are."""
        node = self._nodes.get(broker)
        if node is None:
            raise ClusterError(f"{broker} is not of the cluster any more; start it again")
        # Each has a client of its own, as one that does not answer breaks whatever its client is asked.
        admin = self._of_broker.setdefault(broker, KafkaAdmin(self._conf, broker))
        readings, version = admin.ask(lambda client: (_readings(client, node), _version(client, node)))
        if readings is None:
            raise ClusterError(
                f"{broker}: it does not tell the sizes of its logs; allowed: a user with Describe on the cluster; give "
                "it that right"
            )
        return BrokerLook(readings, version=version)

    def counting(self, told: Iterable[Increase], looked: Mapping[str, int]) -> Logs:
        """By partition: one that moves goes on."""
        return Logs(told, looked)


def _readings(client: Any, node: int) -> Mapping[Counted, Log | None] | None:
    """None where the broker tells no size. A partition that has just left the broker, or is gone, has none."""
    ids: dict[TopicPartition, str | None] = {}
    readings: dict[Counted, Log | None] = {}
    metadata = sent(client, MetadataRequest(topics=None, allow_auto_topic_creation=False), node).to_dict()
    for topic in metadata["topics"]:
        if topic["error_code"] == _NONE and not topic["is_internal"]:
            topic_id = str(topic.get("topic_id") or "") or None
            for one in topic["partitions"]:
                partition = TopicPartition(topic["name"], one["partition_index"])
                readings[_counted(partition)] = None
                if one["leader_id"] == node:
                    ids[partition] = topic_id
    first, end = (_offsets(client, node, ids, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    sizes = _sizes(client.describe_log_dirs(brokers=[node]))
    if ids and not sizes:
        return None
    for partition in ids.keys() & first.keys() & end.keys() & sizes.keys():
        log = Log(ids[partition], first[partition], end[partition], sizes[partition])
        readings[_counted(partition)] = log
    return readings


def _version(client: Any, node: int) -> str:
    """The newest that has all kinds of requests that the broker takes."""
    return ".".join(map(str, client.get_broker_version_data(node).broker_version))


def _offsets(
    client: Any, node: int, partitions: Iterable[TopicPartition], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    """Of those that the broker leads."""
    answer = sent(client, client._list_partition_offsets_request(dict.fromkeys(partitions, spec), 0), node)
    return {
        TopicPartition(topic.name, one.partition_index): one.offset
        for topic in answer.topics
        for one in topic.partitions
        if one.error_code == _NONE
    }


def _counted(partition: TopicPartition) -> Counted:
    return f"{partition.topic}-partition-{partition.partition}", "in"


def _sizes(of_brokers: Sequence[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic["name"], one["partition_index"]): one["partition_size"]
        for broker in of_brokers
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        for one in topic["partitions"]
        if not one["is_future_key"]
    }
