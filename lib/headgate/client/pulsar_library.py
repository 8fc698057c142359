"""Producers of Pulsar's own Python client, one for each partition."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

from headgate.client.errors import MissingExtraError
from headgate.client.library import Completed, Settings, topics
from headgate.client.options import PulsarOptions
from headgate.client.threads import started
from headgate.errors import InvalidArgument

try:
    import pulsar
except ImportError as missing:
    raise MissingExtraError("pulsar-client") from missing

INT32 = 2**32
CLOSE_S = 5.0
OWN_OPTIONS = {"send_timeout_millis": 0, "max_pending_messages": 0}
"""Timeout and bound are the wrapper's: there is room for all that a window holds back, and nothing fails by time."""


class PulsarLibrary:
    """A future's result is the message's pulsar.MessageId. Options of a send are PulsarOptions.

    Arguments: producers: by the ids of the settings, each made with OWN_OPTIONS (see `open`); they are closed with
    this, their client is not.
    Raises InvalidArgument if producers are missing, or more than the settings have.
    """

    options = PulsarOptions.__optional_keys__

    def __init__(self, producers: Mapping[int, pulsar.Producer], settings: Settings) -> None:
        wanted = sorted(topics(settings))
        if sorted(producers) != wanted:
            raise InvalidArgument(
                f"producers: got ids {sorted(producers)}, allowed are those of the settings, {wanted}"
            )
        self._producers = dict(producers)
        self._flushing: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, client: pulsar.Client, settings: Settings, **options: Any) -> Self:
        """New producers of the client on the topics of the settings; options are those of create_producer.

        Raises InvalidArgument for an option of OWN_OPTIONS with another value, and what create_producer raises; then
        those that were made are closed.
        """
        for name, needed in OWN_OPTIONS.items():
            if options.get(name, needed) != needed:
                raise InvalidArgument(
                    f"{name}: got {options[name]}, allowed is {needed}; settings have send_timeout_ms and max_pending"
                )
        options |= OWN_OPTIONS
        opened: dict[int, pulsar.Producer] = {}
        try:
            for number, topic in topics(settings).items():
                opened[number] = client.create_producer(topic, **options)
        except BaseException:
            _close(opened.values(), CLOSE_S)
            raise
        return cls(opened, settings)

    def write(self, producer_id: int, payload: Any, options: Mapping[str, Any], completed: Completed) -> None:
        """Start to send. Source: headgate.client.library"""

        def answered(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            if result == pulsar.Result.Ok:
                completed(message_id, None)
            else:
                kind = getattr(pulsar.exceptions, result.name, pulsar.PulsarException)
                completed(None, kind(result.name))

        self._producers[producer_id].send_async(payload, answered, **options)

    def partition_of(self, options: Mapping[str, Any]) -> int | None:
        """Where Pulsar's Java client sends a message with this `partition_key`."""
        key = options.get("partition_key")
        return java_hash(key) % len(self._producers) if key else None

    def flush(self, timeout_s: float) -> None:
        """Send batches that wait for more messages.

        A producer's flush waits for its broker without bound: it has a thread, at most one at a time.
        """
        end = time.monotonic() + timeout_s
        busy = self._begin_flushes(self._producers.keys())
        self._join_flushes(end)
        self._begin_flushes(busy)  # what came while these were at it
        self._join_flushes(end)

    def _begin_flushes(self, producer_ids: Iterable[int]) -> list[int]:
        """The producers of which one is under way already."""
        busy = []
        with self._lock:
            for producer_id in producer_ids:
                under_way = self._flushing.get(producer_id)
                if under_way is not None and under_way.is_alive():
                    busy.append(producer_id)
                else:
                    self._flushing[producer_id] = _begun(self._producers[producer_id].flush)
        return busy

    def _join_flushes(self, end: float) -> None:
        with self._lock:
            threads = list(self._flushing.values())
        _join(threads, end)

    def close(self, timeout_s: float) -> None:
        """Close the producers, at once."""
        _close(self._producers.values(), timeout_s)


def java_hash(key: str) -> int:
    """The hash of Java's String, without its sign: from 0 to 2^31-1."""
    units = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + 256 * high + low) % INT32
    return code & (INT32 // 2 - 1)


def _begun(call: Callable[[], object]) -> threading.Thread:
    """A thread that calls it. What it raises is told by the messages' own results, too."""

    def attempt() -> None:
        with suppress(pulsar.PulsarException):
            call()

    return started("pulsar", attempt)


def _close(producers: Iterable[pulsar.Producer], timeout_s: float) -> None:
    _join([_begun(producer.close) for producer in producers], time.monotonic() + timeout_s)


def _join(threads: Iterable[threading.Thread], end: float) -> None:
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
