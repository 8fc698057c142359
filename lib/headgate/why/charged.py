"""What was charged to a limiter, second by second, and the rules run over it once more."""

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.core.numbers import SECOND_NS
from headgate.core.token_bucket import RESOLUTION_NS, TokenBucket
from headgate.quota.usage.excess import UNITS
from headgate.why.tables import OutputTables, within

STEPS = 10
"""In so many equal parts, at the same distance, comes what the tables say of a second."""
Ints = NDArray[np.int64]
Keeps = Callable[[str], bool]

CAME, LET_IN = "came", "let_in"


class Charged:
    """Rows of topic_usage under one limiter: second_s, broker, topic, and what came and was let in of each unit."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    @classmethod
    def read(cls, tables: OutputTables, first_s: int, end_s: int, where: str, keeps: Keeps) -> Self:
        """where: a condition in SQL. keeps: whether a topic is charged to the limiter."""
        sums = ", ".join(
            f"sum({unit}) AS {CAME}_{unit}, sum(coalesce(admitted_{unit}, {unit})) AS {LET_IN}_{unit}" for unit in UNITS
        )
        columns = f"arrow_cast(event_time, 'Int64') / 1000000 AS second_s, broker, topic, {sums}"
        when = within(first_s * SECOND_NS, end_s * SECOND_NS)
        sql = f"SELECT {columns} FROM topic_usage WHERE {when} AND {where} GROUP BY event_time, broker, topic"  # noqa: S608  own names, quoted text
        rows = tables.rows("topic_usage", sql)
        if not len(rows):
            return cls(rows)
        topics = rows["topic"].combine_chunks().dictionary_encode()
        kept = pa.array([keeps(topic) for topic in topics.dictionary.to_pylist()], pa.bool_())
        return cls(rows.filter(kept.take(topics.indices)))

    def of(self, name: str, value: str) -> Self:
        """The rows with that value alone. name: topic or broker."""
        return type(self)(self.rows.filter(pc.equal(self.rows[name], value)) if len(self.rows) else self.rows)

    def but(self, topics: Sequence[str]) -> Self:
        """The rows of all other topics."""
        others = pc.invert(pc.is_in(self.rows["topic"], pa.array(topics, pa.string()))) if len(self.rows) else None
        return type(self)(self.rows if others is None else self.rows.filter(others))

    def since(self, first_s: int) -> Self:
        """The rows from that second on."""
        return type(self)(self.rows.filter(pc.field("second_s") >= first_s) if len(self.rows) else self.rows)

    def together(self, other: Self) -> Self:
        """The rows of both."""
        return type(self)(pa.concat_tables([one.rows for one in (self, other) if len(one.rows)] or [self.rows]))

    def names(self, name: str) -> list[str]:
        """The topics or brokers that any row is of."""
        return sorted(pc.unique(self.rows[name]).to_pylist()) if len(self.rows) else []

    def sums(self, unit: str) -> list[tuple[str, int, int]]:
        """By topic, what came and what was let in."""
        if not len(self.rows):
            return []
        columns = [f"{CAME}_{unit}", f"{LET_IN}_{unit}"]
        grouped = self.rows.group_by("topic", use_threads=False).aggregate([(name, "sum") for name in columns])
        return list(zip(*(grouped[name].to_pylist() for name in grouped.column_names), strict=True))

    def amounts(self, unit: str) -> Ints:
        """What came in each second from the first to the last."""
        if not len(self.rows):
            return np.zeros(0, np.int64)
        seconds = self.rows["second_s"].to_numpy()
        came = pc.fill_null(self.rows[f"{CAME}_{unit}"], 0).to_numpy()
        return np.bincount(seconds - seconds.min(), came).astype(np.int64)


def runs_out(amounts: Ints, rate: int) -> bool:
    """Whether a bucket of that rate, full before, is ever empty after a publish.

    amounts: by second, each spread evenly over STEPS parts, as rows of kind usage are. rate: per second, >= 1.
    """
    bucket = TokenBucket(rate, created_ns=0)
    step_ns = SECOND_NS // STEPS
    for place in np.flatnonzero(amounts):
        amount, come = int(amounts[place]), 0
        for step in range(1, STEPS + 1):
            due = amount * step // STEPS
            if due > come and not bucket.consume_check(due - come, int(place) * SECOND_NS + step * step_ns):
                return True
            come = due
    return False


def smallest_rate(amounts: Ints) -> int:
    """The smallest rate at which `runs_out` is False."""
    low, high = 0, int(amounts.max(initial=0)) + 1
    while runs_out(amounts, high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if runs_out(amounts, middle):
            low = middle
        else:
            high = middle
    return high


def mean_rate(amounts: Ints) -> int:
    """What comes in a second in the mean, rounded up."""
    return -(-int(amounts.sum()) // len(amounts)) if len(amounts) else 0


def sure_rate(amounts: Ints) -> int:
    """A rate at which a bucket is never empty, however what came was distributed within each second.

    Of any n seconds in a row all may come within n - 2 of them and an instant, or with n = 1 at an instant. The bucket
    has a second saved up, less what it has not refilled yet.
    """
    sums, most = np.concatenate([[0], np.cumsum(amounts)]), 0.0
    late = RESOLUTION_NS / SECOND_NS
    for length in range(1, len(amounts) + 1):
        most = max(most, int((sums[length:] - sums[:-length]).max()) / (max(length - 1, 1) - late))
    return int(most) + 2
