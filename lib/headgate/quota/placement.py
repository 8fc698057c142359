"""Groups move to other shards of rg_usage: at most hourly, whoever asks, and as one configuration version.

resource-groups 13.3
"""

from dataclasses import replace

from deltalake import Transaction

from headgate.core.quota.placement import Holders, moves
from headgate.quota.tables.config_store import ConfigStore
from headgate.quota.tables.usage_rows import HOUR_MS

PLACEMENT = "headgate-placement"
"""The application id of placements in rg_groups; its version is the hour."""
_ATTEMPTS = 4


def place_groups(store: ConfigStore, holders: Holders, shards: int, now_ms: int) -> int:
    """Move groups to where their holders read least, and return how many moved: 0 where this hour had its placement.

    The hour is taken by an empty commit first, so of several processes one decides; if it ends before it has written,
    groups stay where they are until the next hour. Usage rows stay too: a reader of a shard that is new to it
    reads the last epochs as a whole.

    Arguments:
        store: of the groups; any number of processes may have one on the same tables.
        holders: active set of every group in use; ids that rg_groups does not have are passed over.
        shards: of resourceGroupUsageShards, >= 1.
        now_ms: the same clock wherever this is called.

    Raises TableError where a table cannot be read or written. Source: resource-groups 13.3.

    """
    hour = now_ms // HOUR_MS
    store.read()
    if not holders or store.groups.has(PLACEMENT, hour):
        return 0
    if not store.groups.commit_pinned([], [Transaction(PLACEMENT, hour)]):
        return 0
    for _ in range(_ATTEMPTS):
        tables = store.read()
        groups = {group.group_id: group for group in tables.groups.values()}
        current = {group_id: group.shard for group_id, group in groups.items()}
        known = {group_id: brokers for group_id, brokers in holders.items() if group_id in groups}
        moved = moves(known, current, shards)
        version = tables.version + 1
        rows = [replace(groups[group_id], shard=shard, version=version) for group_id, shard in moved.items()]
        if not rows or store.write(rows, tables.version):
            return len(rows)
    return 0
