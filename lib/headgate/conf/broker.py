"""The settings that headgate takes from Pulsar's broker.conf, one field a key (rate-limiters.md 11)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, Literal

from headgate.conf.findings import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, MAX_MS

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FACTORIES: Final = "org.apache.pulsar.broker.service.persistent.DispatchRateLimiterFactory"
_TOKEN_BUCKET_FACTORY: Final = f"{_FACTORIES}AsyncTokenBucket"
_CLASSIC_FACTORY: Final = f"{_FACTORIES}Classic"


@dataclass(frozen=True, slots=True)
class BrokerKey:
    """A key of broker.conf: how its text becomes a value, and the words for what is allowed.

    `read` takes the trimmed text, never an empty one, and raises ValueError for what is not allowed. `default` is the
    text that a missing key stands for, `blank` the one that an empty value stands for; empty: the value is None.
    """

    name: str
    field: str
    allowed: str
    default: str
    blank: str
    read: Callable[[str], object]


def _key(name: str, allowed: str, read: Callable[[str], object], default: str, blank: str | None = None) -> Any:
    """Declare a field by its key; an empty value is the default, as in Pulsar's loader, unless `blank` says more."""
    blank = default if blank is None else blank
    metadata = {"name": name, "allowed": allowed, "default": default, "blank": blank, "read": read}
    return field(default=read(default) if default else None, metadata=metadata)


def _integer(name: str, default: int | None, low: int, high: int = INT32_MAX, *, none_at: int | None = None) -> Any:
    """Declare an integer from `low` to `high`; the value `none_at` stands for None."""

    def read(text: str) -> int | None:
        if not _INTEGER.fullmatch(text) or not low <= (number := int(text)) <= high:
            raise ValueError(text)
        return None if number == none_at else number

    return _key(name, f"an integer from {low} to {high}", read, "" if default is None else str(default))


def _rate(name: str) -> Any:
    """Declare a rate; 0 and everything below is off and reads as 0."""

    def read(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not INT64_MIN <= (number := int(text)) <= INT64_MAX:
            raise ValueError(text)
        return max(0, number)

    return _key(name, f"an integer up to {INT64_MAX}, 0 or below is off", read, "0")


def _choice(name: str, default: str, choices: Mapping[str, str], blank: str | None = None) -> Any:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return choices[text]

    return _key(name, " or ".join(choices), read, default, blank)


def _switch(name: str, default: bool) -> Any:
    def read(text: str) -> bool:
        if text.lower() not in {"true", "false"}:
            raise ValueError(text)
        return text.lower() == "true"

    return _key(name, "true or false", read, str(default).lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConf:
    """Broker-wide settings and per-topic defaults; rates are whole units per second and 0 is off.

    `read_broker_conf` checks every value; a `BrokerConf` made by hand is not checked. Defaults are those of
    rate-limiters.md 11. None means: no bound, no quantum, not set.
    """

    broker_publish_rate_messages_per_s: int = _rate("brokerPublisherThrottlingMaxMessageRate")
    broker_publish_rate_bytes_per_s: int = _rate("brokerPublisherThrottlingMaxByteRate")
    topic_publish_rate_messages_per_s: int = _rate("maxPublishRatePerTopicInMessages")
    topic_publish_rate_bytes_per_s: int = _rate("maxPublishRatePerTopicInBytes")

    broker_dispatch_rate_messages_per_s: int = _rate("dispatchThrottlingRateInMsg")
    broker_dispatch_rate_bytes_per_s: int = _rate("dispatchThrottlingRateInByte")
    topic_dispatch_rate_messages_per_s: int = _rate("dispatchThrottlingRatePerTopicInMsg")
    topic_dispatch_rate_bytes_per_s: int = _rate("dispatchThrottlingRatePerTopicInByte")
    subscription_dispatch_rate_messages_per_s: int = _rate("dispatchThrottlingRatePerSubscriptionInMsg")
    subscription_dispatch_rate_bytes_per_s: int = _rate("dispatchThrottlingRatePerSubscriptionInByte")
    replicator_dispatch_rate_messages_per_s: int = _rate("dispatchThrottlingRatePerReplicatorInMsg")
    replicator_dispatch_rate_bytes_per_s: int = _rate("dispatchThrottlingRatePerReplicatorInByte")
    dispatch_rate_relative_to_publish_rate: bool = _switch("dispatchThrottlingRateRelativeToPublishRate", False)
    dispatch_on_batch_message: bool = _switch("dispatchThrottlingOnBatchMessageEnabled", False)
    dispatch_on_non_backlog_consumer: bool = _switch("dispatchThrottlingOnNonBacklogConsumerEnabled", True)
    dispatch_for_filtered_entries: bool = _switch("dispatchThrottlingForFilteredEntriesEnabled", False)
    dispatch_implementation: Literal["token_bucket", "classic"] = _choice(
        "dispatchRateLimiterFactoryClassName",
        _TOKEN_BUCKET_FACTORY,
        {_TOKEN_BUCKET_FACTORY: "token_bucket", _CLASSIC_FACTORY: "classic"},
        blank=_CLASSIC_FACTORY,
    )
    stats_interval_s: int = _integer("statsUpdateFrequencyInSecs", 60, 1)
    dispatcher_max_read_batch_entries: int = _integer("dispatcherMaxReadBatchSize", 100, 1)
    dispatcher_min_read_batch_entries: int = _integer("dispatcherMinReadBatchSize", 1, 1)
    dispatcher_max_round_robin_batch_entries: int = _integer("dispatcherMaxRoundRobinBatchSize", 20, 1)
    dispatcher_max_read_bytes: int = _integer("dispatcherMaxReadSizeBytes", 5_242_880, 1)

    subscribe_rate_per_period: int = _rate("subscribeThrottlingRatePerConsumer")
    subscribe_rate_period_s: int = _integer("subscribeRatePeriodPerConsumerInSecond", 30, INT32_MIN)

    max_pending_publish_requests_per_connection: int = _integer(
        "maxPendingPublishRequestsPerConnection", 1000, INT32_MIN
    )
    max_publish_buffer_mib: int = _integer("maxMessagePublishBufferSizeInMB", -1, INT32_MIN)
    io_threads: int | None = _integer("numIOThreads", None, 1)
    pause_receiving_if_unwritable: bool = _switch("pulsarChannelPauseReceivingRequestsIfUnwritable", False)
    pause_receiving_cooldown_ms: int = _integer("pulsarChannelPauseReceivingCooldownMs", 5000, INT32_MIN)
    pause_receiving_cooldown_permits: int = _integer(
        "pulsarChannelPauseReceivingCooldownRateLimitPermits", 5, INT32_MIN
    )
    pause_receiving_cooldown_period_ms: int = _integer(
        "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs", 10, INT32_MIN
    )
    write_buffer_high_water_mark_bytes: int = _integer("pulsarChannelWriteBufferHighWaterMark", 65_536, 0)
    write_buffer_low_water_mark_bytes: int = _integer("pulsarChannelWriteBufferLowWaterMark", 32_768, 0)

    bundle_unloading_timeout_ms: int = _integer("namespaceBundleUnloadingTimeoutMs", 60_000, 1, MAX_MS)
    throttle_receipt_wait_ms: int = _integer("throttleProducerReceiptWaitTimeMillis", 100, INT32_MIN)

    # Pulsar's keys of earlier rate limiters: read, checked, without effect.
    topic_publisher_tick_ms: int = _integer("topicPublisherThrottlingTickTimeMillis", 10, INT32_MIN)
    broker_publisher_tick_ms: int = _integer("brokerPublisherThrottlingTickTimeMillis", 50, INT32_MIN)
    precise_topic_publish_rate_limiter: bool = _switch("preciseTopicPublishRateLimiterEnable", False)

    # Keys that Pulsar's file does not have; the first is an argument of a graceful shutdown there.
    unload_starts_per_s: int = _rate("maxConcurrentUnload")
    max_debt_ms: int | None = _integer("headgateMaxDebtMs", -1, -1, MAX_MS, none_at=-1)
    release_quantum_producers: int | None = _integer("headgateReleaseQuantum", 0, 0, none_at=0)
    dispatch_reserve_then_settle: bool = _switch("headgateDispatchReserveThenSettle", False)
    clock_policy: Literal["high_water", "leap_tolerant"] = _choice(
        "headgateClockPolicy",
        "high_water",
        {"high_water": "high_water", "leap_tolerant": "leap_tolerant"},
    )
    clock_leap_interval_ms: int = _integer("headgateClockLeapIntervalMs", 16, 1)


BROKER_KEYS: Final[Mapping[str, BrokerKey]] = MappingProxyType(
    {column.metadata["name"]: BrokerKey(field=column.name, **column.metadata) for column in fields(BrokerConf)}
)
"""Every key that headgate reads, by Pulsar's name."""

UNUSED_KEYS: Final = frozenset(
    {
        "maxConcurrentLookupRequest",
        "maxConcurrentTopicLoadRequest",
        "maxConcurrentNonPersistentMessagePerConnection",
    }
)
"""Throttling keys of Pulsar that are not rates: accepted, never read (rate-limiters.md 11)."""
