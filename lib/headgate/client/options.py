"""The options of a send, as each library has them; type checkers refuse others."""

from datetime import timedelta
from typing import TypedDict


class KafkaOptions(TypedDict, total=False):
    """Those of confluent_kafka.Producer.produce that are not the wrapper's; timestamp: ms since 1970."""

    key: str | bytes | None
    headers: dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]] | None
    timestamp: int


class PulsarOptions(TypedDict, total=False):
    """Those of pulsar.Producer.send_async; event_timestamp, deliver_at: ms since 1970."""

    properties: dict[str, str] | None
    partition_key: str | None
    ordering_key: str | None
    sequence_id: int | None
    replication_clusters: list[str] | None
    disable_replication: bool
    event_timestamp: int | None
    deliver_at: int | None
    deliver_after: timedelta | None


class SendOptions(KafkaOptions, PulsarOptions, total=False):
    """Those of both libraries. A producer takes those of its own."""
