"""Rows of the usage table for tests, by broker 1 of incarnation 1 in epoch 9 unless said otherwise."""

from headgate.core.quota.usage.usage_map import MapParameters, Member, UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow

AT_MS = 10_100
KEY = (7, 0)


def row(seq=1, epoch=9, broker_id=1, incarnation=1, group_id=7, traffic_class=0, published_ms=AT_MS, **values):
    values = {"admitted": (10, 1000)} | values
    return UsageRow(broker_id, incarnation, seq, epoch, published_ms, group_id, traffic_class, **values)


def idle(seq=1, epoch=9, **values):
    return row(seq, epoch, **{"admitted": (0, 0), "offered": (0, 0)} | values)


def leave(seq=1, epoch=9, **values):
    return row(seq, epoch, **{"kind": ReportKind.LEAVE, "admitted": (0, 0)} | values)


def leave_all(seq=1, epoch=9, **values):
    return leave(seq, epoch, **{"group_id": 0} | values)


def heartbeat(epoch=9, broker_id=1, seq=1, **values):
    return row(seq, epoch, broker_id, **{"group_id": 0, "admitted": (0, 0)} | values)


def reader(members=(1, 2), groups=None, **parameters):
    """A reader whose table of members lists `members`, all of incarnation 1."""
    usage_map = UsageMap(MapParameters(**parameters))
    usage_map.set_groups(groups)
    usage_map.set_members({broker_id: Member(1) for broker_id in members}, 0)
    return usage_map


def received(usage_map, *rows, at_ms=AT_MS):
    """Let rows arrive in order; returns why each was dropped, None where it was not."""
    return [usage_map.receive(one, at_ms) for one in rows]


def known(usage_map):
    """What the map holds: by key, then broker, the seq of the row."""
    return {
        key: {broker_id: entry.seq for broker_id, entry in entries.items()}
        for key, entries in usage_map.entries().items()
    }
