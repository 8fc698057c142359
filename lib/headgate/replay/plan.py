"""What a conf folder makes of a replay: the rules, what is in force from the start, what shares state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded
from headgate.conf import Conf, group_attachments, publish_limits
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import RatePair
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import ConfError
from headgate.quota.groups.import_conf import tables_of
from headgate.throttle.form import Rules
from headgate.throttle.keys import group_key
from headgate.throttle.layout import layout_of, rules_of
from headgate.throttle.limits.changes import Attachment, Change, Limit
from headgate.throttle.limits.effective_limits import EffectiveLimits

EVERYTHING = "everything"
_OF_GROUP, _OF_BROKER = "group ", "broker "
OFFERED = "offered"


@dataclass(frozen=True)
class Plan:
    """One conf folder, as a replay goes by it. A worker gets it whole.

    name: of the folder. kernel: the form's name. changes: limits and attachments, in force from the start; those of
    groups only where brokers do not share them. tables: groups and what they are attached to. shares: brokers share
    quotas out among themselves. ties: publishes of a broker share its limiter. round_ms: from one exchange of the
    brokers to the next. delay_ms: from the end of an epoch until what its reports lead to holds, in event time.
    """

    name: str
    rules: Rules
    kernel: str
    changes: tuple[Change, ...]
    quota: QuotaSettings
    tables: ConfigTables
    shares: bool
    ties: bool
    round_ms: int
    delay_ms: int

    @property
    def has_groups(self) -> bool:
        """Whether anything is attached to a group."""
        return bool(self.tables.attached_groups())

    def quotas(self) -> dict[str, RatePair]:
        """Publish quotas of the groups in use, messages and bytes a second; None is not limited."""
        return {group.name: group.quotas(0) for group in self.tables.attached_groups().values()}

    def in_force(self) -> EffectiveLimits:
        """What is in force from the start."""
        return EffectiveLimits.from_changes(self.changes)

    def tables_for(self, key: str) -> ConfigTables:
        """Groups as far as `key` is concerned: those of other keys would be evaluated there for nothing."""
        groups = self.tables.groups
        if key.startswith(_OF_GROUP):
            name = key.removeprefix(_OF_GROUP)
            groups = {name: groups[name]}
        elif key != EVERYTHING:
            groups = {}
        return replace(self.tables, groups=groups)


def plan_of(name: str, conf: Conf, *, traffic: str, delay_ms: int | None) -> Plan:
    """The plan of a conf folder. traffic: offered or admitted. delay_ms: None for the default, a round.

    A job's batch takes in what came since the last one: a report waits for its batch to end, at most one interval of
    the trigger, and in a job a broker the others read it with their own next batch.
    """
    operator = conf.settings.operator
    broker = conf.broker
    ties = broker.broker_publish_rate_messages_per_s > 0 or broker.broker_publish_rate_bytes_per_s > 0
    meter = conf.quota.meter_parameters(demand_visible=traffic == OFFERED)
    rules = rules_of(replace(layout_of(conf), whole_brokers=ties, traffic=traffic, hold_back_ms=0), meter)
    tables = tables_of(conf.resource_groups, conf.quota)
    shares = operator.group_limits == "shared" and bool(tables.attached_groups())
    round_ms = conf.settings.trigger.interval_ms or conf.quota.epoch_ms
    return Plan(
        name=name,
        rules=rules,
        kernel=operator.kernel,
        changes=_changes(conf, shares=shares),
        quota=conf.quota,
        tables=tables,
        shares=shares,
        ties=ties,
        round_ms=round_ms,
        delay_ms=min(round_ms, conf.quota.stale_report_ms) if delay_ms is None else delay_ms,
    )


def checked_plans(confs: Mapping[str, Conf], *, traffic: str, delay_ms: int | None) -> list[Plan]:
    """The plans of several folders, by name. Raises ConfError for a delay with which no report would count."""
    plans = [plan_of(name, conf, traffic=traffic, delay_ms=delay_ms) for name, conf in confs.items()]
    mistakes = [
        f"{plan.name}: --delay-ms: got {plan.delay_ms}; allowed: an integer from 0 to {plan.quota.stale_report_ms} "
        "(resourceGroupStaleReportMillis): older reports are dropped; give a shorter one"
        for plan in plans
        if plan.delay_ms < 0 or (plan.shares and plan.delay_ms > plan.quota.stale_report_ms)
    ]
    if mistakes:
        raise ConfError(mistakes)
    return plans


def _changes(conf: Conf, *, shares: bool) -> tuple[Change, ...]:
    limits = [
        Limit(0, seq, None, row.scope, row.name, row.messages_per_s, row.bytes_per_s)
        for seq, row in enumerate(publish_limits(conf))
        if not (shares and row.scope == "group")
    ]
    attachments = [
        Attachment(0, seq, None, row.scope, row.name, row.group)
        for seq, row in enumerate(group_attachments(conf), len(limits))
    ]
    return (*limits, *attachments)


class Keys:
    """Which rows of a plan share state, and so go through one pass in the order of their time.

    Brokers share a group's quota, topics of a broker its limiter. So a key is a group with all its brokers, and what
    has no group goes by broker. Where brokers have limiters, each ties the groups that it has topics of: it is all one
    key.
    """

    def __init__(self, plan: Plan) -> None:
        self._book = plan.in_force()
        self._everything = plan.ties and plan.has_groups

    def of(self, events: pa.Table) -> pa.Array:
        """The key of each row; events: with the columns `topic` and `broker`."""
        if self._everything:
            return pa.repeat(EVERYTHING, len(events)).dictionary_encode()
        brokers, of_broker = encoded(events["broker"])
        topics, of_topic = encoded(events["topic"])
        groups, of_group = encoded(self._book.groups_of(topics))
        names = [f"{_OF_GROUP}{key.removeprefix(group_key(''))}" for key in groups.to_pylist()]
        names += [f"{_OF_BROKER}{name}" for name in brokers.to_pylist()]
        codes = np.append(of_group, -1)[of_topic]
        codes = np.where(codes < 0, len(groups) + of_broker, codes)
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))


def groups_of(in_force: EffectiveLimits, topics: pa.StringArray) -> pa.StringArray:
    """The name of each topic's group, null without one."""
    return pc.utf8_slice_codeunits(in_force.groups_of(topics), len(group_key("")))
