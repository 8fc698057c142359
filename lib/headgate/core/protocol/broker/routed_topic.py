"""The producers of a topic and what holds them, as the router knows them (throttle-protocol 7.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from headgate.core.protocol.reasons import Reason
from headgate.core.state import PlainData


@dataclass(slots=True)
class _Count:
    """Numbers of one producer and reason, all from 1 on, 0: none.

    marked, unmarked: of what its machine was fed. tripped, released: the source's, of its own marks. copied: the last
    original that it got a copy of, as `_Limiter` counts them.
    """

    marked: int = 0
    unmarked: int = 0
    tripped: int = 0
    released: int = 0
    copied: int = 0

    @property
    def waits(self) -> bool:
        """Whether the limiter holds the producer for a mark of its own."""
        return self.tripped > self.released


@dataclass(slots=True)
class _Limiter:
    """What is known of a limiter that holds producers of the topic.

    waiting: producers with marks of their own. copied: originals that were copied, in their order; before: those of
    milliseconds before `at_ms`, that of the last one. ended: originals whose copies have ended.
    """

    waiting: int = 0
    copied: int = 0
    before: int = 0
    at_ms: int = 0
    ended: int = 0

    def copy(self, at_ms: int) -> int:
        """The number of an original that is copied at `at_ms`."""
        if at_ms > self.at_ms:
            self.before, self.at_ms = self.copied, at_ms
        self.copied += 1
        return self.copied

    def end(self, at_ms: int) -> bool:
        """Its pause was 0 in millisecond `at_ms`: whether copies end thereby."""
        ended = self.before if self.waiting and at_ms <= self.at_ms else self.copied
        is_news = ended > self.ended
        self.ended = max(self.ended, ended)
        return is_news


class RoutedProducer:
    """An open producer. Its marks have the numbers 1, 2, 3 ... by reason, its unmarks the same."""

    __slots__ = ("connection", "counts", "id", "topic")

    def __init__(self, connection: str, id_: int, topic: str) -> None:
        self.connection = connection
        self.id = id_
        self.topic = topic
        self.counts: dict[Reason, _Count] = {}

    def count(self, reason: Reason) -> _Count:
        """Its numbers for the reason."""
        return self.counts.setdefault(reason, _Count())

    def marked(self, reason: Reason) -> int:
        """The ordinal of its next mark."""
        count = self.count(reason)
        count.marked += 1
        return count.marked

    def let_go(self, reason: Reason) -> range:
        """The ordinals of its marks that were not released: they are now."""
        count = self.count(reason)
        first, count.unmarked = count.unmarked + 1, count.marked
        return range(first, count.marked + 1)


class RoutedTopic:
    """Producers of a topic in the order in which they opened, and the limiters, by reason, that marked them."""

    __slots__ = ("_limiters", "name", "producers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.producers: dict[tuple[str, int], RoutedProducer] = {}
        self._limiters: dict[Reason, _Limiter] = {}

    def open(self, connection: str, id_: int) -> RoutedProducer:
        """A new producer."""
        producer = self.producers[connection, id_] = RoutedProducer(connection, id_, self.name)
        return producer

    def trip(self, producer: RoutedProducer, reason: Reason, ordinal: int) -> bool:
        """Whether a mark of the source is live: younger than those seen, and not released yet."""
        count = producer.count(reason)
        if ordinal <= count.tripped:
            return False
        waited, count.tripped = count.waits, ordinal
        if count.waits and not waited:
            self._limiter(reason).waiting += 1
        return count.waits

    def copied(self, tripping: RoutedProducer, reasons: Sequence[Reason], at_ms: int) -> list[RoutedProducer]:
        """The producers that get a copy of a mark with these reasons."""
        numbers = [(reason, self._limiter(reason).copy(at_ms)) for reason in reasons]
        others = [producer for producer in self.producers.values() if producer is not tripping]
        for producer in others:
            for reason, number in numbers:
                producer.count(reason).copied = number
        return others

    def release(self, producer: RoutedProducer, reason: Reason, ordinal: int, at_ms: int) -> list[RoutedProducer]:
        """The source released the producer's marks up to `ordinal`: who is not held any more.

        A release that came before, also of an older mark, says nothing of the limiter's pause now.
        """
        count = producer.count(reason)
        if ordinal <= count.released:
            return []
        waited, count.released = count.waits, ordinal
        if not waited:
            return []
        limiter = self._limiter(reason)
        limiter.waiting -= not count.waits
        ends = limiter.end(at_ms)
        return [one for one in (self.producers.values() if ends else [producer]) if self._is_free(one, reason)]

    def close(self, producer: RoutedProducer) -> Iterator[tuple[Reason, list[RoutedProducer]]]:
        """Forget the producer; by reason who is not held any more, as nobody waits."""
        del self.producers[producer.connection, producer.id]
        for reason, count in sorted(producer.counts.items()):
            limiter = self._limiter(reason)
            limiter.waiting -= count.waits
            if count.waits and not limiter.waiting and limiter.end(limiter.at_ms):
                yield reason, [one for one in self.producers.values() if self._is_free(one, reason)]

    def state(self) -> PlainData:
        """All of it as plain data, a copy."""
        return {
            "limiters": [[int(reason), *astuple(limiter)] for reason, limiter in self._limiters.items()],
            "producers": [
                [*key, [[int(reason), *astuple(count)] for reason, count in producer.counts.items()]]
                for key, producer in self.producers.items()
            ],
        }

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> Self:
        """Rebuild what `state` was taken from."""
        topic = cls(name)
        topic._limiters = {Reason(code): _Limiter(*values) for code, *values in state["limiters"]}
        for connection, id_, counts in state["producers"]:
            producer = topic.open(connection, id_)
            producer.counts = {Reason(code): _Count(*values) for code, *values in counts}
        return topic

    def _limiter(self, reason: Reason) -> _Limiter:
        return self._limiters.setdefault(reason, _Limiter())

    def _is_free(self, producer: RoutedProducer, reason: Reason) -> bool:
        count = producer.counts.get(reason)
        return count is not None and not count.waits and count.copied <= self._limiter(reason).ended
