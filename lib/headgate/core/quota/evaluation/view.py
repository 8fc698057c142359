"""The view of a cell as of an epoch, out of the usage map (resource-groups 7.3).

One epoch for everybody, the evaluating broker included: nobody's fresh demand stands beside stale demand of others.
"""

from dataclasses import replace

from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView, demand_of, lingers
from headgate.core.quota.groups import UsageKey
from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.core.quota.usage.usage_history import EpochRow
from headgate.core.quota.usage.usage_map import UsageMap


def choose_epoch(usage_map: UsageMap, broker_id: int, current_epoch: int) -> int:
    """The epoch that `broker_id` evaluates as of: the newest closed one of which no other member is missing.

    It is not older than max_staleness_rounds, whoever is missing then. current_epoch: of the reader's clock.
    Source: resource-groups 7.3.
    """
    oldest, newest = current_epoch - usage_map.parameters.max_staleness_rounds, current_epoch - 1
    others = [broker.awaited_after for id_, broker in usage_map.members().items() if id_ != broker_id]
    return max(oldest, min([newest, *others]))


def cell_view(
    usage_map: UsageMap, key: UsageKey, dimension: int, epoch: int, *, raises_gated: bool = False
) -> CellView:
    """What is known of a cell as of `epoch`. raises_gated: as in the view. Source: resource-groups 7.3."""
    linger_rounds = usage_map.parameters.linger_rounds
    members = []
    for broker_id, broker in sorted(usage_map.members().items()):
        entry = broker.as_of(key, epoch)
        member = CellMember(
            broker_id,
            broker.weight,
            broker.newest_covered(key, epoch),
            broker.missing(epoch),
            active_row(broker, key, epoch, linger_rounds) is not None,
            None if entry is None else _row(entry, dimension),
            broker.unheard(key, epoch),
        )
        members.append(member)
    return CellView(epoch, tuple(members), raises_gated)


def newest_view(usage_map: UsageMap, key: UsageKey, dimension: int, epoch: int, *, one_job: bool) -> CellView:
    """What an early row is evaluated by: the newest row of every member. epoch: the current one.

    one_job: one job evaluates all brokers, so every member is covered up to this instant; otherwise raises are gated.
    Source: resource-groups 9.2.
    """
    view = cell_view(usage_map, key, dimension, epoch, raises_gated=not one_job)
    if not one_job:
        return view
    return replace(view, members=tuple(replace(member, covered_epoch=epoch, missing=False) for member in view.members))


def active_members(usage_map: UsageMap, key: UsageKey, epoch: int) -> list[int]:
    """M: members that use the group, or did not long ago, as of `epoch`; sorted. Source: resource-groups 7.3."""
    linger_rounds = usage_map.parameters.linger_rounds
    return sorted(
        broker_id
        for broker_id, broker in usage_map.members().items()
        if active_row(broker, key, epoch, linger_rounds) is not None
    )


def missing_members(usage_map: UsageMap, epoch: int) -> list[int]:
    """Members that joined by `epoch`, without a heartbeat for it or later; sorted. Source: resource-groups 7.3."""
    return sorted(broker_id for broker_id, broker in usage_map.members().items() if broker.missing(epoch))


def _row(entry: EpochRow, dimension: int) -> CellRow:
    usage = entry.row.usage
    admitted = usage.admitted[dimension]
    demand = demand_of(
        idle=usage.idle, admitted=admitted, offered=usage.offered[dimension], throttled=usage.throttled[dimension]
    )
    return CellRow(entry.row.epoch, admitted, demand, usage.limit[dimension], usage.idle)


def active_row(broker: BrokerUsage, key: UsageKey, epoch: int, linger_rounds: int) -> EpochRow | None:
    """The row as of `epoch` of a member that belongs to M; None for one that does not. Source: resource-groups 7.3."""
    entry = broker.as_of(key, epoch)
    if entry is None or not entry.row.usage.idle:
        return entry
    if entry.idle_since is None:
        return None
    return entry if lingers(broker.newest_covered(key, epoch), entry.idle_since, linger_rounds) else None
