"""What all brokers reported, as one reader holds it: rows in, usage by group and class out (resource-groups 7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from headgate.core.numbers import MAX, at_least, int64
from headgate.core.quota.epochs import check_epoch
from headgate.core.quota.groups import UsageKey
from headgate.core.quota.rates import WEIGHT_MAX
from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.core.quota.usage.usage_history import AcceptedRow
from headgate.core.quota.usage.usage_row import UsageRow, is_count
from headgate.core.state import PlainData, check_fields

HISTORY_MARGIN_EPOCHS = 2


class DropReason(StrEnum):
    """Why a row has no effect, in the order in which it is asked (resource-groups 7.1)."""

    INVALID = "invalid"
    FUTURE = "future"
    STALE = "stale"
    UNKNOWN_GROUP = "unknown_group"
    NOT_MEMBER = "not_member"
    OLD_INCARNATION = "old_incarnation"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class MapParameters:
    """What a reader goes by; the defaults are those of resource-groups 14.

    epoch_ms: T, >= 1. stale_ms: rows older than this are dropped, >= 0.
    max_staleness_rounds: how many epochs a view may be behind, >= 1.
    linger_rounds: epochs for which an idle broker stays active, >= 0. suppress_rounds: R.
    members_listed: a table says who is a member; otherwise whoever reports is one.

    Raises InvalidArgument for anything else.
    """

    epoch_ms: int = 1000
    stale_ms: int = 2000
    max_staleness_rounds: int = 3
    linger_rounds: int = 60
    suppress_rounds: int = 5
    members_listed: bool = True

    def __post_init__(self) -> None:
        at_least(1, self.epoch_ms, "epoch_ms")
        at_least(0, self.stale_ms, "stale_ms")
        at_least(1, self.max_staleness_rounds, "max_staleness_rounds")
        at_least(0, self.linger_rounds, "linger_rounds")
        int64(self.suppress_rounds, "suppress_rounds")

    @property
    def expiry_ms(self) -> int:
        """How long a member that no table lists may say nothing. resource-groups 7.2"""
        return 2 * self.epoch_ms * max(self.suppress_rounds, 1)


@dataclass(frozen=True, slots=True)
class Member:
    """A broker that the table of members lists as up; its weight is 1 to 1000."""

    incarnation: int
    weight: int = 1


class UsageMap:
    """The map is the same for every order and multiplicity of the same rows, while the reader's clock stands still.

    A broker's own rows enter it as everybody's do. Every operation takes the reader's clock; with members that no table
    lists, those not heard for too long are removed first. While a table lists them, nothing but an idle row, a leave, a
    new incarnation and the end of a membership removes what a broker said.

    Memory: per broker, group and class a handful of rows by epoch, bounded by max_staleness_rounds; of brokers that
    are no members any more only seqs stay, so that nothing of theirs is accepted again.

    Source: resource-groups 7.
    """

    __slots__ = ("_brokers", "_expiry_due_ms", "_groups", "dropped", "parameters")

    def __init__(self, parameters: MapParameters) -> None:
        self.parameters = parameters
        self.dropped: dict[DropReason, int] = {}
        self._groups: frozenset[int] | None = None
        self._brokers: dict[int, BrokerUsage] = {}
        self._expiry_due_ms = MAX  # nothing expires before; it may be too early, never too late

    def set_groups(self, group_ids: Iterable[int] | None) -> None:
        """The groups that exist, None for all there may be. What is known of others is dropped: ids never return."""
        self._groups = None if group_ids is None else frozenset(group_ids)
        if self._groups is not None:
            for broker in self._brokers.values():
                kept = {key: history for key, history in broker.histories.items() if key[0] in self._groups}
                broker.histories = kept

    def set_members(self, members: Mapping[int, Member], at_ms: int) -> None:
        """The brokers that the table of members lists as up, all of them. Without such a table nothing happens."""
        for broker_id in [known for known in self.members() if known not in members]:
            self.lose(broker_id, at_ms)
        for broker_id, member in members.items():
            self.join(broker_id, member, at_ms)

    def join(self, broker_id: int, member: Member, at_ms: int) -> None:
        """A broker is listed as up. With a higher incarnation it begins with nothing, with the same its seqs count on.

        Raises InvalidArgument for negative numbers and weights outside 1 to 1000.
        """
        at_least(0, broker_id, "broker_id")
        at_least(0, member.incarnation, "incarnation")
        weight = min(at_least(1, member.weight, "weight"), WEIGHT_MAX)
        self.expire(at_ms)
        if not self.parameters.members_listed:
            return
        epoch = at_ms // self.parameters.epoch_ms
        broker = self._known(broker_id, member.incarnation, epoch)
        if member.incarnation > broker.incarnation:
            broker.renew(member.incarnation, epoch)
        broker.join(epoch, weight)

    def lose(self, broker_id: int, at_ms: int) -> None:
        """A broker is not listed as up any more: everything it said is gone at once."""
        self.expire(at_ms)
        if self.parameters.members_listed and broker_id in self._brokers:
            self._brokers[broker_id].part()

    def receive(self, row: UsageRow, at_ms: Any) -> DropReason | None:
        """Take a row or heartbeat, read at `at_ms` by the reader's clock; None, or why it was dropped and counted.

        Never raises: whatever is in the table is taken or dropped. Source: resource-groups 7.1, 16.
        """
        if is_count(at_ms):
            self.expire(at_ms)
        reason = self._reason_to_drop(row, at_ms)
        if reason is None:
            self._take(row, at_ms)
        else:
            self.dropped[reason] = self.dropped.get(reason, 0) + 1
        return reason

    def expire(self, at_ms: int) -> None:
        """Remove what was not heard for too long, where no table lists the members. Source: resource-groups 7.2."""
        if at_least(0, at_ms, "at_ms") < self._expiry_due_ms or self.parameters.members_listed:
            return
        self._expiry_due_ms = MAX
        for broker in self._brokers.values():
            if broker.heard_ms is not None and at_ms >= broker.heard_ms + self.parameters.expiry_ms:
                broker.part()
            elif broker.heard_ms is not None:
                self._expiry_due_ms = min(self._expiry_due_ms, broker.heard_ms + self.parameters.expiry_ms)

    def entries(self) -> dict[UsageKey, dict[int, AcceptedRow]]:
        """The newest row of every broker that is not idle, by group and class, then broker; no empty parts."""
        current: dict[UsageKey, dict[int, AcceptedRow]] = {}
        for broker_id, broker in self._brokers.items():
            for key, history in broker.histories.items():
                if history.current is not None:
                    current.setdefault(key, {})[broker_id] = history.current
        return current

    def members(self) -> dict[int, BrokerUsage]:
        """C: what is known of each member, by broker. Not to be changed."""
        return {broker_id: broker for broker_id, broker in self._brokers.items() if broker.is_member}

    def member(self, broker_id: int) -> BrokerUsage | None:
        """What `members` has of one broker. Not to be changed."""
        broker = self._brokers.get(broker_id)
        return broker if broker is not None and broker.is_member else None

    def _reason_to_drop(self, row: UsageRow, at_ms: Any) -> DropReason | None:
        if not is_count(at_ms) or not row.valid:
            return DropReason.INVALID
        if row.epoch > at_ms // self.parameters.epoch_ms + 1:
            return DropReason.FUTURE
        if at_ms - row.publish_time_ms > self.parameters.stale_ms:
            return DropReason.STALE
        is_heartbeat = row.is_heartbeat
        is_leave_all = not is_heartbeat and row.is_leave_all
        if not (is_heartbeat or is_leave_all or self._knows(row.group_id)):
            return DropReason.UNKNOWN_GROUP
        broker = self._brokers.get(row.broker_id)
        if self.parameters.members_listed and (broker is None or not broker.is_member):
            return DropReason.NOT_MEMBER
        if broker is None or row.incarnation > broker.incarnation:
            return None
        if row.incarnation < broker.incarnation:
            return DropReason.OLD_INCARNATION
        seq = -1 if is_heartbeat else broker.accepted_seq(None if is_leave_all else row.key)
        if row.seq == seq:
            return DropReason.DUPLICATE
        return DropReason.REORDERED if row.seq < seq else None

    def _take(self, row: UsageRow, at_ms: int) -> None:
        broker = self._known(row.broker_id, row.incarnation, row.epoch)
        if row.incarnation > broker.incarnation:
            broker.renew(row.incarnation, row.epoch)
        broker.heard_ms = at_ms
        self._expiry_due_ms = min(self._expiry_due_ms, at_ms + self.parameters.expiry_ms)
        if not self.parameters.members_listed:
            self._follow_reports(broker, row)
        if row.is_heartbeat:
            broker.heartbeat(row.epoch)
        elif row.is_leave_all:
            broker.leave_all(row.seq)
        elif row.is_leave:
            broker.history(row.key).leave(row.seq)
        else:
            broker.history(row.key).accept(
                AcceptedRow(row.epoch, row.seq, row.usage()),
                current_epoch=at_ms // self.parameters.epoch_ms,
                kept_epochs=self.parameters.max_staleness_rounds + HISTORY_MARGIN_EPOCHS,
            )

    def _follow_reports(self, broker: BrokerUsage, row: UsageRow) -> None:
        """Without a table whoever reports is a member, until it leaves. resource-groups 5.3, 7.2

        What was sent before it left and comes later revives nobody.
        """
        if not row.is_leave_all:
            broker.newest_seq = max(broker.newest_seq, row.seq)
        left_seq = row.seq if row.is_leave_all else broker.left_seq
        if left_seq is not None and broker.newest_seq <= left_seq:
            broker.is_member = False
        elif not row.is_leave_all:
            broker.join(row.epoch, row.broker_weight)

    def _known(self, broker_id: int, incarnation: int, epoch: int) -> BrokerUsage:
        """What is known of a broker; nothing but its incarnation where it is new."""
        if broker_id not in self._brokers:
            self._brokers[broker_id] = BrokerUsage(incarnation, epoch)
        return self._brokers[broker_id]

    def _knows(self, group_id: object) -> bool:
        return is_count(group_id) and (self._groups is None or group_id in self._groups)

    def state(self) -> PlainData:
        """Everything but the parameters, as plain data, a copy; brokers are a list of [id, broker]."""
        return {
            "epoch_ms": self.parameters.epoch_ms,
            "groups": None if self._groups is None else sorted(self._groups),
            "dropped": {str(reason): count for reason, count in self.dropped.items()},
            "brokers": [[broker_id, broker.state()] for broker_id, broker in self._brokers.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], parameters: MapParameters) -> Self:
        """Rebuild the map that `state` was taken from. Raises StateError for another version or epoch length."""
        check_fields(cls.__name__, state, ("epoch_ms", "groups", "dropped", "brokers"))
        check_epoch(cls.__name__, state["epoch_ms"], parameters.epoch_ms)
        usage_map = cls(parameters)
        usage_map._groups = None if state["groups"] is None else frozenset(state["groups"])
        usage_map.dropped = {DropReason(reason): count for reason, count in state["dropped"].items()}
        usage_map._expiry_due_ms = 0
        usage_map._brokers = {broker_id: BrokerUsage.from_state(broker) for broker_id, broker in state["brokers"]}
        return usage_map
