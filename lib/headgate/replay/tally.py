"""What a replay counts of one key: by second, by tenant, and how groups did against their quotas."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded
from headgate.arrow.schemas import GROUP_USAGE, TIMESTAMP, table_of
from headgate.arrow.topic_names import tenants_of
from headgate.core.kernels.columns import Ints
from headgate.core.quota.groups import RatePair
from headgate.replay.delays import Delays
from headgate.replay.fair_shares import FairShares
from headgate.replay.histogram import BUCKETS, buckets_of
from headgate.replay.plan import Plan, groups_of
from headgate.replay.schemas import REPLAY_SECONDS, SUMS, TENANT_DELAYS, TENANT_SUMS
from headgate.replay.sums import summed
from headgate.throttle.schemas import TOPIC_USAGE
from headgate.throttle.state import DomainState

SECOND_US = 1_000_000
LimitOf = Callable[[str | None, str, int], RatePair]
"""The limit of a group on a broker just before an instant, us."""

_SAME = {
    "throttled_publishes": "throttled_publishes",
    "throttled_by_topic": "throttled_by_topic",
    "throttled_by_broker": "throttled_by_broker",
    "throttled_by_group": "throttled_by_group",
    "offered_publishes": "publishes",
    "offered_msgs": "messages",
    "offered_bytes": "bytes",
}
_OF_OFFERED = {
    "admitted_msgs": "admitted_messages",
    "admitted_bytes": "admitted_bytes",
    "delayed_publishes": "delayed_publishes",
    "failed_publishes": "failed_publishes",
    "failed_msgs": "failed_messages",
    "failed_bytes": "failed_bytes",
}
_OF_ADMITTED = {"admitted_msgs": "messages", "admitted_bytes": "bytes"}
_BY_SECOND = ["group", "broker", "second"]
_BY_TENANT = ["group", "tenant", "broker"]


class Tally:
    """Everything that was taken is in what comes out, once; a second comes out when nothing of it is to come.

    limit_of: for the limit that stands with each second.
    """

    def __init__(self, plan: Plan, limit_of: LimitOf) -> None:
        self._book = plan.in_force()
        self._offered = plan.rules.offered
        self._limit_of = limit_of
        self._shares = FairShares(plan.quotas())
        self._usage: list[pa.Table] = []
        self._rows = 0
        self._group_usage: list[pa.Table] = []
        self._seconds: pa.Table | None = None
        self._tenants: list[pa.Table] = []
        self._delays: Counter[int] = Counter()
        self._names: list[tuple[str | None, str]] = []
        self._codes: dict[str, Ints] = {}

    def take(self, usage: pa.Table, group_usage: pa.Table) -> None:
        """Count rows of TOPIC_USAGE and GROUP_USAGE."""
        if len(usage):
            self._usage.append(usage)
            self._rows += len(usage)
            if self._rows >= _MOST_ROWS:
                self._sum_up()
        if len(group_usage):
            self._group_usage.append(group_usage)

    def hear(self, domain: DomainState, delays: Delays) -> None:
        """Count delays of a step."""
        places = self._codes_of(domain)[delays.topic] * BUCKETS + buckets_of(delays.delay_ns)
        distinct, of_place = np.unique(places, return_inverse=True)
        messages = np.zeros(len(distinct), np.int64)
        np.add.at(messages, of_place, delays.messages)
        self._delays.update(dict(zip(distinct.tolist(), messages.tolist(), strict=True)))

    def seconds(self, until_us: int | None) -> pa.Table:
        """Rows of REPLAY_SECONDS, without `conf`, of the seconds that ended by `until_us`; None: of all."""
        until_s = None if until_us is None else until_us // SECOND_US
        self._shares.take(_concat(self._group_usage, GROUP_USAGE), until_s)
        self._group_usage = []
        self._sum_up()
        if self._seconds is None:
            return _seconds_schema().empty_table()
        over = self._seconds
        if until_s is None:
            self._seconds = None
        else:
            is_over = pc.less(over["second"], until_s)
            over, self._seconds = over.filter(is_over), over.filter(pc.invert(is_over))
        return self._with_limits(over.sort_by([(name, "ascending") for name in ("second", "group", "broker")]))

    def tenants(self) -> pa.Table:
        """Rows of TENANT_SUMS."""
        merged = summed(_concat(self._tenants, TENANT_SUMS), _BY_TENANT, SUMS, ["max_delay_ns"])
        return merged.select(TENANT_SUMS.names).cast(TENANT_SUMS)

    def delays(self) -> pa.Table:
        """Rows of TENANT_DELAYS."""
        rows = []
        for place, messages in self._delays.items():
            code, bucket = divmod(place, BUCKETS)
            rows.append((*self._names[code], bucket, messages))
        return table_of(rows, TENANT_DELAYS)

    def shares(self) -> pa.Table:
        """Rows of GROUP_SHARES."""
        return self._shares.rows()

    def _sum_up(self) -> None:
        if self._usage:
            self._add(_concat(self._usage, TOPIC_USAGE))
        self._usage, self._rows = [], 0

    def _add(self, usage: pa.Table) -> None:
        topics, of_topic = encoded(usage["topic"])
        rows = pa.array(of_topic)
        columns: dict[str, Any] = {
            "group": groups_of(self._book, topics).take(rows),
            "tenant": tenants_of(topics).take(rows),
            "broker": usage["broker"],
            "second": pc.divide(usage["event_time"].cast(pa.int64()), SECOND_US),
        }
        zeros = pa.array(np.zeros(len(usage), np.int64))
        sources = _SAME | (_OF_OFFERED if self._offered else _OF_ADMITTED)
        columns |= {name: usage[sources[name]] if name in sources else zeros for name in SUMS}
        columns["max_delay_ns"] = usage["max_delay_ns"] if self._offered else zeros
        table = pa.table(columns)
        parts = [table.drop_columns(["tenant", "max_delay_ns"])]
        if self._seconds is not None:
            parts.append(self._seconds)
        self._seconds = summed(pa.concat_tables(parts, promote_options="permissive"), _BY_SECOND, SUMS)
        self._tenants.append(summed(table.drop_columns(["second"]), _BY_TENANT, SUMS, ["max_delay_ns"]))
        if len(self._tenants) > _MOST_PARTS:
            self._tenants = [self.tenants()]

    def _with_limits(self, rows: pa.Table) -> pa.Table:
        places = zip(*(rows[name].to_pylist() for name in ("group", "broker", "second")), strict=True)
        limits = [self._limit_of(group, broker, (second + 1) * SECOND_US) for group, broker, second in places]
        messages, of_bytes = zip(*limits, strict=True) if limits else ((), ())
        columns = {
            "group": rows["group"],
            "broker": rows["broker"],
            "event_time": pc.multiply(rows["second"], SECOND_US).cast(TIMESTAMP),
            "limit_msgs": pa.array(messages, pa.int64()),
            "limit_bytes": pa.array(of_bytes, pa.int64()),
        }
        return pa.table(columns | {name: rows[name] for name in SUMS}).cast(_seconds_schema())

    def _codes_of(self, domain: DomainState) -> Ints:
        """For each limiter of the domain where its (group, tenant) stands in `_names`."""
        known = self._codes.get(domain.broker, np.empty(0, np.int64))
        if len(known) < len(domain.keys):
            keys = domain.keys.slice(len(known))
            pairs = zip(groups_of(self._book, keys).to_pylist(), tenants_of(keys).to_pylist(), strict=True)
            known = np.append(known, np.fromiter(self._numbered(pairs), np.int64, len(keys)))
            self._codes[domain.broker] = known
        return known

    def _numbered(self, pairs: Iterator[tuple[str | None, str]]) -> Iterator[int]:
        places = {pair: code for code, pair in enumerate(self._names)}
        for pair in pairs:
            if pair not in places:
                places[pair] = len(self._names)
                self._names.append(pair)
            yield places[pair]


_MOST_PARTS = 256
_MOST_ROWS = 100_000


def _seconds_schema() -> pa.Schema:
    return pa.schema([field for field in REPLAY_SECONDS if field.name != "conf"])


def _concat(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables], promote_options="permissive")
