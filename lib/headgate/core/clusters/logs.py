"""From the ends and sizes of Kafka's partitions to what came in an interval (clusters 1)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headgate.core.clusters.counters import NOTHING, Counted, Increase, Reading
from headgate.core.numbers import at_least


class Log(NamedTuple):
    """A partition as its leader tells.

    topic_id: another one where the topic was deleted and made anew; None: the cluster does not say. first: number of
    the oldest message that is still there. end: that of the next one. bytes: of the messages that are still there.
    """

    topic_id: str | None
    first: int
    end: int
    bytes: int

    @property
    def whole(self) -> Reading:
        """All messages that ever came, and the bytes that are still there."""
        return Reading(self.end, self.bytes)

    def size_of(self, messages: int) -> int:
        """Of the last ones, as large as its messages are on average; of no more than are still there."""
        there = self.end - self.first
        return messages * self.bytes // there if messages < there else self.bytes


class _Last(NamedTuple):
    """broker: None: it was not there last. log: None where only the table is known. total: its counters."""

    at_us: int
    broker: str | None
    log: Log | None
    total: Reading


class Logs:
    """What partitions told last. The sum of all increases is what came since the first look at each broker.

    A partition is counted once, whichever broker leads it, and what came counts to the one that leads it now. Messages
    are exact: each has a number. Bytes are what the log has grown by; where it has shrunk, as its oldest messages were
    deleted, or was not looked at on this broker before, they are those of messages of average size, and no more than
    the log has.

    An end that is lower than before is that of an answer that was late, unless the topic was made anew. A partition
    that is gone goes on if it is back: a broker that has just started may not know all of them. Source: clusters 1
    """

    def __init__(self, told: Iterable[Increase] = (), looked: Mapping[str, int] | None = None) -> None:
        """Both are of partitions that these go on from.

        told: the last ones of each broker, topic and direction. looked: when each broker was looked at last.
        """
        self._looked_us = dict(looked or {})
        self._last: dict[Counted, _Last | None] = {}
        for one in sorted(told, key=lambda one: one.at_us):
            if one.total == NOTHING:  # it has left, and may have gone elsewhere
                self._last.setdefault((one.topic, one.direction), None)
            else:
                at_us = max(one.at_us, self._looked_us.get(one.broker, 0))
                self._last[one.topic, one.direction] = _Last(at_us, one.broker, None, one.total)

    def look(self, at_us: int, broker: str, logs: Mapping[Counted, Log | None]) -> list[Increase]:
        """What grew on a broker, came to it or left, since its look before; all that it has if there was none.

        logs: all partitions of the cluster; None where another broker leads one. Raises InvalidArgument for a time that
        is not after that look.
        """
        from_us = self._looked_us.get(broker)
        if from_us is not None:
            at_least(from_us + 1, at_us, "at_us")
        self._looked_us[broker] = at_us
        found: list[Increase] = []
        for key, log in logs.items():
            if log is not None:
                found += self._grown(at_us, broker, from_us, key, log)
            elif from_us is None:
                self._last.setdefault(key, None)  # it is there already: its messages are not new
        gone = [(key, last) for key, last in self._last.items() if last and last.broker == broker and key not in logs]
        for key, last in gone:
            self._last[key] = last._replace(broker=None)
            found.append(Increase(at_us, at_us, broker, *key, NOTHING, NOTHING))
        return found

    def _grown(self, at_us: int, broker: str, looked_us: int | None, key: Counted, log: Log) -> list[Increase]:
        last = self._last.get(key)
        is_new = key not in self._last and looked_us is not None
        if last is None:
            from_us = looked_us if is_new and looked_us is not None else at_us
            total = log.whole
            came = total if is_new else NOTHING
        elif _is_anew(last, log):
            from_us, came, total = last.at_us, log.whole, log.whole
        elif log.end < last.total.messages:
            return []
        else:
            from_us, came = last.at_us, _came(last, broker, log)
            total = Reading(log.end, last.total.bytes + came.bytes)
        self._last[key] = _Last(at_us, broker, log, total)
        now = Increase(min(from_us, at_us), at_us, broker, *key, came, total)
        if last is None or last.broker == broker:
            return [now] if any(came) or (last is None and any(total)) else []
        left = [] if last.broker is None else [Increase(at_us, at_us, last.broker, *key, NOTHING, NOTHING)]
        return [*left, now]


def _is_anew(last: _Last, log: Log) -> bool:
    if last.log is None or last.log.topic_id is None or log.topic_id is None:
        return log.end < last.total.messages
    return log.topic_id != last.log.topic_id


def _came(last: _Last, broker: str, log: Log) -> Reading:
    """Of the same log, whose end has not fallen. Each broker's copy has a size of its own."""
    messages = log.end - last.total.messages
    if last.log is not None and last.broker == broker and log.bytes >= last.log.bytes:
        return Reading(messages, log.bytes - last.log.bytes)
    return Reading(messages, log.size_of(messages))
