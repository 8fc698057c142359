"""A producer that obeys the throttle protocol, around one of Pulsar's or Kafka's own library (PIP-385).

The libraries themselves are in `headgate.client.pulsar_library` and `headgate.client.kafka_library`, which need the
extra `client`.
"""

from headgate.client.errors import (
    MissingExtraError,
    ProducerClosedError,
    ProducerQueueFullError,
    ProducerThrottledError,
    SendFailedError,
    SendRejectedError,
    SendTimeoutError,
)
from headgate.client.gate_connection import GateConnection
from headgate.client.library import Library
from headgate.client.messages import Unsent
from headgate.client.options import KafkaOptions, PulsarOptions, SendOptions
from headgate.client.producer import RateLimitedProducer
from headgate.client.throttles import Throttle
from headgate.core.protocol.settings import ClientSettings, PartitionedSettings

__all__ = [
    "ClientSettings",
    "GateConnection",
    "KafkaOptions",
    "Library",
    "MissingExtraError",
    "PartitionedSettings",
    "ProducerClosedError",
    "ProducerQueueFullError",
    "ProducerThrottledError",
    "PulsarOptions",
    "RateLimitedProducer",
    "SendFailedError",
    "SendOptions",
    "SendRejectedError",
    "SendTimeoutError",
    "Throttle",
    "Unsent",
]
