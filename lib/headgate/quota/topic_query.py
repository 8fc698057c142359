"""Sums of topic_usage over the last seconds up to a second, by topic and broker."""

from datetime import UTC, datetime

from headgate.errors import TableError
from headgate.quota.delta import opened
from headgate.quota.schemas import TableSpec
from headgate.quota.table_query import rows_of
from headgate.quota.topic_view import TopicSum
from headgate.throttle.schemas import TOPIC_USAGE

SECOND_US = 1_000_000
_SPEC = TableSpec("topic_usage", TOPIC_USAGE)
_SUMMED = {
    "publishes": "publishes",
    "messages": "messages",
    "bytes": "bytes",
    "admitted_messages": "coalesce(admitted_messages, messages)",
    "admitted_bytes": "coalesce(admitted_bytes, bytes)",
    "throttled": "throttled_publishes",
    "by_topic": "throttled_by_topic",
    "by_broker": "throttled_by_broker",
    "by_group": "throttled_by_group",
    "throttled_ns": "throttled_ns",
}
"""What is summed up for each field of `TopicSum`; in traffic that was let in, what came is what was let in."""


class TopicUsage:
    """topic_usage of one output. Every method raises TableError where it is missing, cannot be read, or is empty."""

    def __init__(self, output: str) -> None:
        self._table = opened(f"{output}/{_SPEC.name}", _SPEC, None)

    def newest_s(self) -> int:
        """The newest second that the table has, since 1970."""
        (row,) = rows_of(self._table, "SELECT arrow_cast(max(event_time), 'Int64') AS newest FROM t")
        newest = row["newest"]
        if newest is None:
            raise TableError(f"the table {self._table.location} has no rows: the job has seen no publish yet")
        return int(newest) // SECOND_US

    def sums(self, last_s: int, seconds: int) -> list[TopicSum]:
        """The sums over as many seconds, of which `last_s` is the last one."""
        first_us, end_us = (last_s - seconds + 1) * SECOND_US, (last_s + 1) * SECOND_US
        where = f"event_time >= {_literal(first_us)} AND event_time < {_literal(end_us)}"
        summed = ", ".join(f"sum({column}) AS {name}" for name, column in _SUMMED.items())
        sql = f"SELECT topic, broker, {summed} FROM t WHERE {where} GROUP BY topic, broker"  # noqa: S608  our own names
        sums = [TopicSum(**row) for row in rows_of(self._table, sql)]
        if not sums:
            newest = datetime.fromtimestamp(self.newest_s(), UTC)
            raise TableError(
                f"the table {self._table.location} has no rows of the {seconds} s up to "
                f"{datetime.fromtimestamp(last_s, UTC):%Y-%m-%dT%H:%M:%SZ}; its newest are of "
                f"{newest:%Y-%m-%dT%H:%M:%SZ}; give an --at that is not after that, or more --epochs"
            )
        return sums


def _literal(time_us: int) -> str:
    return f"arrow_cast({time_us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
