"""The same trace of all kinds of rows gives the same tables, however it is cut, keyed, split or computed."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headgate.trace import write_trace
from integration.engines import Engine
from integration.runs import GROUPS, MIXED, MIXED_LIMITS, RESULTS, conf_in, results_of

SHARED: Mapping[str, Any] = {"groups": GROUPS, "broker": MIXED_LIMITS}
ALONE: Mapping[str, Any] = {"broker": MIXED_LIMITS}
DISORDER_MS = 2000
FIFTY = 50

Traces = Callable[..., Path]


class RunPlan(NamedTuple):
    """How one run goes about a trace."""

    batches: int = 1
    partitions: int = 2
    kernel: str = "numba"
    key: str = "auto"
    traffic: str = "admitted"

    @property
    def reference(self) -> "RunPlan":
        """The plain run that has to give the same rows."""
        return RunPlan(traffic=self.traffic)


GRID = (
    RunPlan(1, 1, "numba", "auto", "admitted"),
    RunPlan(1, 2, "python", "topic", "admitted"),
    RunPlan(1, 8, "numba", "auto", "offered"),
    RunPlan(7, 1, "python", "auto", "offered"),
    RunPlan(7, 2, "numba", "auto", "admitted"),
    RunPlan(7, 8, "python", "topic", "offered"),
    RunPlan(50, 1, "numba", "topic", "admitted"),
    RunPlan(50, 2, "python", "auto", "offered"),
    RunPlan(50, 8, "numba", "auto", "admitted"),
)
"""Every value of each axis together with every value of each other axis; the full product would take hours."""

HELD_BACK = (
    RunPlan(1, 2, "numba", "auto", "offered"),
    RunPlan(7, 8, "python", "auto", "admitted"),
    RunPlan(7, 2, "numba", "topic", "offered"),
    RunPlan(50, 2, "numba", "topic", "admitted"),
)


def toml(plan: RunPlan, files: int, hold_back_ms: int) -> str:
    return (
        f"[input]\nmax_files_per_trigger = {-(-files // plan.batches)}\nhold_back_ms = {hold_back_ms}\n"
        f'[operator]\nkernel = "{plan.kernel}"\ntraffic = "{plan.traffic}"\nstate_key = "{plan.key}"\nslots = 4\n'
        "connection_topics = true\n"
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """The trace in so many files: in event-time order, or with the rows of all files disordered."""
    folder = tmp_path_factory.mktemp("traces")

    @functools.cache
    def trace(files: int, disorder_ms: int) -> Path:
        path = folder / f"{files}-{disorder_ms}"
        write_trace(dataclasses.replace(MIXED, files=files, disorder_ms=disorder_ms), path, "json")
        return path

    return trace


class Scene(NamedTuple):
    """What all runs of one comparison have in common."""

    engine: Engine
    folder: Path
    traces: Traces
    limits: Mapping[str, Any] = SHARED
    files: int = MIXED.files

    def rows(self, plan: RunPlan, *, disorder_ms: int = 0) -> dict[str, list[dict[str, Any]]]:
        """The tables of one run, which took as many batches as `plan` says, and one more to close what was open.

        A disordered trace is held back for as long as its rows are late.
        """
        folder = self.folder / "-".join(map(str, (*plan, disorder_ms)))
        conf = conf_in(folder / "conf", toml(plan, self.files, disorder_ms), **self.limits)
        trace = self.traces(self.files, disorder_ms)
        done = self.engine.throttle(conf, trace, folder / "output", partitions=plan.partitions)
        assert plan.batches + 1 == len(done.batches)
        return results_of(folder / "output")


@pytest.mark.parametrize("traffic", ["admitted", "offered"])
def test_batches_partitions_and_the_form_of_the_rules_change_no_row(engine, traces, tmp_path, traffic) -> None:
    compare(Scene(engine, tmp_path, traces), [RunPlan(7, 8, "python", traffic=traffic)])


def test_a_hold_back_puts_disordered_files_in_order_again(engine, traces, tmp_path) -> None:
    compare(Scene(engine, tmp_path, traces), [RunPlan(7)], disorder_ms=DISORDER_MS)


def test_a_key_for_each_topic_gives_the_rows_of_the_domains(engine, traces, tmp_path) -> None:
    compare(Scene(engine, tmp_path, traces, ALONE), [RunPlan(7, key="topic")])


def test_the_grid_has_every_pair_of_values() -> None:
    for one, other in itertools.combinations(RunPlan._fields, 2):
        values = {(getattr(plan, one), getattr(plan, other)) for plan in GRID}
        expected = set(itertools.product(*({getattr(plan, axis) for plan in GRID} for axis in (one, other))))
        assert expected == values


@pytest.mark.long
@pytest.mark.parametrize("limits", [SHARED, ALONE], ids=["shared", "alone"])
@pytest.mark.parametrize(("plans", "disorder_ms"), [(GRID, 0), (HELD_BACK, DISORDER_MS)], ids=["ordered", "held_back"])
def test_the_grid_gives_one_result(on_spark, traces, tmp_path, limits, plans, disorder_ms) -> None:
    compare(Scene(on_spark, tmp_path, traces, limits, files=FIFTY), plans, disorder_ms=disorder_ms)


def compare(scene: Scene, plans: Iterable[RunPlan], *, disorder_ms: int = 0) -> None:
    """Each plan of the trace gives the rows of its reference, which had the trace in order and in one batch."""
    reference = functools.cache(scene.rows)
    for plan in dict.fromkeys(plan if scene.limits is ALONE else plan._replace(key="auto") for plan in plans):
        expected = reference(plan.reference)
        assert [] == [name for name in RESULTS if not expected[name]]
        assert expected == scene.rows(plan, disorder_ms=disorder_ms), plan
