"""Rates over the time of a replay, from its tables, in few enough steps to be drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.replay.run import Trace
from headgate.replay.tables import ReplayTables

MOST_STEPS = 240
Floats = NDArray[np.float64]
UNITS = {"msgs": "messages/s", "bytes": "bytes/s"}
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Steps:
    """Equal steps of whole seconds from `first_s` on; what came after the trace's end is left out."""

    first_s: int
    step_s: int
    count: int

    @classmethod
    def of(cls, trace: Trace) -> "Steps":
        """At most MOST_STEPS for the whole trace."""
        first_s, last_s = trace.first_us // _SECOND_US, trace.last_us // _SECOND_US
        step_s = -(-(last_s - first_s + 1) // MOST_STEPS)
        return cls(first_s, step_s, -(-(last_s - first_s + 1) // step_s))

    @property
    def starts_s(self) -> Floats:
        """Seconds from the beginning of the trace."""
        return np.arange(self.count, dtype=np.float64) * self.step_s

    def sql(self) -> str:
        """The number of the step that a row lies in, as SQL."""
        return f"(CAST(event_time AS BIGINT) / {_SECOND_US} - {self.first_s}) / {self.step_s}"


@dataclass
class Course:
    """One group under one conf, a second each step: offered and admitted of all brokers, and by broker what was
    admitted and the limit (nan: not limited, or not known yet).
    """

    offered: Floats
    admitted: Floats
    by_broker: dict[str, Floats] = field(default_factory=dict)
    limits: dict[str, Floats] = field(default_factory=dict)


def courses(tables: ReplayTables, steps: Steps, group: str | None, unit: str) -> Mapping[str, Course]:
    """By conf. unit: of UNITS."""
    found: dict[str, Course] = {}

    def empty() -> Floats:
        return np.zeros(steps.count)

    sql = (
        f"SELECT conf, broker, {steps.sql()} AS step, sum(offered_{unit}) AS offered, sum(admitted_{unit}) AS admitted "  # noqa: S608
        f"FROM replay_seconds WHERE {_is(group)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    for row in _rows(tables, sql, steps):
        course = found.setdefault(row["conf"], Course(empty(), empty()))
        course.offered[row["step"]] += row["offered"] / steps.step_s
        course.admitted[row["step"]] += row["admitted"] / steps.step_s
        course.by_broker.setdefault(row["broker"], empty())[row["step"]] += row["admitted"] / steps.step_s
    sql = (
        f"SELECT conf, broker, greatest({steps.sql()}, 0) AS step, "  # noqa: S608
        f"avg(limit_{unit}) AS mean, last_value(limit_{unit} ORDER BY event_time) AS held "
        f"FROM replay_limits WHERE {_is(group)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    told: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for row in _rows(tables, sql, steps):
        mean, held = (np.nan if row[name] is None else float(row[name]) for name in ("mean", "held"))
        told.setdefault((row["conf"], row["broker"]), {})[row["step"]] = mean, held
    for (conf, broker), values in told.items():
        found.setdefault(conf, Course(empty(), empty())).limits[broker] = _held(values, steps.count)
    return found


def _is(group: str | None) -> str:
    return '"group" IS NULL' if group is None else "\"group\" = '{}'".format(group.replace("'", "''"))


def _rows(tables: ReplayTables, sql: str, steps: Steps) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tables.query(sql).to_pylist()
    return [row for row in rows if 0 <= row["step"] < steps.count]


def _held(values: Mapping[int, tuple[float, float]], count: int) -> Floats:
    """The mean of what was told in a step, or the last that was told before."""
    held = np.full(count, np.nan)
    now = np.nan
    for step in range(count):
        held[step], now = values.get(step, (now, now))
    return held
