"""Sums of topic_usage and marks over the last seconds up to a second, by topic and broker, and by limiter."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headgate.arrow.topic_names import named_schema
from headgate.core.numbers import SECOND_NS
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.topic_names import topic_of
from headgate.errors import TableError
from headgate.quota.tables.delta import opened
from headgate.quota.tables.schemas import TableSpec
from headgate.quota.tables.table_query import arrow_of, rows_of
from headgate.quota.tables.topic_tables import topic_tables
from headgate.quota.usage.contention import Contention
from headgate.quota.usage.excess import (
    BYTES,
    IS_HELD,
    MESSAGES,
    OWN,
    SCOPES,
    TRAFFIC,
    UNITS,
    USUAL_S,
    Limiter,
    RanOut,
    Traffic,
    limiter_of,
    ran_out,
    ran_out_by,
    units_of,
)
from headgate.quota.usage.limiter_rates import RATES, Rows, blocked_of, own_rates_of, rates_of, shares_of
from headgate.quota.usage.topic_view import TopicSum, Units, tenant_name
from headgate.stores import Patience
from headgate.tables.query import text
from headgate.tables.sums import LOWEST
from headgate.throttle.schemas import MARKS, TOPIC_USAGE

SECOND_US = 1_000_000
LOOKBACK_S, MOST_LOOKBACK_S = 300, 6 * 3600
"""How far back a backlog or debt is followed to who made it: further, up to the latter, while anything was held."""
BEHIND_S = 10
"""A job that is further behind the others is not waited for."""
_BY_SECOND = (
    "SELECT arrow_cast(event_time, 'Int64') AS time_us, sum(publishes) AS publishes, "
    "sum({failed}) AS failed, sum({held}) AS held FROM t GROUP BY event_time"
)
_BY_GROUPS = {"failed": "0", "held": "throttled_by_group"}
_BY_ANY = {"failed": "coalesce(failed_publishes, 0)", "held": "throttled_publishes"}
RAN_OUT = (
    "CASE WHEN bytes_balance <= 0 AND (coalesce(messages_balance > 0, true) OR coalesce(CAST(bytes_balance AS DOUBLE) "
    f"* messages_per_s < CAST(messages_balance AS DOUBLE) * bytes_per_s, false)) THEN '{BYTES}' ELSE '{MESSAGES}' END"
)
"""SQL: the unit of which a mark's limiter has none left; of both, that which takes longer to come back.

arrow/mark_reasons.unit_of says the same of Arrow tables.
"""
RAN_OUT_TOO = (
    "CASE WHEN bytes_balance > 0 OR messages_balance > 0 OR bytes_balance + messages_balance IS NULL THEN '' "
    "ELSE 'both' END"
)
"""SQL: whether the other unit had run out as well, in a word."""
_SPEC, _MARKS = TableSpec("topic_usage", named_schema(TOPIC_USAGE)), TableSpec("marks", named_schema(MARKS))
_SUMMED = {
    "publishes": "publishes",
    "messages": "messages",
    "bytes": "bytes",
    "admitted_messages": "coalesce(admitted_messages, messages)",
    "admitted_bytes": "coalesce(admitted_bytes, bytes)",
    "throttled": "throttled_publishes",
    "settled": "coalesce(admitted_publishes + failed_publishes, publishes)",
    "held": "coalesce(delayed_publishes + failed_publishes, throttled_publishes)",
    "by_topic": "throttled_by_topic",
    "by_broker": "throttled_by_broker",
    "by_group": "throttled_by_group",
    "throttled_ns": "throttled_ns",
}
"""What is summed up for each field of `TopicSum`; in traffic that was let in, what came is what was let in."""


_CONTENDED = {
    "messages": "messages",
    "bytes": "bytes",
    "let_in_messages": "admitted_messages",
    "let_in_bytes": "admitted_bytes",
    "failed_messages": "failed_messages",
    "failed_bytes": "failed_bytes",
    **{f"by_{scope}": f"throttled_by_{scope}" for scope in SCOPES},
    "held": f"CASE WHEN {IS_HELD} THEN 1 ELSE 0 END",
}
"""What is summed up for each field of TRAFFIC."""
_OF_NAMESPACE = "coalesce('persistent://' || namespace || '/-', topic)"
"""SQL: a name that stands for all topics of a namespace, which are charged alike unless topics are attached."""


class TopicUsage:
    """topic_usage of all jobs of an output. Methods raise TableError where one cannot be read, or none has rows.

    patience: for an output on a store.
    """

    def __init__(self, output: str, patience: Patience | None = None) -> None:
        own = f"{output}/{_SPEC.name}"
        places = topic_tables(output, patience=patience) or [own]
        self._tables = [opened(place, _SPEC, None, patience) for place in places]
        marks = topic_tables(output, _MARKS.name, patience)
        self._marks = [opened(place, _MARKS, None, patience) for place in marks]
        self._name = own if len(self._tables) == 1 else f"{own} of {len(self._tables)} jobs"

    def newest_s(self) -> int:
        """The newest second that any table has, since 1970."""
        return max(self._newest_of_each())

    def settled_s(self) -> int:
        """The newest second that has rows and that all jobs are through with, but for those that are far behind."""
        newest = self._newest_of_each()
        end_s = min(second_s for second_s in newest if max(newest) - second_s <= BEHIND_S)
        return max(self._newest(f"event_time < {_literal(end_s * SECOND_US)}"), default=max(newest))

    def _newest_of_each(self) -> list[int]:
        if not (newest := self._newest()):
            raise TableError(f"the table {self._name} has no rows: the job has seen no publish yet")
        return newest

    def _newest(self, where: str = "true") -> list[int]:
        """The newest second of each table that has any."""
        rows = self._rows(f"SELECT arrow_cast(max(event_time), 'Int64') AS time_us FROM t WHERE {where}")  # noqa: S608  our own names
        return [row["time_us"] // SECOND_US for row in rows if row["time_us"] is not None]

    def worst_s(self, seconds: int, *, by_groups: bool = False) -> tuple[int, bool, int, int]:
        """Of all spans of so many seconds the last second of that in which most publishes failed, else most were
        throttled, or where none were, in which most came; whether any were; and the first and the last second of all.
        The earliest counts.

        by_groups: those count that limits of groups throttled.
        """
        counts = ("failed", "held", "publishes")
        by_second: dict[int, list[int]] = defaultdict(lambda: [0] * len(counts))
        for row in self._rows(_BY_SECOND.format(**(_BY_GROUPS if by_groups else _BY_ANY))):
            of_second = by_second[row["time_us"] // SECOND_US]
            of_second[:] = (count + row[name] for count, name in zip(of_second, counts, strict=True))
        worst, last_s, span = [-1], self.newest_s(), [0] * len(counts)
        inside: deque[int] = deque()
        for second in sorted(by_second):
            inside.append(second)
            span = [count + more for count, more in zip(span, by_second[second], strict=True)]
            while inside[0] <= second - seconds:
                gone = by_second[inside.popleft()]
                span = [count - less for count, less in zip(span, gone, strict=True)]
            if span > worst:
                worst, last_s = span, second
        return last_s, any(count > 0 for count in worst[:2]), min(by_second), max(by_second)

    def sums(self, last_s: int, seconds: int) -> list[TopicSum]:
        """The sums over as many seconds, of which `last_s` is the last one; one of each job that has any."""
        where = _within(last_s, seconds)
        summed = ", ".join(f"sum({column}) AS {name}" for name, column in _SUMMED.items())
        sql = f"SELECT topic, broker, {summed} FROM t WHERE {where} GROUP BY topic, broker"  # noqa: S608  our own names
        most_ns = seconds * SECOND_NS  # the first row of a topic is of the time since the one before
        rows = [row | {"throttled_ns": min(row["throttled_ns"], most_ns)} for row in self._rows(sql)]
        if any(row["throttled_ns"] and not row["throttled"] for row in rows):
            held_since = self._held_since(last_s, seconds)
            rows = [row | {"held_since": held_since.get((row["topic"], row["broker"]))} for row in rows]
        sums = [TopicSum(**row) for row in rows]
        if not sums:
            newest = datetime.fromtimestamp(self.newest_s(), UTC)
            raise TableError(
                f"the table {self._name} has no rows of the {seconds} s up to "
                f"{datetime.fromtimestamp(last_s, UTC):%Y-%m-%dT%H:%M:%SZ}; its newest are of "
                f"{newest:%Y-%m-%dT%H:%M:%SZ}; give an --at that is not after that, or more --epochs"
            )
        return sums

    def contention(
        self,
        last_s: int,
        seconds: int,
        config: ConfigTables,
        limiter: Limiter | None = None,
        most_back_s: int = MOST_LOOKBACK_S,
    ) -> Contention:
        """Which tenants exceed a fair share of which limiter in these seconds. A backlog or debt that began more than
        `most_back_s` before is taken to begin then. limiter: that alone is asked about, so that others are not read.
        """
        charged = "true" if limiter is None else charged_to(limiter, config)
        back_s = LOOKBACK_S
        while back_s < most_back_s and self._has_held(last_s - seconds - back_s + USUAL_S, USUAL_S, charged):
            back_s *= 2
        since = last_s, seconds + back_s
        marks = self._marked(*since, _of_limiter(limiter, topics=charged))
        rates = rates_of(marks)

        def quota_of(group: str, unit: str) -> int | None:
            known = config.groups.get(group)
            return None if known is None else known.rates[UNITS.index(unit)]

        def rate_of(limiter: Limiter, unit: str) -> float:
            quota = quota_of(limiter[1], unit) if limiter[0] == "group" else None
            return quota or rates.get((limiter, unit), 0)

        rows = self._traffic(f"{_within(*since)} AND {charged}", config)
        traffic = Traffic(rows, self._ran_out(*since, _of_limiter(limiter)), own_rates_of(marks))
        shares, blocked = shares_of(marks, quota_of), blocked_of(config.groups, quota_of)
        return Contention(traffic, rate_of, last_s - seconds + 1, shares, blocked)

    def _traffic(self, where: str, config: ConfigTables) -> pa.Table:
        """TRAFFIC of these rows."""
        summed = ", ".join(f"sum({column}) AS {name}" for name, column in _CONTENDED.items())
        key = "topic" if config.attachments.topics else _OF_NAMESPACE
        held = f"CASE WHEN {IS_HELD} THEN topic ELSE '' END AS topic"
        by = f"arrow_cast(event_time, 'Int64') / {SECOND_US} AS second_s, broker, {key} AS charged, {held}"
        sql = f"SELECT {by}, {summed} FROM t WHERE {where} GROUP BY 1, 2, 3, 4"  # noqa: S608  our own names
        return pa.concat_tables([_named(arrow_of(table, sql), config) for table in self._tables])

    def _has_held(self, last_s: int, seconds: int, charged: str) -> bool:
        """Whether anything was held in these seconds."""
        where = f"{_within(last_s, seconds)} AND {IS_HELD} AND {charged}"
        return any(True for _ in self._rows(f"SELECT topic FROM t WHERE {where} LIMIT 1"))  # noqa: S608  our own names

    def _held_since(self, last_s: int, seconds: int) -> dict[tuple[str, str], Limiter]:
        """By topic and broker, the limiter that marked it last, at most LOOKBACK_S before these seconds."""
        where = f"action = 'mark' AND {_within(last_s, seconds + LOOKBACK_S)}"
        columns = "topic, broker, scope, limiter, arrow_cast(max(event_time), 'Int64') AS time_us"
        sql = f"SELECT {columns} FROM t WHERE {where} GROUP BY topic, broker, scope, limiter ORDER BY time_us"  # noqa: S608  our own names
        return {(row["topic"], row["broker"]): limiter_of(row) for table in self._marks for row in rows_of(table, sql)}

    def _marked(self, last_s: int, seconds: int, of_limiter: str) -> Rows:
        """As limiter_rates has them. of_limiter: a condition in SQL."""
        columns = ", ".join(f"max({rate}) AS {rate}, min({rate}) AS {LOWEST}{rate}" for rate in RATES)
        of_own = f"CASE WHEN scope = '{OWN[0]}' THEN topic END AS marked_topic"
        where = f"action = 'mark' AND {_within(last_s, seconds)} AND {of_limiter}"
        by = "scope, limiter, broker, marked_topic"
        sql = f"SELECT scope, limiter, broker, {of_own}, {columns} FROM t WHERE {where} GROUP BY {by}"  # noqa: S608  our own names
        rows = (row for table in self._marks for row in rows_of(table, sql))
        return [row | {"topic": row["marked_topic"]} for row in rows]

    def units(self, last_s: int, seconds: int, name_of: Callable[[str], str]) -> Units:
        """The units that ran out (`ran_out`) when a limiter marked somebody in these seconds; before, if it did not in
        them. name_of: what a topic counts for.
        """
        return self._units(last_s, seconds + LOOKBACK_S, name_of) | self._units(last_s, seconds, name_of)

    def _units(self, last_s: int, seconds: int, name_of: Callable[[str], str]) -> dict[tuple[str, Limiter], list[str]]:
        marks: dict[tuple[str, Limiter], Counter[str]] = defaultdict(Counter)
        for row in self._marks_by("topic", last_s, seconds):
            if row["topic"] is not None:
                for unit in units_of(row):
                    marks[name_of(row["topic"]), limiter_of(row)][unit] += row["marks"]
        return {of: ran_out(counts) for of, counts in marks.items()}

    def _ran_out(self, last_s: int, seconds: int, of_limiter: str) -> RanOut:
        second = f"arrow_cast(event_time, 'Int64') / {SECOND_US}"
        columns = f"broker, {second} AS second_s"
        return ran_out_by(self._marks_by(f"broker, {second}", last_s, seconds, columns, of_limiter))

    def _marks_by(
        self, by: str, last_s: int, seconds: int, columns: str = "", of_limiter: str = "true"
    ) -> Iterator[dict[str, Any]]:
        """How often each limiter marked anything in these seconds, by what ran out of it."""
        where = f"action = 'mark' AND {_within(last_s, seconds)} AND {of_limiter}"
        counted = f"{columns or by}, scope, limiter, {RAN_OUT} AS unit, {RAN_OUT_TOO} AS too, count(*) AS marks"
        sql = f"SELECT {counted} FROM t WHERE {where} GROUP BY {by}, scope, limiter, unit, too"  # noqa: S608  our own names
        for table in self._marks:
            yield from rows_of(table, sql)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """What the query gives on each table of topic_usage."""
        for table in self._tables:
            yield from rows_of(table, sql)


def charged_to(limiter: Limiter, config: ConfigTables) -> str:
    """SQL: rows of topic_usage, or marks of topics, that may be charged to a limiter which others share: all that are,
    and perhaps more.
    """
    scope, name = limiter
    if scope == "broker":
        return f"broker = {text(name)}"
    if name in config.attachments.topics.values():
        return "true"
    attached = {"tenant": config.attachments.tenants, "namespace": config.attachments.namespaces}
    of_name = {column: [what for what, group in of.items() if group == name] for column, of in attached.items()}
    found = [f"{column} IN ({', '.join(map(text, names))})" for column, names in of_name.items() if names]
    return f"({' OR '.join([*found, 'tenant IS NULL'])})"  # rows of earlier versions have no tenant


def _of_limiter(limiter: Limiter | None, topics: str = "false") -> str:
    """SQL: rows of marks of that limiter, and of limits of topics. topics: which of these."""
    if limiter is None:
        return "true"
    found = f"(scope = {text(limiter[0])} AND limiter = {text(limiter[1])})"
    return f"({found} OR (scope = {text(OWN[0])} AND {topics}))"


def _named(rows: pa.Table, config: ConfigTables) -> pa.Table:
    """TRAFFIC of rows with `charged`, a topic that stands for all that are charged as it is: each is parsed once."""
    charged = rows["charged"].combine_chunks().dictionary_encode()
    tenants, groups = [], []
    for topic in charged.dictionary.to_pylist():
        parsed = topic_of(topic)
        tenants.append(tenant_name(topic))
        groups.append(None if parsed is None else config.resolve(parsed).group)
    columns = {
        "name": pa.array(tenants, pa.string()).take(charged.indices),
        "group": pa.array(groups, pa.string()).take(charged.indices),
    }
    return pa.table([columns[name] if name in columns else rows[name] for name in TRAFFIC.names], TRAFFIC.names).cast(
        TRAFFIC
    )


def _within(last_s: int, seconds: int) -> str:
    first_us, end_us = (last_s - seconds + 1) * SECOND_US, (last_s + 1) * SECOND_US
    return f"event_time >= {_literal(first_us)} AND event_time < {_literal(end_us)}"


def _literal(time_us: int) -> str:
    return f"arrow_cast({time_us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
