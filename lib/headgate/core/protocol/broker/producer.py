"""A producer as the broker's machine knows it (throttle-protocol 7.2, 7.4)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from headgate.core.protocol.broker.ordinals import Ordinals
from headgate.core.protocol.broker.pause import Bucket, Quote
from headgate.core.protocol.reasons import Reason
from headgate.core.state import PlainData, check_fields

_FIELDS = ("id", "topic", "phase", "ordinals", "quotes", "open_ids", "window")


class Phase(StrEnum):
    """Where a producer stands, under the letters of the table."""

    FREE = "N"
    TOLD = "W"
    TRUSTED = "C"
    HOLDING = "P"


class Window(NamedTuple):
    """What the client was told: not to write before `end_ms`, and why."""

    end_ms: int
    reason: Reason


class Producer:
    """It is free exactly while no reason is held. A window is announced in W and C alone; ids are open in W alone.

    Attributes: `id`; `topic`; `phase`; `ordinals` of its marks; `quotes`, the newest balances of each limiter that
    marked it, none where pauses end at second boundaries; `open_ids`, the commands whose receipt was not read, with
    their deadlines in the gate's ms of reading, oldest first; `window`, the one announced last, None in N and P.
    Source: throttle-protocol 7.4
    """

    __slots__ = ("id", "open_ids", "ordinals", "phase", "quotes", "topic", "window")

    def __init__(self, id_: int, topic: str) -> None:
        self.id = id_
        self.topic = topic
        self.phase = Phase.FREE
        self.ordinals = Ordinals()
        self.quotes: dict[Reason, Quote] = {}
        self.open_ids: dict[int, int] = {}
        self.window: Window | None = None

    def tell(self, request_id: int, deadline_ms: int, window: Window) -> None:
        """A command is on its way."""
        self.phase = Phase.TOLD
        self.open_ids[request_id] = deadline_ms
        self.window = window

    def answer(self, request_id: int) -> None:
        """The receipt of an open id was read; the client is trusted once it answered all."""
        del self.open_ids[request_id]
        if not self.open_ids:
            self.phase = Phase.TRUSTED

    def settle(self, phase: Phase) -> None:
        """Be free or hold the connection: what was announced is void."""
        self.phase = phase
        self.open_ids.clear()
        self.window = None

    def view(self) -> PlainData:
        """What a probe shows of it. Source: throttle-protocol 19"""
        return {
            "state": str(self.phase),
            "end": None if self.window is None else self.window.end_ms,
            "held": [int(reason) for reason in self.ordinals.held()],
            "open": list(self.open_ids),
        }

    def state(self) -> PlainData:
        """All of it as plain data, a copy."""
        return {
            "id": self.id,
            "topic": self.topic,
            "phase": str(self.phase),
            "ordinals": self.ordinals.state(),
            "quotes": [
                [int(reason), quote.at_ms, [list(bucket) for bucket in quote.buckets]]
                for reason, quote in self.quotes.items()
            ],
            "open_ids": [list(entry) for entry in self.open_ids.items()],
            "window": None if self.window is None else [self.window.end_ms, int(self.window.reason)],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the producer that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, _FIELDS)
        producer = cls(state["id"], state["topic"])
        producer.phase = Phase(state["phase"])
        producer.ordinals = Ordinals.from_state(state["ordinals"])
        producer.quotes = {
            Reason(code): Quote(at_ms, [Bucket(*bucket) for bucket in buckets])
            for code, at_ms, buckets in state["quotes"]
        }
        producer.open_ids = dict(state["open_ids"])
        if state["window"] is not None:
            end_ms, code = state["window"]
            producer.window = Window(end_ms, Reason(code))
        return producer
