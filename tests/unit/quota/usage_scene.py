"""A cluster of four brokers over forty seconds, in all tables that `headgate usage` reads.

More is wanted of gold (tenants acme, globex) than its quota: b-0 takes more than its part, b-1 is held below it, b-2
has enough, b-3 was lost. The quota was 1,400 messages/s until eight epochs before the end.
"""

from pathlib import Path

import pyarrow as pa

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.usage_rows import Sender, SentReport
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from headgate.throttle.tables import throttle_tables
from unit.quota.places import EPOCH, tables

EPOCHS = 40
FIRST = EPOCH - EPOCHS + 1
RAISED = EPOCH - 8
"""The first epoch with the raised quota of gold."""
LOST_AFTER = EPOCH - 5
LIFE = 1_700_000_000_000
GOLD, SILVER = 1, 2
BROKERS = ("b-0", "b-1", "b-2", "b-3")
SHARED_AT = EPOCH - 4
"""The first epoch in which the others have what b-3 had."""
BEFORE, AFTER = (600, 330, 220, 250), (800, 420, 280, 0)
"""Limits of gold in messages/s."""


def write_scene(folder: Path) -> None:
    """Write all tables under `folder`."""
    quota = tables(folder)
    _write_config(quota.config)
    members = quota.members.join(dict.fromkeys(BROKERS, 1), LIFE)
    quota.members.lose({members["b-3"].broker_id: LIFE})
    cuts = [_cut(broker, epoch) for epoch in range(FIRST, EPOCH + 1) for broker in _alive(epoch)]
    quota.usage.append(cuts, {GOLD: 3, SILVER: 5})
    quota.limits.append(list(_limits()))
    topics = throttle_tables(folder)
    topics.append("topic_usage", topic_usage(), "scene", 0)
    topics.append("marks", _marks(), "scene", 0)


def _write_config(store):
    gold = ResourceGroup(GOLD, "gold", (1400, 2_000_000, None, None), shard=3, version=1)
    silver = ResourceGroup(SILVER, "silver", (300, None, 1000, None), shard=5, version=2)
    attached = [("acme", "gold", 3), ("globex", "gold", 4)]
    rows = [Attachment(AttachedTo.TENANT, name, group, version) for name, group, version in attached]
    for row in (gold, silver, *rows, Attachment(AttachedTo.NAMESPACE, "hooli/logs", "silver", 5)):
        assert store.write([row], store.read().version)
    raised = ResourceGroup(GOLD, "gold", (1500, 2_000_000, None, None), shard=3, version=6)
    assert store.write([raised], store.read().version)


def write_gold(store):
    """A group that is limited in messages, and a tenant attached to it."""
    gold = ResourceGroup(GOLD, "gold", (1500, None, None, None), shard=0, version=1)
    assert store.write([gold], store.read().version)
    assert store.write([Attachment(AttachedTo.TENANT, "acme", "gold", 2)], store.read().version)


def _alive(epoch):
    return (0, 1, 2, 3) if epoch <= LOST_AFTER else (0, 1, 2)


def _cut(broker, epoch):
    """Rows where something changed, or after five epochs without any."""
    now, before = _used(broker, epoch), _used(broker, epoch - 1)
    due = epoch == FIRST or (epoch - FIRST) % 6 == 0
    rows = tuple(
        ReportRow(group, traffic_class, usage, ReportReason.CHANGE)
        for (group, traffic_class), usage in now.items()
        if due or usage != before[group, traffic_class] or epoch == RAISED
    )
    version = 6 if epoch >= RAISED else 5
    cut = UsageReport(epoch - FIRST + 1, epoch, ReportKind.PERIODIC, True, (epoch + 1) * 1000, version, rows)
    return SentReport(Sender(broker, LIFE), cut, (epoch + 1) * 1000, dict.fromkeys(now, 3))


def _used(broker, epoch):
    """By group and class, messages of 1,000 bytes."""
    left = EPOCH - epoch
    limit = (BEFORE if epoch < SHARED_AT else AFTER)[broker]
    if broker == 0:
        passed = min(limit, 300 + 50 * max(0, 10 - left // 2))
        gold = _usage(passed, max(passed, 1100 - 100 * (left // 2)), limit, throttled=left < 6)
        return {(GOLD, 0): gold, (SILVER, 0): _usage(120, 120, 300)}
    if broker == 1:
        return {(GOLD, 0): _usage(min(limit, 420 - 10 * min(left, 12)), 600, limit, throttled=True)}
    if broker == 2:
        return {(GOLD, 0): _usage(200, 200, limit), (SILVER, 1): _usage(40, None, 1000)}
    return {(GOLD, 0): _usage(250, 250, limit)}


def _usage(admitted, offered, limit, *, throttled=False):
    of_bytes = None if offered is None else offered * 1000
    return Usage((admitted, admitted * 1000), (offered, of_bytes), (limit, None), (throttled, False))


def _limits():
    for broker, limit in enumerate(BEFORE):
        outcome = CellLimit(limit, limit, 350, limit, 0, 0, 1, Reason.TARGET)
        yield LimitRow(FIRST, broker, GOLD, 0, 0, outcome)
        yield LimitRow(FIRST, broker, GOLD, 0, 1, CellLimit(500_000, 500_000, 500_000, 400_000, 0, 0, 1, Reason.TARGET))
    yield LimitRow(SHARED_AT, 0, GOLD, 0, 0, CellLimit(800, 800, 500, 1100, 0, 0, 1, Reason.TARGET))
    yield LimitRow(SHARED_AT, 1, GOLD, 0, 0, CellLimit(420, 500, 500, 600, 1, 0, 3, Reason.GATED))
    yield LimitRow(SHARED_AT, 2, GOLD, 0, 0, CellLimit(280, 280, 500, 200, 0, 0, 1, Reason.TARGET))
    for broker, limit in enumerate((900_000, 600_000, 500_000)):
        yield LimitRow(SHARED_AT, broker, GOLD, 0, 1, CellLimit(limit, limit, 666_667, 400_000, 0, 0, 1, Reason.TARGET))
    yield LimitRow(FIRST, 0, SILVER, 0, 0, CellLimit(300, 300, 300, 120, 0, 0, 0, Reason.TARGET))
    yield LimitRow(FIRST, 2, SILVER, 1, 0, CellLimit(1000, 1000, 1000, 40, 0, 0, 0, Reason.TARGET))


ARRIVED = {"persistent://acme/orders/new-partition-0": 1500}


def topic_usage():
    """What topics did in the last thirty seconds: (topic, broker, messages let in, throttled by each scope of limiter).

    More came for one of them than was let in.
    """
    each_second = [
        ("persistent://acme/orders/new-partition-0", "b-0", 700, (0, 0, 9)),
        ("persistent://acme/orders/new-partition-1", "b-1", 300, (0, 0, 4)),
        ("persistent://globex/trade/ticks", "b-1", 110, (0, 0, 2)),
        ("non-persistent://globex/trade/quotes", "b-2", 200, (0, 0, 0)),
        ("persistent://hooli/logs/web", "b-0", 120, (0, 0, 0)),
        ("persistent://hooli/free/audit", "b-0", 30, (3, 1, 0)),
    ]
    rows = [
        dict.fromkeys(TOPIC_USAGE.names)
        | {"event_time": (EPOCH - second) * 1_000_000, "broker": broker, "topic": topic}
        | {"publishes": messages // 10, "messages": ARRIVED.get(topic, messages), "bytes": messages * 1000}
        | {"admitted_messages": messages}
        | dict(zip(("throttled_by_topic", "throttled_by_broker", "throttled_by_group"), throttled, strict=True))
        | {"throttled_publishes": max(throttled), "throttled_ns": max(throttled) * 20_000_000}
        for second in range(EPOCHS)
        for topic, broker, messages, throttled in each_second
    ]
    return pa.Table.from_pylist(rows, TOPIC_USAGE)


def _marks():
    """Of gold, which runs out of messages, and before the last thirty seconds of bytes."""
    of_gold = {"broker": "b-0", "scope": "group", "limiter": "gold", "action": "mark"}
    rows = [
        of_gold | {"event_time": (EPOCH - second) * 1_000_000, "messages_balance": left, "bytes_balance": 1 - left}
        for second in range(EPOCHS)
        for left in ((0,) if second < 30 else (1, 1))
    ]
    return pa.Table.from_pylist(rows, MARKS)
