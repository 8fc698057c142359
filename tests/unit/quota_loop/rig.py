"""A cluster in miniature: brokers that admit what their limit allows, and quota loops fed by hand, epoch by epoch."""

from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable

from headgate.arrow.schemas import GROUP_USAGE, GROUP_WAITS
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.quota.loop import QuotaLoop
from headgate.quota.memory import HeldConfig, MemoryExchange, MemoryRead
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.schemas import USAGE
from headgate.quota.tables.usage_rows import usage_table
from headgate.tables.query import query

START = 1_700_000_000
"""The epoch in which everything begins; T is a second."""
QUARTERS = 4
UNLIMITED = (None, None)


def chosen(**values):
    return QuotaSettings(**values)


def shared(folder, **values):
    """Settings of jobs of one broker each that use the same tables."""
    names = ("usage", "group", "attachment", "member", "limit")
    return chosen(**{f"{name}_table": f"{folder}/rg_{name}s".replace("usages", "usage") for name in names} | values)


def opened(folder, settings):
    return QuotaTables(Locations.of(folder, settings), settings)


class WrittenConfig(HeldConfig):
    """Groups and attachments that tests change."""

    def write(self, rows, _version):
        for row in rows:
            self.tables = self.tables.written(row)
        return True


class UsageReader:
    """All cuts, each once: what was sent before it began, too."""

    def __init__(self, sent):
        self.sent, self.known = sent, 0

    def read(self, _now_ms):
        new = [USAGE.empty_table(), *self.sent[self.known :]]
        self.known = len(self.sent)
        return MemoryRead(pa.concat_tables(new))

    def earlier(self, _lives, _now_ms):
        return USAGE.empty_table()


class WithoutFiles(MemoryExchange):
    """An exchange of several loops in this process, where files would take most of a test's time."""

    def __init__(self, settings):
        super().__init__(ConfigTables(), settings, 0)
        self.config, self.usage, self.epoch_ms, self.sent = WrittenConfig(ConfigTables()), self, settings.epoch_ms, []

    def append(self, sent, shards):
        self.sent.append(usage_table(sent, shards, self.epoch_ms))
        return True

    def usage_reader(self):
        return UsageReader(self.sent)


def group(name="gold", *, id_=1, rate=1000, version=1, **values):
    rates = values.pop("rates", (rate, None, None, None))
    return ResourceGroup(id_, name, rates, shard=id_ % 3, version=version, **values)


def write(tables, *rows):
    """Write rows of configuration, each as the next version."""
    for row in rows:
        version = tables.config.read().version
        made = type(row)(**{name: getattr(row, name) for name in row.__slots__} | {"version": version + 1})
        assert tables.config.write([made], version)


def attached(resource="acme/a", name="gold", scope=AttachedTo.NAMESPACE):
    return Attachment(scope, resource, name)


def usage_of(epoch, demands, limits, traffic_class=0):
    """Rows of a batch with this epoch's traffic, at the beginning of every quarter. demands: by (broker, group)."""
    rows = []
    for (broker, name), demand in demands.items():
        limit = limits.get((broker, name, traffic_class), UNLIMITED)[0]
        admitted = demand if limit is None else min(demand, limit)
        for quarter in range(QUARTERS if demand else 0):
            counts = (_part(admitted, quarter), 0, _part(demand, quarter), 0, 3 if quarter == 0 else 0)
            rows.append((broker, name, traffic_class, epoch * 1000 + quarter * 250, *counts))
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 9, schema=GROUP_USAGE)


def _part(amount, quarter):
    return amount * (quarter + 1) // QUARTERS - amount * quarter // QUARTERS


def waits_of(epoch, demands, limits, traffic_class=0):
    rows = [
        (broker, name, traffic_class, epoch * 1000, epoch * 1000 + 999, True, False)
        for (broker, name), demand in demands.items()
        if (limit := limits.get((broker, name, traffic_class), UNLIMITED)[0]) is not None and demand > limit
    ]
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 7, schema=GROUP_WAITS)


@dataclass
class Job:
    """A loop, and the limits that its operator enforces. clock_off_ms: how far its clock is ahead of the others'.

    traffic_class: of all its traffic.
    """

    loop: QuotaLoop
    limits: dict = field(default_factory=dict)
    attached: dict = field(default_factory=dict)
    said: list = field(default_factory=list)
    clock_off_ms: int = 0
    traffic_class: int = 0

    def run(self, epoch, demands, wall_ms=0):
        """One batch: the traffic of `epoch`, to its end."""
        off = self.clock_off_ms // 1000
        usage, waits = (of(epoch + off, demands, self.limits, self.traffic_class) for of in (usage_of, waits_of))
        clock_ms = (epoch + off + 1) * 1000
        wall_ms = wall_ms or epoch * 1000
        self.loop.measure(usage, waits, sorted({broker for broker, _ in demands}), clock_ms, wall_ms)
        return self.take(self.loop.exchange(clock_ms, wall_ms))

    def take(self, rows):
        for limit in rows.limits:
            self.limits[limit.broker, limit.group, limit.traffic_class] = limit.messages_per_s, limit.bytes_per_s
        for one in rows.attachments:
            self.attached[str(one.scope), one.resource] = one.group
        self.said.append(rows)
        return rows

    def restart(self, tables, settings, **options):
        """The process dies and begins anew on the state that it has now; the operator's limits are in a checkpoint."""
        self.loop = QuotaLoop(tables, settings, state=self.loop.state(), **options)


class Cluster:
    """Brokers a, b, ... in one job, or each in its own; folder: of the tables, None: without files."""

    def __init__(self, folder, brokers, *, one_job, demand_visible=True, traffic_class=0, **values):
        self.brokers, self.one_job, self.demand_visible = brokers, one_job, demand_visible
        self.traffic_class = traffic_class
        self.settings = chosen(**values) if one_job else shared(folder, **values)
        self.folder = folder
        self.tables = WithoutFiles(self.settings) if folder is None else opened(folder, self.settings)
        self.epoch = START
        self.jobs = {name: self.job(None if one_job else name) for name in (("all",) if one_job else brokers)}
        self.sums = []

    def job(self, broker=None):
        tables = self.tables if self.folder is None else opened(self.folder, self.settings)
        loop = QuotaLoop(tables, self.settings, broker=broker, demand_visible=self.demand_visible)
        return Job(loop, traffic_class=self.traffic_class)

    def run(self, epochs, running=None, **demands):
        """Epochs with the same demand of every broker for gold; `running`: the jobs that are not dead."""
        for _ in range(epochs):
            for name in self.jobs if running is None else running:
                mine = self.brokers if self.one_job else [name]
                self.jobs[name].run(self.epoch, {(broker, "gold"): demands.get(broker, 0) for broker in mine})
            self.epoch += 1
            self.sums.append(self.total())

    def limits(self, name="gold", dimension=0):
        """The limit of every broker that has one."""
        known = {}
        for job in self.jobs.values():
            known |= {
                key[0]: pair[dimension] for key, pair in job.limits.items() if key[1:] == (name, self.traffic_class)
            }
        return {broker: known[broker] for broker in self.brokers if broker in known}

    def total(self):
        return sum(limit for limit in self.limits().values() if limit is not None)

    def job_of(self, broker):
        return self.jobs["all" if self.one_job else broker]

    def metric(self, name, broker="a"):
        return self.job_of(broker).loop.metrics()[f"headgate_rg_{name}"]

    def degraded(self, broker="a"):
        return {cause for cause, on in self.metric("degraded", broker).items() if on}


def rows_of(folder, table, where=""):
    return query(f"SELECT * FROM t {where}", {"t": DeltaTable(f"{folder}/{table}")}).to_pylist()
