"""What a reader knows of one broker: its membership, how far it was heard, its usage (resource-groups 5.3, 7)."""

from collections.abc import Mapping
from typing import Any, Self

from headgate.core.quota.groups import UsageKey
from headgate.core.quota.usage.usage_history import EpochRow, UsageHistory
from headgate.core.state import PlainData, check_fields

_PLAIN_FIELDS = (
    "incarnation",
    "joined_epoch",
    "is_member",
    "weight",
    "covered_epoch",
    "left_seq",
    "newest_seq",
    "heard_ms",
)


class BrokerUsage:
    """Everything belongs to one incarnation, the highest seen; a higher one begins with nothing.

    joined_epoch: in which this life became known.
    covered_epoch: up to which heartbeats say that all rows are in, None before the first.
    left_seq: of the last leave-all, None without one. newest_seq: the highest of anything else, -1 before the first.
    heard_ms: when the last row or heartbeat arrived by the reader's clock, None where nothing of it is kept.
    """

    __slots__ = (*_PLAIN_FIELDS, "histories")

    def __init__(self, incarnation: int, joined_epoch: int) -> None:
        self.is_member = False
        self.weight = 1
        self.renew(incarnation, joined_epoch)

    def renew(self, incarnation: int, joined_epoch: int) -> None:
        """A new life: rows and the memory of seqs are gone."""
        self.incarnation = incarnation
        self.joined_epoch = joined_epoch
        self.covered_epoch: int | None = None
        self.left_seq: int | None = None
        self.newest_seq = -1
        self.heard_ms: int | None = None
        self.histories: dict[UsageKey, UsageHistory] = {}

    def join(self, epoch: int, weight: int) -> None:
        """It is a member, from `epoch` on if it was none."""
        if not self.is_member:
            self.joined_epoch = epoch
        self.is_member = True
        self.weight = weight

    def part(self) -> None:
        """It is no member any more: everything it said is gone, but no row of before is accepted again."""
        self.is_member = False
        self.covered_epoch = None
        self.heard_ms = None
        for history in self.histories.values():
            history.remove()

    def leave_all(self, seq: int) -> None:
        """It uses nothing any more, as of the cut `seq`: what it said before is gone."""
        self.left_seq = seq
        for history in self.histories.values():
            if history.last_seq is not None and history.last_seq < seq:
                history.remove()

    def heartbeat(self, epoch: int) -> None:
        """All its rows up to `epoch` are in."""
        self.covered_epoch = epoch if self.covered_epoch is None else max(self.covered_epoch, epoch)

    def history(self, key: UsageKey) -> UsageHistory:
        """Its usage of a group and class, begun if there was none."""
        if key not in self.histories:
            self.histories[key] = UsageHistory()
        return self.histories[key]

    def as_of(self, key: UsageKey, epoch: int) -> EpochRow | None:
        """Its row with the largest epoch <= `epoch`, None without any. resource-groups 7.3"""
        history = self.histories.get(key)
        return None if history is None else history.as_of(epoch)

    def accepted_seq(self, key: UsageKey | None) -> int:
        """The last seq that counts for `key` (None: for all of the broker), -1 without any. resource-groups 7.1"""
        history = None if key is None else self.histories.get(key)
        last_seq = -1 if history is None or history.last_seq is None else history.last_seq
        return last_seq if self.left_seq is None else max(self.left_seq, last_seq)

    def newest_covered(self, key: UsageKey, epoch: int) -> int:
        """n: the newest epoch <= `epoch` that rows or heartbeats cover for `key`; else the one before it joined.

        resource-groups 7.3
        """
        entry = self.as_of(key, epoch)
        heard = [] if entry is None else [entry.row.epoch]
        if self.covered_epoch is not None:
            heard.append(min(self.covered_epoch, epoch))
        return max(heard, default=self.joined_epoch - 1)

    def unheard(self, key: UsageKey, epoch: int) -> bool:
        """Whether nothing of its present life came for `key`, as of `epoch`. resource-groups 9.2, First limit"""
        return self.covered_epoch is None and self.as_of(key, epoch) is None

    @property
    def awaited_after(self) -> int:
        """The last epoch for which no heartbeat of it is awaited; without any, the one before it joined.

        resource-groups 7.3
        """
        return self.joined_epoch - 1 if self.covered_epoch is None else self.covered_epoch

    def missing(self, epoch: int) -> bool:
        """Whether no heartbeat of it came for `epoch` or later, though it had joined by then. resource-groups 7.3"""
        return self.awaited_after < epoch

    def behind(self, epoch: int) -> bool:
        """Whether heartbeats end before `epoch`, so that it was heard further of one group than of another."""
        return self.covered_epoch is None or self.covered_epoch < epoch

    def state(self) -> PlainData:
        """Everything kept, as plain data, a copy; histories are a list of [group, class, history]."""
        histories = [[*key, history.state()] for key, history in self.histories.items()]
        return {**{name: getattr(self, name) for name in _PLAIN_FIELDS}, "histories": histories}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild what `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, (*_PLAIN_FIELDS, "histories"))
        broker = cls(state["incarnation"], state["joined_epoch"])
        for name in _PLAIN_FIELDS:
            setattr(broker, name, state[name])
        for group_id, traffic_class, history in state["histories"]:
            broker.histories[group_id, traffic_class] = UsageHistory.from_state(history)
        return broker
