"""Who is in the view of an evaluation, the same for all groups: members as of an epoch (resource-groups 7.3, 9.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from headgate.core.quota.allocation.share_out import shares_by_id
from headgate.core.quota.evaluation.cell_view import CellMember, CellView
from headgate.core.quota.evaluation.view import cell_view, newest_view
from headgate.core.quota.groups import UsageKey
from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.core.quota.usage.usage_map import UsageMap


@dataclass(frozen=True, slots=True)
class MembersInView:
    """C as of `epoch`, and own brokers that are not, or not yet, listed: they have no row there, and nobody waits.

    members: by id, ascending. outsiders: own brokers that are no members, with their weights.
    missing: members that had joined by the epoch, without a heartbeat for it. behind: those whose heartbeats end before
    it, or have not begun, so that how far they were heard differs from group to group. unheard: missing members without
    any heartbeat, which are awaited wherever they have no row either.
    newest: the epoch is the current one, and everybody's newest row counts; one_job: as if all of it were in.
    """

    usage_map: UsageMap
    epoch: int
    members: tuple[tuple[int, BrokerUsage], ...]
    outsiders: Mapping[int, int]
    missing: frozenset[int]
    behind: frozenset[int]
    unheard: frozenset[int]
    newest: bool = False
    one_job: bool = False

    @classmethod
    def of(
        cls, usage_map: UsageMap, own: Mapping[int, int], epoch: int, *, newest: bool = False, one_job: bool
    ) -> Self:
        """The members in view of an evaluation; own: weights of this loop's brokers, by id."""
        members = usage_map.members()
        awaited = {} if newest and one_job else members
        return cls(
            usage_map,
            epoch,
            tuple(sorted(members.items())),
            {broker_id: weight for broker_id, weight in own.items() if broker_id not in members},
            missing := frozenset(broker_id for broker_id, broker in awaited.items() if broker.missing(epoch)),
            frozenset(broker_id for broker_id, broker in awaited.items() if broker.behind(epoch)),
            frozenset(broker_id for broker_id in missing if members[broker_id].covered_epoch is None),
            newest,
            one_job,
        )

    @property
    def raises_gated(self) -> bool:
        """Whether every raise takes the gated branch: nobody knows what the others claim at this moment."""
        return self.newest and not self.one_job

    def size(self) -> int:
        """How many brokers there are."""
        return len(self.members) + len(self.outsiders)

    def total_weight(self) -> int:
        """W_C."""
        return sum(broker.weight for _, broker in self.members) + sum(self.outsiders.values())

    def cluster_shares(self, quota: int) -> dict[int, int]:
        """The quota by weight over all brokers, by id."""
        return shares_by_id(quota, {id_: broker.weight for id_, broker in self.members} | dict(self.outsiders))

    def view(self, key: UsageKey, dimension: int) -> CellView:
        """The view of a cell."""
        if self.newest:
            view = newest_view(self.usage_map, key, dimension, self.epoch, one_job=self.one_job)
        else:
            view = cell_view(self.usage_map, key, dimension, self.epoch)
        if not self.outsiders:
            return view
        added = (
            CellMember(id_, weight, self.epoch, missing=False, active=False, row=None)
            for id_, weight in self.outsiders.items()
        )
        return replace(view, members=(*view.members, *added))

    def signature(self) -> tuple[object, ...]:
        """What all groups depend on beside the epoch: while it stays and nobody is behind, a group changes alone."""
        return (
            tuple((id_, broker.weight, broker.incarnation, broker.joined_epoch) for id_, broker in self.members),
            self.missing,
            self.behind,
            tuple(sorted(self.outsiders.items())),
        )
