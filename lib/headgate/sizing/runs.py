"""The runs of a sweep: one combination over one broker's rows, and what they come to together. No engine."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headgate.core.cache.reasons import DeadReason
from headgate.sizing.combinations import Combination
from headgate.sizing.instants import Span
from headgate.sizing.measure import measure, summed
from headgate.sizing.trace import batches_in, letter_of_event

RESULT, LETTER = "result", "letter"
Outcome = tuple[str, str]
"""RESULT and a row of `cache_sweep`, or LETTER and one of `dead_letters`, as JSON."""


@dataclass(frozen=True)
class Run:
    """One task: a combination over one broker's rows, of which one entry in so many (`every`) was kept.

    folder: of the rows. span: of the whole trace.
    """

    combination: Combination
    broker: str
    folder: str
    span: Span
    every: int


def outcomes_of(run: Run) -> Iterator[Outcome]:
    """What came of a run, and of the present conf what it refused."""
    one, letters = run.combination, list[str]()

    def refused(reason: DeadReason, event: Mapping[str, Any]) -> None:
        letters.append(json.dumps(letter_of_event(run.broker, event, reason, one.settings)))

    began_s = time.process_time()
    measured = measure(
        one.settings,
        partial(batches_in, run.folder),
        run.span,
        every=run.every,
        letter=refused if one.is_present else None,
    )
    columns = {
        "combination": one.number,
        "broker": run.broker,
        "is_present": one.is_present,
        "policy": one.settings.policy,
        "max_bytes": one.settings.max_bytes,
        "changed": json.dumps(one.changed),
        "conf": json.dumps(one.settings.values()),
        "sample": run.every,
        **measured,
        "cpu_s": time.process_time() - began_s,
    }
    yield RESULT, json.dumps(columns)
    yield from ((LETTER, letter) for letter in letters)


def with_totals(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all runs, and one a combination of its brokers together (broker None), in their order."""
    together = [*rows, *_of_all_brokers(rows)]
    return sorted(together, key=lambda row: (row["combination"], row["broker"] is not None, row["broker"] or ""))


def _of_all_brokers(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row a combination: what its brokers come to together, under the conf and size that each of them has."""
    names = ("combination", "is_present", "policy", "max_bytes", "changed", "conf", "sample")
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_number.setdefault(row["combination"], []).append(row)
    for of_one in by_number.values():
        ordered = sorted(of_one, key=lambda row: row["broker"])
        counts = [{name: value for name, value in row.items() if name not in {*names, "broker"}} for row in ordered]
        yield {**{name: ordered[0][name] for name in names}, "broker": None, **summed(counts)}
