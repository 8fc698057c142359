"""From brokers' cumulative counters to what came in an interval (clusters 1)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headgate.core.numbers import at_least

Counted = tuple[str, str]
"""A topic and a direction, `in` or `out`."""


class Reading(NamedTuple):
    """What a broker has counted of a topic since it has had it, from 0. throttled: None if it does not count that."""

    messages: int
    bytes: int
    throttled: int | None = None


NOTHING = Reading(0, 0)


class Increase(NamedTuple):
    """What came from the look before, at from_us, to the one at at_us, and what the counters say then.

    The first look at a broker begins where it ends, with nothing that came; so does one at a topic that has left: its
    counters are 0.
    """

    from_us: int
    at_us: int
    broker: str
    topic: str
    direction: str
    came: Reading
    total: Reading


class Counters:
    """What brokers told last. The sum of all increases is what came between a broker's first look and its last one.

    A lost look loses nothing: the next increase is of a longer interval. A counter that is lower than before began
    anew, as the broker did, and so did that of a topic that the broker did not have in its last look: all that it tells
    has come since. A broker's first look is where counting begins. Source: clusters 1
    """

    def __init__(self, told: Iterable[Increase] = (), looked: Mapping[str, int] | None = None) -> None:
        """Both are of counters that these go on from.

        told: the last one of each broker, topic and direction. looked: when each broker was looked at last.
        """
        self._last: dict[str, tuple[int, dict[Counted, Reading]]] = {
            broker: (at_us, {}) for broker, at_us in (looked or {}).items()
        }
        for one in told:
            at_us, readings = self._last.get(one.broker, (one.at_us, {}))
            readings[one.topic, one.direction] = one.total
            self._last[one.broker] = max(at_us, one.at_us), readings

    def look(self, at_us: int, broker: str, readings: Mapping[Counted, Reading]) -> list[Increase]:
        """What grew, and what left, since the broker's look before; all that it has if there was none.

        Raises InvalidArgument for a time that is not after that look.
        """
        from_us, before = self._last.get(broker, (None, {}))
        self._last[broker] = at_us, dict(readings)
        if from_us is None:
            return [
                Increase(at_us, at_us, broker, *key, _since(now, now), now) for key, now in readings.items() if any(now)
            ]
        at_least(from_us + 1, at_us, "at_us")
        grown = [
            Increase(from_us, at_us, broker, *key, came, now)
            for key, now in readings.items()
            if any(came := _since(last := before.get(key, NOTHING), now)) or now[:2] != last[:2]
        ]
        left = [
            Increase(at_us, at_us, broker, *key, NOTHING, NOTHING)
            for key, last in before.items()
            if key not in readings and any(last)
        ]
        return grown + left


def _since(before: Reading, now: Reading) -> Reading:
    """Messages and bytes begin anew together, how often it was throttled by itself."""
    throttled = now.throttled
    if throttled is not None and before.throttled is not None and before.throttled <= throttled:
        throttled -= before.throttled
    if now.messages < before.messages or now.bytes < before.bytes:
        return Reading(now.messages, now.bytes, throttled)
    return Reading(now.messages - before.messages, now.bytes - before.bytes, throttled)
