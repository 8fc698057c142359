"""From brokers' cumulative counters to what came in an interval (clusters 1)."""

from collections.abc import Mapping
from typing import NamedTuple

from headgate.core.numbers import at_least

Counted = tuple[str, str]
"""A topic and a direction, `in` or `out`."""


class Reading(NamedTuple):
    """What a broker has counted of a topic since it has had it, from 0. throttled: None if it does not count that."""

    messages: int
    bytes: int
    throttled: int | None = None


class Increase(NamedTuple):
    """What came from the look before, at from_us, to the one at at_us, in which a counter grew."""

    from_us: int
    at_us: int
    broker: str
    topic: str
    direction: str
    messages: int
    bytes: int
    throttled: int | None


class Counters:
    """What brokers told last. The sum of all increases is what came between a broker's first look and its last one.

    A lost look loses nothing: the next increase is of a longer interval. A counter that is lower than before began
    anew, as the broker did, and so did that of a topic that the broker did not have in its last look: all that it tells
    has come since. A broker's first look is where counting begins; it has no increases. Source: clusters 1
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, Mapping[Counted, Reading]]] = {}

    def look(self, at_us: int, broker: str, readings: Mapping[Counted, Reading]) -> list[Increase]:
        """The increases since the broker's look before. Raises InvalidArgument for a time that is not after it."""
        first = broker not in self._last
        from_us, before = self._last.get(broker, (at_us - 1, readings))
        at_least(from_us + 1, at_us, "at_us")
        self._last[broker] = at_us, readings
        if first:
            return []
        return [
            Increase(from_us, at_us, broker, topic, direction, *grown)
            for (topic, direction), now in readings.items()
            if any(grown := _since(before.get((topic, direction)), now))
        ]


def _since(before: Reading | None, now: Reading) -> Reading:
    """throttled: None as well where only one of them has it."""
    if before is None or now.messages < before.messages or now.bytes < before.bytes:
        return now
    throttled = None
    if now.throttled is not None and before.throttled is not None:
        throttled = now.throttled - before.throttled
        if throttled < 0:
            return now
    return Reading(now.messages - before.messages, now.bytes - before.bytes, throttled)
