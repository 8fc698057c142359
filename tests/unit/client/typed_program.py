"""A program that uses the client's public API, for test_types.py: it is type-checked, never run.

What a type checker has to refuse has a comment `type: ignore` with the error; mypy reports those that are not needed.
"""

import asyncio
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, assert_type

from headgate.client import (
    ClientSettings,
    GateConnection,
    KafkaOptions,
    Library,
    PartitionedSettings,
    ProducerThrottledError,
    RateLimitedProducer,
    Unsent,
)
from headgate.client.kafka_library import KafkaLibrary
from headgate.client.pulsar_library import PulsarLibrary
from headgate.core.reasons import HeldReason


def libraries(client: Any) -> list[Library]:
    single = ClientSettings.of({"producers": {1: "orders"}})
    partitioned = PartitionedSettings.of({"topic": "orders", "partitions": 4})
    kafka = KafkaLibrary.open({"bootstrap.servers": "127.0.0.1:9092"}, partitioned)
    return [kafka, PulsarLibrary.open(client, single)]


def forwarded(producer: RateLimitedProducer, kafka: KafkaOptions, delay: timedelta, others: dict[str, Any]) -> None:
    producer.send(b"payload", **kafka)
    producer.send(b"payload", partition_key="k", properties={"a": "b"}, deliver_after=delay)
    producer.send(b"payload", **others)  # those of a library of one's own


async def asynchronous(producer: RateLimitedProducer) -> None:
    async with producer as entered:
        assert_type(entered, RateLimitedProducer)
        future = entered.send_async(b"payload", partition=1)
        assert_type(future, asyncio.Future[Any])
        await future


def program(library: Library) -> None:
    settings = ClientSettings.of({"producers": {1: "orders"}})
    with (
        GateConnection("127.0.0.1", 6653, "broker-1/10.0.0.7:41000") as gate,
        gate.producer(library, settings, on_throttle=lambda throttle: throttle.remaining_ms) as producer,
    ):
        assert_type(producer, RateLimitedProducer)
        assert_type(gate.wait_connected(1), bool)
        future = producer.send(b"payload", key=b"k", partition=None)
        assert_type(future, Future[Any])
        try:
            future.result()
        except ProducerThrottledError as error:
            assert_type(error.reason, HeldReason | None)
            assert_type(error.remaining_ms, int)
        assert_type(producer.is_throttled(), bool)
        throttle = producer.throttle(partition=None)
        if throttle is not None:
            assert_type(throttle.reason, HeldReason | None)
            assert_type(throttle.remaining_ms, int)
        assert_type(producer.flush(1), bool)
        assert_type(producer.metrics(), dict[str, int])
        assert_type(producer.close(1), Unsent)
        producer.send(b"payload", partition="1")  # type: ignore[arg-type]
        producer.send(b"payload", keey=b"k")  # type: ignore[call-arg]
        producer.send(b"payload", headers=[("a", 1)])  # type: ignore[list-item]
        producer.send_async(b"payload", propertys={})  # type: ignore[call-arg]
        producer.on_command("1", 1, None, 50)  # type: ignore[arg-type]
        gate.producer(library, settings, on_trottle=print)  # type: ignore[call-arg]
        RateLimitedProducer(library, settings, receipts=lambda: None)  # type: ignore[misc, arg-type]
