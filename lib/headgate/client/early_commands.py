"""Commands that come before the producer that they are for."""

from dataclasses import dataclass, replace

from headgate.wire import ThrottleProducer

NOTICE_TTL_MS = 5000
"""Age beyond which a notice is stale: the default of the settings. Source: throttle-protocol 4"""
MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A command that holds up to `end_ms`, exclusive."""

    end_ms: int
    command: ThrottleProducer

    def outlasts(self, other: "_Kept") -> bool:
        """Whether it ends later, or with the lower reason then (throttle-protocol 9)."""
        return (-self.end_ms, self.command.reason) < (-other.end_ms, other.command.reason)


class EarlyCommands:
    """Of each producer that is not there yet, the window that ends last and the last notice, as long as they hold.

    At most MOST_KEPT are kept; those that end first give way. Times are in ms and never go back.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], _Kept] = {}

    def keep(self, command: ThrottleProducer, now_ms: int) -> None:
        """A command came for a producer that is not there."""
        is_notice = command.pause_ms == 0
        new = _Kept(now_ms + (NOTICE_TTL_MS if is_notice else command.pause_ms), command)
        key = command.producer_id, is_notice
        old = self._kept.get(key)
        if old is None:
            self._make_room(now_ms)
        if old is None or new.outlasts(old):
            self._kept[key] = new

    def take(self, producer_id: int, now_ms: int) -> list[ThrottleProducer]:
        """What still holds for a producer that has come, with what is left of its pause; forgotten here."""
        kept = [self._kept.pop((producer_id, is_notice), None) for is_notice in (False, True)]
        return [_left(one, now_ms) for one in kept if one is not None and now_ms < one.end_ms]

    def _make_room(self, now_ms: int) -> None:
        if len(self._kept) < MOST_KEPT:
            return
        self._kept = {key: kept for key, kept in self._kept.items() if now_ms < kept.end_ms}
        if len(self._kept) >= MOST_KEPT:
            del self._kept[min(self._kept, key=lambda key: self._kept[key].end_ms)]


def _left(kept: _Kept, now_ms: int) -> ThrottleProducer:
    is_notice = kept.command.pause_ms == 0
    return kept.command if is_notice else replace(kept.command, pause_ms=kept.end_ms - now_ms)
