"""A producer of Kafka's confluent_kafka, for a topic with or without partitions of the wrapper's choice."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self
from zlib import crc32

from headgate.client.errors import MissingExtraError
from headgate.client.library import Completed, Settings, client_of, topics
from headgate.client.options import KafkaOptions
from headgate.client.threads import join, started
from headgate.core.protocol.settings import PartitionedSettings
from headgate.errors import InvalidArgument

try:
    import confluent_kafka
except ImportError as missing:
    raise MissingExtraError("confluent-kafka") from missing

LOG = logging.getLogger(__name__)
OWN_OPTIONS = {"queue.buffering.max.messages": 0, "queue.buffering.max.kbytes": 2**31 - 1}
"""The bound is the wrapper's: there is room for all that it hands over."""
DEFAULTS = {"enable.idempotence": True}
"""What is written again after an error keeps its place."""
_OTHER_NAMES = {"delivery.timeout.ms": "message.timeout.ms"}
_POLL_S = 0.1
_TRANSACTION_TIMEOUT_MS = 60_000
"""Of librdkafka."""
_LONGEST_TIMEOUT_MS = 2**31 - 1


def own_options(settings: Settings) -> dict[str, int]:
    """Bound and timeout are the wrapper's. What has timed out there, the library drops by itself if it has not sent it.

    It has a millisecond more: a message fails by the wrapper's timeout, which knows what took its time.
    """
    timeout_ms = client_of(settings).send_timeout_ms
    is_never = not 0 < timeout_ms < _LONGEST_TIMEOUT_MS
    return {**OWN_OPTIONS, "message.timeout.ms": 0 if is_never else timeout_ms + 1}


class KafkaLibrary:
    """A future's result is the confluent_kafka.Message. Options of a send are KafkaOptions.

    A thread polls the producer. Where the producer's queue is full a write waits for room.

    Arguments: producer: best made by `open`; it is closed with this. settings: their topic is Kafka's; of a
    partitioned producer, the wrapper chooses each message's partition.
    """

    options = KafkaOptions.__optional_keys__

    def __init__(self, producer: confluent_kafka.Producer, settings: Settings) -> None:
        self._producer = producer
        self._partitions = settings.partitions if isinstance(settings, PartitionedSettings) else None
        self._topic = (
            settings.topic if isinstance(settings, PartitionedSettings) else next(iter(topics(settings).values()))
        )
        self._room = threading.Event()
        self._is_closed = False
        self._closing = threading.Lock()
        self._thread = started("kafka", self._poll)

    @classmethod
    def open(cls, config: Mapping[str, Any], settings: Settings) -> Self:
        """A new producer of that configuration, with DEFAULTS and `own_options`.

        Raises InvalidArgument for one of these with another value, for a linger.ms that no message outlives or that is
        none, and for a transaction that ends before the send timeout.
        """
        own = own_options(settings)
        timeout_ms = own["message.timeout.ms"]
        for name in ("linger.ms", "queue.buffering.max.ms"):
            if name in config:
                _check_linger(name, config[name], timeout_ms - 1)
        if "transactional.id" in config:
            _check_transaction(config.get("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS), timeout_ms)
        for name, value in config.items():
            needed = own.get(_OTHER_NAMES.get(name, name))
            if needed is not None and str(value) != str(needed):
                raise InvalidArgument(
                    f"{name}: got {value}, allowed is {needed}; settings have send_timeout_ms and max_pending"
                )
        return cls(confluent_kafka.Producer({**DEFAULTS, **config, **own}), settings)

    def write(self, producer_id: int, payload: Any, options: Mapping[str, Any], completed: Completed) -> None:
        """Start to send. Source: headgate.client.library"""
        placed = options if self._partitions is None else {**options, "partition": producer_id}

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            completed(message, None if error is None else confluent_kafka.KafkaException(error))
            self._room.set()

        while not self._produced(payload, placed, delivered):
            self._room.wait(_POLL_S)

    def _produced(self, payload: Any, options: Mapping[str, Any], delivered: Callable[..., None]) -> bool:
        self._room.clear()
        with self._closing:
            if self._is_closed:
                raise RuntimeError("the producer is closed")
            try:
                self._producer.produce(self._topic, payload, on_delivery=delivered, **options)
            except BufferError:
                return False
        return True

    def partition_of(self, options: Mapping[str, Any]) -> int | None:
        """Where the producer's own partitioner, consistent_random, sends a message with this `key`."""
        key = options.get("key")
        if not key or self._partitions is None:
            return None
        return crc32(key.encode() if isinstance(key, str) else key) % self._partitions

    def flush(self, timeout_s: float) -> None:
        """Send without waiting for `linger.ms`."""
        self._producer.flush(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Drop what is not acknowledged, end the thread, and close the producer."""
        with self._closing:
            self._is_closed = True
        self._producer.purge()
        is_empty = not self._producer.flush(timeout_s)
        join(self._thread, timeout_s)
        if is_empty:  # it would wait for the rest without bound
            self._producer.close()

    def _poll(self) -> None:
        while not self._is_closed:
            try:
                self._producer.poll(_POLL_S)
            except Exception:
                LOG.exception("a callback of the producer's configuration failed")


def _check_linger(name: str, value: object, send_timeout_ms: int) -> None:
    """send_timeout_ms: -1 is none."""
    linger_ms = _number(value)
    if linger_ms is None or linger_ms < 0:
        raise InvalidArgument(f"{name}: got {value!r}, allowed is a number from 0, in ms")
    if 0 <= send_timeout_ms <= linger_ms:
        allowed = f"allowed is less than send_timeout_ms, {send_timeout_ms}"
        raise InvalidArgument(f"{name}: got {value}, {allowed}; raise that, or set this lower")


def _check_transaction(value: object, timeout_ms: int) -> None:
    transaction_ms = _number(value)
    if transaction_ms is not None and transaction_ms < timeout_ms:
        allowed = f"with transactional.id less than transaction.timeout.ms is allowed, {value}"
        raise InvalidArgument(f"send_timeout_ms: got {timeout_ms - 1}, {allowed}; set it lower, or raise that")


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
