"""The evaluation of an epoch: limits of this loop's brokers in groups of which something changed (resource-groups 9).

Which epoch, who belongs to M, what an early row may raise and what a limit is are the core's rules; here is only for
which groups they are asked. Where the profile is max_min they are asked in arrays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product

from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.assessment import Assessment, assess, assess_coupled
from headgate.core.quota.evaluation.step import decide, first_limit, limit_without_transport
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.evaluation.view import choose_epoch
from headgate.core.quota.groups import Dimension, RatePair, ResourceGroup, TrafficClass, UsageKey
from headgate.core.quota.rates import BROKERS_MAX
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.usage_map import UsageMap
from headgate.quota.cell_arrays import NOBODY, CellArrays, active_rows
from headgate.quota.changed_groups import ChangedGroups
from headgate.quota.limit_book import Decided, LimitBook
from headgate.quota.members_in_view import MembersInView

_MAY_STILL_MOVE = (Reason.GATED, Reason.DEAD_BAND)
"""Limits that the same view may change once more, since the present one counts."""


class Evaluation:
    """Limits after `run` are what evaluating every group would give, though only some are.

    one_job: this loop evaluates all brokers, so that an early row leaves nobody out.
    """

    def __init__(self, settings: QuotaSettings, book: LimitBook, *, one_job: bool) -> None:
        self._parameters = settings.step_parameters()
        self._couple = settings.couple_dimensions
        self._one_job = one_job
        self._book = book
        self._groups: Mapping[int, ResourceGroup] = {}
        self._epoch: int | None = None
        self._as_of = -1
        self._signature: tuple[object, ...] = ()
        self.changed_groups = ChangedGroups()

    def set_groups(self, groups: Mapping[int, ResourceGroup]) -> None:
        """The groups in use, by id. Those that are gone limit nothing any more, those with other rates are news."""
        for group_id in set(self._groups) - set(groups):
            self._book.drop(group_id)
        for group_id, group in groups.items():
            before = self._groups.get(group_id)
            if before is None or before.rates != group.rates:
                self.changed_groups.changed((group_id, int(traffic_class)) for traffic_class in TrafficClass)
        self._groups = groups

    def run(self, usage_map: UsageMap, own: Mapping[int, int], epoch: int) -> bool:
        """Evaluate what is due; False where there is nobody to evaluate.

        own: weights of this loop's brokers, by id. epoch: the current one.

        Once per epoch, as of the newest epoch that each broker may go by; and what early rows speak of, by the newest
        row of everybody. A change of configuration is followed at once. Source: resource-groups 7.3, 9.2.
        """
        if not own:
            return False
        if self._epoch is None or epoch > self._epoch or self.changed_groups.urgent:
            self._epoch = epoch
            self._by_epoch(usage_map, own, epoch)
        early = self.changed_groups.take_early(self._as_of)
        if early:
            in_view = MembersInView.of(usage_map, own, epoch, newest=True, one_job=self._one_job)
            self._evaluate(in_view, early, frozenset(own))
        return True

    def without_transport(self, own: Iterable[int], broker_count: int) -> None:
        """Nobody is heard: every limit is an equal part. broker_count: of the cluster. Source: resource-groups 10."""

        def equal_part(_key: UsageKey, quota: int | None, _broker_id: int) -> CellLimit:
            return limit_without_transport(quota, broker_count)

        self._decide_unseen(tuple(own), broker_count, equal_part)

    def before_any_view(
        self, usage_map: UsageMap, own: Mapping[int, int], used_by_others: AbstractSet[UsageKey]
    ) -> None:
        """Some members were never heard: every limit is the first one, by the weights of those that are up now.

        own: as for `run`. used_by_others: groups and classes of which own brokers that never said a word have the floor
        until they did. Source: resource-groups 9.2.
        """
        members = usage_map.members()
        weights = {broker_id: broker.weight for broker_id, broker in members.items()} | dict(own)
        joining = frozenset(own).difference(id_ for id_, broker in members.items() if broker.heard_ms is not None)

        def first(key: UsageKey, quota: int | None, broker_id: int) -> CellLimit:
            is_shared_out = broker_id in joining and key in used_by_others
            return first_limit(self._parameters, quota, broker_id, weights, is_shared_out=is_shared_out)

        self._decide_unseen(tuple(own), (weights, joining, used_by_others), first)

    def _decide_unseen(
        self, own: tuple[int, ...], others: object, outcome_of: Callable[[UsageKey, int | None, int], CellLimit]
    ) -> None:
        """Decide every cell of these brokers without a view; once, until a group or what `others` says changes."""
        signature = (own, others, self._groups)
        if signature == self._signature:
            return
        for key in self._keys():
            quotas = self._groups[key[0]].quotas(key[1])
            for dimension, broker_id in product(Dimension, own):
                self._book.decide((*key, int(dimension)), broker_id, outcome_of(key, quotas[dimension], broker_id))
        self._signature = signature

    def _by_epoch(self, usage_map: UsageMap, own: Mapping[int, int], epoch: int) -> None:
        by_view: dict[int, set[int]] = {}
        for broker_id in own:
            by_view.setdefault(choose_epoch(usage_map, broker_id, epoch), set()).add(broker_id)
        views = [MembersInView.of(usage_map, own, as_of, one_job=self._one_job) for as_of in sorted(by_view)]
        signature = tuple((tuple(sorted(by_view[in_view.epoch])), in_view.signature()) for in_view in views)
        every = signature != self._signature or any(in_view.behind for in_view in views)
        due = self.changed_groups.due(views[-1].epoch)
        for in_view in views:
            self._evaluate(in_view, self._keys() if every else due, by_view[in_view.epoch])
        self._as_of, self._signature = views[0].epoch, signature
        self.changed_groups.evaluated(self._as_of)

    def _keys(self) -> Iterator[UsageKey]:
        return ((group_id, int(traffic_class)) for group_id in self._groups for traffic_class in TrafficClass)

    def _evaluate(self, in_view: MembersInView, keys: Iterable[UsageKey], own: AbstractSet[int]) -> None:
        in_use = (key for key in keys if key[0] in self._groups)
        by_key = ((key, self._groups[key[0]].quotas(key[1])) for key in in_use)
        if self._parameters.profile is Profile.MAX_MIN and not self._couple:
            self._in_arrays(in_view, by_key, own)
        else:
            self._one_by_one(in_view, by_key, own)

    def _one_by_one(
        self, in_view: MembersInView, by_key: Iterable[tuple[UsageKey, RatePair]], own: AbstractSet[int]
    ) -> None:
        for key, quotas in by_key:
            assessments = self._assessed(in_view, key, quotas)
            for dimension, assessment in zip(Dimension, assessments, strict=True):
                cell = (*key, int(dimension))
                for broker_id in own:
                    present = self._book.present(cell, broker_id).limit
                    outcome = decide(self._parameters, assessment, broker_id, present)
                    self._decide(Decided(broker_id, cell, outcome), in_view.epoch)

    def _in_arrays(
        self, in_view: MembersInView, by_key: Iterable[tuple[UsageKey, RatePair]], own: AbstractSet[int]
    ) -> None:
        """Rows of M in arrays; all others by one readable decision a quota, since nothing but that sets them apart."""
        arrays = CellArrays(self._parameters, in_view, own, self._book)
        outside: dict[tuple[int | None, bool, bool, int], CellLimit] = {}
        for key, quotas in by_key:
            active = NOBODY
            if any(quotas):
                active = active_rows(in_view, key, self._parameters.silent_rounds)
            if len(active.rows) > BROKERS_MAX:  # sums of the arrays could leave 64 bits
                self._one_by_one(in_view, [(key, quotas)], own)
                continue
            inside = active.members
            if inside:
                arrays.put(key, quotas, active)
            awaited = {row.broker_id for row in active.rows} - inside
            for dimension in Dimension:
                quota, cell = quotas[dimension], (*key, int(dimension))
                if quota is None and not self._book.of(cell):
                    continue
                for broker_id in own - inside if quota else own:
                    like = (quota, bool(inside), broker_id in awaited, broker_id)
                    if like not in outside:
                        assessment = assess(self._parameters, quota, in_view.view(key, dimension))
                        outside[like] = decide(self._parameters, assessment, broker_id, None)
                    outcome = outside[like]
                    if (outcome.limit, outcome.reason) == self._book.present(cell, broker_id):
                        continue
                    if active is not NOBODY:
                        outcome = replace(outcome, silent=active.silent, report_age=active.report_age)
                    self._decide(Decided(broker_id, cell, outcome), in_view.epoch)
        for decided in arrays.decided():
            self._decide(decided, in_view.epoch)

    def _assessed(self, in_view: MembersInView, key: UsageKey, quotas: RatePair) -> tuple[Assessment, Assessment]:
        of_messages, of_bytes = (in_view.view(key, dimension) for dimension in Dimension)
        if self._couple:
            return assess_coupled(self._parameters, quotas, (of_messages, of_bytes))
        return assess(self._parameters, quotas[0], of_messages), assess(self._parameters, quotas[1], of_bytes)

    def _decide(self, decided: Decided, as_of: int) -> None:
        broker_id, cell, outcome = decided
        if (outcome.limit, outcome.reason) == self._book.present(cell, broker_id):
            return
        self._book.decide(cell, broker_id, outcome)
        if outcome.reason in _MAY_STILL_MOVE:
            self.changed_groups.expect(cell[:2], as_of + 1)
