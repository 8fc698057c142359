"""The quota loop of a job: counts of a batch in, changed limits out, through the tables that all brokers share.

For each batch `measure` counts and cuts, the caller makes `state` durable, `exchange` sends, reads and evaluates
(resource-groups 6 to 11).
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.core.numbers import HOUR_MS, at_least
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.groups import UNLIMITED, RatePair, ResourceGroup
from headgate.core.quota.settings import MembershipSource, QuotaSettings
from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.core.settings_keys import Mistake
from headgate.core.state import PlainData, check_fields
from headgate.errors import ConfError
from headgate.quota.control_rows import AppliedLimits, ControlRows, LimitKey, effective_attachments
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.evaluation import Evaluation
from headgate.quota.exchange import Exchange
from headgate.quota.failure_detection import FailureDetection, lost_after_ms
from headgate.quota.groups.configuration import Configuration
from headgate.quota.incarnations import Incarnations, id_of
from headgate.quota.limit_book import Decided, LimitBook
from headgate.quota.limit_log import LimitLog
from headgate.quota.metering import Metering
from headgate.quota.outbox import Outbox, Pending
from headgate.quota.own_broker import OwnBroker
from headgate.quota.readback import Readback
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.rg_members import MemberRow
from headgate.quota.tables.upkeep import CLOSED_AFTER_MS


def layout_mistakes(settings: QuotaSettings, broker: str | None) -> Iterator[Mistake]:
    """What the settings lack. broker: the one that the job is for, None for a job for all.

    A broker's job whose tables are not those of the others would hear of nobody and take every quota for itself. Either
    all tables of the exchange are somewhere that all jobs know, or none is and the number of brokers is given.
    """
    yield from settings.layout_mistakes(job_per_broker=broker is not None)
    if broker is None or settings.usage_table is None:
        return
    shared = {
        "resourceGroupGroupTable": settings.group_table,
        "resourceGroupAttachmentTable": settings.attachment_table,
    }
    if settings.membership is MembershipSource.TABLE:
        shared["resourceGroupMemberTable"] = settings.member_table
    for key, location in shared.items():
        if location is None:
            remedy = "set it to the table that the jobs of all brokers use, as resourceGroupUsageTable is"
            yield Mistake(key, "nothing", "the location of a table in a job of one broker", remedy)


def has_transport(settings: QuotaSettings, broker: str | None) -> bool:
    """Whether there is a table over which brokers hear of each other. Source: resource-groups 10."""
    return broker is None or settings.usage_table is not None


KEPT_UP_EVERY = 100
"""Exchanges."""
_STATE = ("clock_ms", "seen", "brokers", "pending", "attached", "limits")


class QuotaLoop:
    """Every usage row of a batch whose state was kept is in rg_usage once, however the process ends and begins again.

    For each batch, in this order: `measure`; keep `state()` under the batch's id (`LoopStateStore`); `exchange`; append
    the rows that it returns. A batch of which the state was kept already is not measured again. After an exception the
    object is to be dropped: a new one goes on from the state kept last, as after a crash. It appends what that state
    has pending under the life in which it was cut, begins a new life of its brokers, and takes the entry rule.

    Time is event time, the largest of the input (resource-groups 6.1), in ms; it never goes back here. `publish_time`
    of a row is this clock at its append, and what is read is judged by this clock (`Readback` says what follows).
    wall_ms is wall clock: it tells lives of a broker apart.

    Where a table cannot be read or written the loop goes on with what it has (resource-groups 10): nothing raises
    TableError, `metrics` and the log tell. Without any attachment nothing but the configuration is read.

    Arguments:
        tables, settings: of the job. Raises ConfError for settings that lack something in this layout.
        demand_visible: whether arrivals show demand (UsageMeter).
        broker: the one that the job is for; None: every broker in the input, each of which is a member.
        state: what `state` returned last. Raises StateError for another version or epoch length.

    """

    def __init__(
        self,
        tables: Exchange,
        settings: QuotaSettings,
        *,
        demand_visible: bool = True,
        broker: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        mistakes = [str(mistake) for mistake in layout_mistakes(settings, broker)]
        if mistakes:
            raise ConfError(mistakes)
        self._tables, self._settings, self._broker = tables, settings, broker
        self._transport = has_transport(settings, broker)
        self._degraded, self._book, self._applied = Degraded(), LimitBook(), AppliedLimits()
        self._config = Configuration(tables.config, self._degraded)
        self._outbox = Outbox(tables.usage)
        self._meter_parameters = settings.meter_parameters(demand_visible=demand_visible)
        self._metering = Metering(self._meter_parameters, self._outbox, self._applied.limits)
        self._incarnations = Incarnations(tables.members, settings, self._degraded, transport=self._transport)
        self._evaluation = Evaluation(settings, self._book, one_job=broker is None)
        self._readback = Readback(tables, settings, self._degraded, self._evaluation.changed_groups)
        self._failures = FailureDetection(lost_after_ms(settings))
        self._limit_log = LimitLog(tables.limits, self._degraded, settings)
        self._seen = set() if broker is None else {broker}
        self._clock_ms = 0
        self._exchanges = 0
        self._application = ""
        self._kept_up_hour: int | None = None
        self._evaluations, self._evaluation_s = 0, 0.0
        self._is_evaluated, self._resumed = False, state is not None
        self._awaits_everybody = broker is not None and settings.allocation_profile is not Profile.PULSAR
        if state is not None:
            self._resume(state)

    def measure(  # noqa: PLR0917  what a batch brings
        self,
        usage: pa.Table,
        waits: pa.Table,
        brokers: Iterable[str],
        clock_ms: int,
        wall_ms: int,
        leaves: pa.Table | None = None,
    ) -> None:
        """Count a batch and make the cuts that are due by it; they are pending until `exchange`.

        usage, waits, leaves (None: none): of the schemas GROUP_USAGE, GROUP_WAITS and GROUP_LEAVES; rows of groups that
        are not in use count for nobody.
        brokers: names seen in the input so far, more or less; in a job of one broker the others are passed over.
        """
        self._pass_to(clock_ms)
        if self._broker is None:
            self._seen.update(brokers, usage["broker"].unique().to_pylist())
        if not self._config.known:
            self._read_config()
        if not (self._config.in_use and self._transport):
            return
        self._metering.know(self._seen, usage, self._clock_ms)
        self._begin_incarnations(wall_ms)
        self._metering.count(usage, waits, self._config.ids)
        self._metering.cut(self._clock_ms, self._config.tables.version)
        if leaves is not None:
            self._metering.leave_without_topics(leaves, self._config.ids, self._config.tables.version)

    def exchange(self, clock_ms: int, wall_ms: int) -> ControlRows:
        """Send what is pending, read what all brokers sent, evaluate what changed; what the job is to enforce now.

        The rows hold from the clock on. clock_ms, wall_ms: as for `measure` of the same batch.
        """
        self._pass_to(clock_ms)
        self._exchanges += 1
        self._application = self._application or f"headgate-limits-{self._broker or 'all'}-{wall_ms}"
        self._read_config()
        self._send()
        if self._config.in_use:
            self._metering.know(self._seen, _NO_USAGE, self._clock_ms)
            if self._transport:
                self._hear(wall_ms)
            self._evaluate()
        rows = self._control_rows()
        self._metering.set_limits(rows.limits, self._config.ids)
        self._keep_up(min(self._clock_ms, wall_ms))
        return rows

    def close(self) -> None:
        """The job ends: readers are told that its brokers use nothing and are gone. The object is of no use then.

        A state that was kept before is still good for the next start.
        """
        self._metering.leave_all(self._config.tables.version)
        self._send()
        self._limit_log.flush((self._application, self._exchanges + 1))
        self._incarnations.leave(self._metering.brokers.values())

    def state(self) -> PlainData:
        """Everything that a restart goes on from, as plain data, a copy."""
        return {
            "clock_ms": self._clock_ms,
            "seen": sorted(self._seen),
            "brokers": [broker.state() for broker in self._metering.brokers.values()],
            "pending": [one.plain() for one in self._outbox.waiting],
            "attached": [[str(scope), resource, name] for (scope, resource), name in self._applied.attached.items()],
            "limits": [[*key, *rates] for key, rates in self._applied.limits.items()],
        }

    @property
    def groups(self) -> Mapping[str, ResourceGroup]:
        """Groups by name as they were read last, attached or not."""
        return self._config.tables.groups if self._config.known else {}

    @property
    def is_in_use(self) -> bool:
        """Whether anything was attached when the configuration was read last."""
        return self._config.in_use

    @property
    def told(self) -> Mapping[LimitKey, RatePair]:
        """The limits that the job goes by, by broker, group and class."""
        return self._applied.limits

    @property
    def listed(self) -> Mapping[int, MemberRow] | None:
        """The members by id as they were read last; None before, and where no table lists them."""
        return self._readback.listed

    @property
    def heard(self) -> Mapping[int, BrokerUsage]:
        """What was heard of each broker that is up, by id."""
        return self._readback.usage_map.members()

    @property
    def clock_ms(self) -> int:
        return self._clock_ms

    def metrics(self) -> dict[str, Any]:
        """Gauges and counters by their names in resource-groups 15; those with a label by its values."""
        return {
            "headgate_rg_members": len(self._readback.usage_map.members()),
            "headgate_rg_dangling_attachments": self._config.dangling(),
            "headgate_rg_degraded": self._degraded.gauges(),
            "headgate_rg_rows_dropped_total": {
                str(reason): count for reason, count in self._readback.usage_map.dropped.items()
            },
            "headgate_rg_reports_total": dict(self._metering.reports),
            "headgate_rg_reports_suppressed_total": self._metering.suppressed(),
            "headgate_rg_evaluation_seconds": {"count": self._evaluations, "sum": self._evaluation_s},
        }

    def _pass_to(self, clock_ms: int) -> None:
        self._clock_ms = max(self._clock_ms, at_least(0, clock_ms, "clock_ms"))

    def _read_config(self) -> None:
        """Follow the configuration: groups that are not in use any more are left in the same evaluation."""
        before = set(self._config.groups)
        if self._config.read():
            self._metering.leave(before - set(self._config.groups), self._config.tables.version)
            self._evaluation.set_groups(self._config.groups)
            self._readback.usage_map.set_groups(self._config.existing)

    def _send(self) -> None:
        if self._outbox.waiting:
            with self._degraded.attempt(Cause.USAGE_APPEND):
                self._outbox.send(self._config.shards, self._clock_ms)

    def _begin_incarnations(self, wall_ms: int) -> None:
        """A broker joins when nothing of a life before is pending: that goes first."""
        brokers = self._metering.brokers.values()
        self._incarnations.begin([broker for broker in brokers if not self._has_pending(broker)], wall_ms)

    def _has_pending(self, broker: OwnBroker) -> bool:
        return broker.broker_id is not None and self._outbox.holds(broker.broker_id)

    def _hear(self, wall_ms: int) -> None:
        self._begin_incarnations(wall_ms)
        heard = self._readback.read(self._clock_ms, wall_ms)
        if self._readback.listed is not None and self._incarnations.end_lost(
            self._metering.brokers.values(), self._readback.listed
        ):
            self._begin_incarnations(wall_ms)
            self._readback.read_members(self._clock_ms)
        if not heard or self._readback.is_behind:
            self._failures.interrupt()
        elif self._incarnations.listed:
            own = self._own_ids().values()
            members = self._readback.usage_map.members().items()
            overdue = self._failures.overdue(
                {id_: one for id_, one in members if id_ not in own}, self._clock_ms, wall_ms
            )
            if overdue:
                self._incarnations.lose(overdue)
                self._readback.read_members(self._clock_ms)

    def _own_ids(self) -> dict[str, int]:
        """Ids of brokers by name, of those that have one."""
        brokers = self._metering.brokers.values()
        ids = {one.name: one.broker_id for one in brokers if one.broker_id is not None}
        if self._is_alone():
            ids |= {one.name: id_of(one.name) for one in brokers if one.broker_id is None}
        return ids

    def _is_alone(self) -> bool:
        """Whether nothing is, or ever was, heard of other brokers, and it is known how many there are."""
        deaf = not (self._transport and self._readback.knows_members)
        return deaf and self._broker is not None and self._settings.broker_count is not None

    def _evaluate(self) -> None:
        """Decide limits by what is known; whoever never heard who the members are keeps what it has."""
        began_s = time.perf_counter()
        weight = self._settings.broker_weight
        if self._is_alone() and self._settings.broker_count is not None:
            self._degraded.begin(Cause.NO_TRANSPORT, "brokers cannot hear of each other; every limit is an equal part")
            self._evaluation.without_transport(self._own_ids().values(), self._settings.broker_count)
            self._is_evaluated = True
        elif self._readback.knows_members:
            self._degraded.end(Cause.NO_TRANSPORT)
            own = dict.fromkeys(self._own_ids().values(), weight)
            if self._has_no_view(own):
                joins = not self._readback.unheard().isdisjoint(own)
                used_by_others = self._readback.used_by_others(own) if joins else frozenset()
                self._evaluation.before_any_view(self._readback.usage_map, own, used_by_others)
                self._is_evaluated = True
            else:
                epoch = self._clock_ms // self._settings.epoch_ms
                self._is_evaluated |= self._evaluation.run(self._readback.usage_map, own, epoch)
        self._evaluations += 1
        self._evaluation_s += time.perf_counter() - began_s

    def _has_no_view(self, own: Mapping[int, int]) -> bool:
        """Whether limits are the first ones: until every member was heard once; a job for all hears its own at once.

        Later it is only where this loop is behind that who joined since is waited for. In profile pulsar a member that
        was not heard adds nothing to any view. Source: resource-groups 9.2.
        """
        unheard = self._readback.unheard()
        self._awaits_everybody &= bool(unheard)
        return self._awaits_everybody or (self._readback.is_behind and not unheard <= own.keys())

    def _control_rows(self) -> ControlRows:
        """What changed since the last exchange; rg_limits has it too."""
        transaction = (self._application, self._exchanges)
        decided = list(self._book.settle())
        epoch = self._clock_ms // self._settings.epoch_ms
        rows = [LimitRow(epoch, broker_id, *cell, outcome) for broker_id, cell, outcome in decided]
        self._limit_log.write(rows, epoch, transaction)
        attached = effective_attachments(self._config.tables) if self._config.known else self._applied.attached
        return ControlRows(
            self._applied.limit(self._wanted(decided), self._clock_ms),
            self._applied.attach(attached, self._clock_ms),
            transaction,
        )

    def _wanted(self, decided: Iterable[Decided]) -> dict[LimitKey, RatePair]:
        """The limits that may have to be told: of what was decided, and none of groups that are not in use."""
        wanted: dict[LimitKey, RatePair] = {}
        own = self._own_ids()
        if self._config.known:
            wanted |= {key: UNLIMITED for key in self._applied.limits if key[1] not in self._config.ids}
        if self._resumed and self._is_evaluated:
            self._resumed = False
            told = ((key, own.get(key[0]), self._config.ids.get(key[1])) for key in self._applied.limits)
            wanted |= {
                key: self._book.limits((group_id, key[2]), broker_id)
                for key, broker_id, group_id in told
                if broker_id is not None and group_id is not None
            }
        names = {broker_id: name for name, broker_id in own.items()}
        for broker_id, (group_id, traffic_class, _), _ in decided:
            broker, group = names.get(broker_id), self._config.name(group_id)
            if broker is None or group is None:
                continue
            key = (broker, group, traffic_class)
            if group_id in self._config.groups:
                wanted[key] = self._book.limits((group_id, traffic_class), broker_id)
            else:
                wanted.setdefault(key, UNLIMITED)
        return wanted

    def _keep_up(self, now_ms: int) -> None:
        """Once an hour of event time, what is over is compacted and what is too old goes; small files are joined often.

        By wall clock, where that is behind: what a clock that is ahead takes for old is not.
        """
        hour = (now_ms - CLOSED_AFTER_MS) // HOUR_MS
        is_due = hour != self._kept_up_hour or self._exchanges % KEPT_UP_EVERY == 0
        if not (self._config.in_use and self._transport and is_due):
            return
        with self._degraded.attempt(Cause.UPKEEP):
            self._tables.keep_up(now_ms)
            self._kept_up_hour = hour

    def _resume(self, state: Mapping[str, Any]) -> None:
        check_fields(type(self).__name__, state, _STATE)
        self._clock_ms = state["clock_ms"]
        self._seen.update(state["seen"] if self._broker is None else ())
        for one in state["brokers"]:
            if one["name"] in self._seen:
                self._metering.brokers[one["name"]] = OwnBroker.from_state(one, self._meter_parameters)
        self._outbox.waiting += [Pending.of_plain(one) for one in state["pending"]]
        self._applied.attached = {(AttachedTo(scope), resource): name for scope, resource, name in state["attached"]}
        self._applied.limits.update(
            {(broker, group, traffic_class): tuple(rates) for broker, group, traffic_class, *rates in state["limits"]}
        )


_NO_USAGE = pa.table({"broker": pa.array([], pa.string()), "at_ms": pa.array([], pa.int64())})
