"""Groups that lose their topics of a domain as attachments move them, for readers of usage (resource-groups 6.2).

Unlike what is written of events this depends on where batches end: a topic that comes back in the same batch never
left. Attachments themselves hold from the end of the batch in which they were read.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import GROUP_LEAVES
from headgate.core.kernels.columns import Ints
from headgate.core.kernels.publish.types import UNRESOLVED
from headgate.core.quota.groups import TrafficClass
from headgate.throttle.groups.group_usage import leave_rows
from headgate.throttle.limits.changes import Change
from headgate.throttle.limits.effective_limits import EffectiveLimits, topics_under
from headgate.throttle.state import DomainState


class _Topics(NamedTuple):
    """Topics of a traffic class, each with the position of its group among `keys`, or open:
    then the limits in force say it.
    """

    names: pa.StringArray
    keys: pa.StringArray
    group_of: Ints
    in_force: EffectiveLimits

    @classmethod
    def by_class(cls, domain: DomainState) -> dict[TrafficClass, Self]:
        state = domain.dispatch
        return {
            TrafficClass.PUBLISH: cls(domain.keys, domain.keys, domain.limiters["group"], domain.in_force),
            TrafficClass.DISPATCH: cls(state.topics, state.keys, state.level_of, domain.in_force),
        }

    def groups(self, positions: Ints | None = None) -> pa.StringArray:
        """Keys of the groups of the topics at these positions, of all where None; null for a topic without one."""
        group_of = self.group_of if positions is None else self.group_of[positions]
        names = self.names if positions is None else self.names.take(pa.array(positions))
        known = self.keys.take(pa.array(np.unique(group_of[group_of >= 0])))
        looked_up = self.in_force.groups_of(names.take(pa.array(np.flatnonzero(group_of == UNRESOLVED))))
        return pc.unique(pa.concat_arrays([known, looked_up]))


class Departures:
    """Groups whose topics were moved in a step, and of them those that have none left when it ends."""

    def __init__(self) -> None:
        self._had: dict[TrafficClass, list[pa.StringArray]] = {one: [] for one in TrafficClass}

    def watch(self, domain: DomainState, attachments: Sequence[Change]) -> None:
        """Note whose topics these are about to move; those in force do not have them yet."""
        if not attachments:
            return
        for traffic_class, topics in _Topics.by_class(domain).items():
            under = topics_under(attachments, topics.names).to_numpy().astype(np.int64)
            self._had[traffic_class].append(topics.groups(under).drop_null())

    def rows(self, domain: DomainState) -> pa.Table:
        """Rows of GROUP_LEAVES, at the end of the step."""
        if not any(self._had.values()):
            return GROUP_LEAVES.empty_table()
        tables = []
        for traffic_class, topics in _Topics.by_class(domain).items():
            had = pc.unique(pa.concat_arrays([*self._had[traffic_class], pa.array([], pa.string())]))
            if len(had):
                had = had.filter(pc.invert(pc.is_in(had, value_set=topics.groups())))
            tables.append(leave_rows(domain.broker, traffic_class, had))
        return pa.concat_tables(tables)
