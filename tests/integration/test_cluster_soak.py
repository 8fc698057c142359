"""Half an hour on a real broker: the quota is kept all the time, with few pushes, and neither memory nor cost grow.

A commit costs more with each entry of its table's log, so costs are compared once logs are as long as they get.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster_processes import Process, Tenant, offered
from headgate.core.clusters.ledger import PUSH
from headgate.tables.query import LOG_MINUTES
from integration.runs import await_that
from pulsar_standalone import Pulsar

QUOTA = 100
OFFERED = {"a_1": 10, "a_2": 200, "b_3": 200}
SETTLING_S, PART_S, PARTS = 60, 300, 6
FULL_LOGS = LOG_MINUTES * 60 // PART_S
"""The first part in which logs are as long as they get."""
MEAN_PERCENT, PUSHES_A_MINUTE, GROWTH = 3, 4, 1.2


class Cost(NamedTuple):
    """Of a process since its start: seconds of CPU, and what it has in memory."""

    cpu_s: float
    memory_bytes: int

    @staticmethod
    def of(process: Process) -> "Cost":
        folder = Path(f"/proc/{process.process.pid}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        resident = int((folder / "statm").read_text().split()[1])
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return Cost(cpu_s, resident * os.sysconf("SC_PAGE_SIZE"))


def looked(tenant: Tenant) -> int:
    return tenant.rows("broker_looks", "SELECT max(at_us) AS at FROM t")[0]["at"]


def mean_per_s(tenant: Tenant, first_us: int, last_us: int) -> float:
    sql = (
        "SELECT sum(messages) AS n FROM t WHERE direction = 'in' AND topic NOT LIKE '%__change_events' "
        f"AND at_us > {first_us} AND at_us <= {last_us}"
    )
    return tenant.rows("counters", sql)[0]["n"] * 1e6 / (last_us - first_us)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_half_an_hour(pulsar_standalone: Pulsar, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tenant, costs = Tenant(pulsar_standalone, tmp_path, QUOTA), []
    with ExitStack() as stack:
        collect = stack.enter_context(tenant.collect())
        for name, per_s in OFFERED.items():
            stack.enter_context(offered(tenant, **{name: per_s}))  # each with a connection of its own
        collect.await_text("1 of 1 brokers")
        enforce = stack.enter_context(tenant.enforce("--apply"))
        enforce.await_text("held: ")
        bounds_us = [looked(tenant) + (SETTLING_S + part * PART_S) * 1_000_000 for part in range(PARTS + 1)]
        for bound_us in bounds_us:
            patience_s = bound_us / 1e6 - time.time() + SETTLING_S
            await_that(lambda bound_us=bound_us: looked(tenant) >= bound_us, "the next part", patience_s, pause_s=5)
            costs.append([Cost.of(process) for process in (collect, enforce)])
        assert enforce.stop() == 0
        assert collect.stop() == 0
    assert tenant.limits() == [None, None]
    means = [mean_per_s(tenant, *span) for span in pairwise(bounds_us)]
    sql = f"SELECT DISTINCT at_us / 1000000 FROM t WHERE action = '{PUSH}' AND at_us > {bounds_us[0]}"
    pushes = len(tenant.rows("enforced", sql)) * 60 / (PARTS * PART_S)
    told = [f"means of {PART_S} s: {[round(one, 1) for one in means]} of {QUOTA}/s; {pushes:.2f} pushes a minute"]
    for name, of in zip(("collect", "enforce"), zip(*costs, strict=True), strict=True):
        memory_mb, cpu_s = [one.memory_bytes >> 20 for one in of], [round(one, 1) for one in spent_s(of)]
        told.append(f"{name}: MB at the bounds: {memory_mb}; CPU s in each part: {cpu_s}")
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *told, ""]))
    assert all(abs(one / QUOTA - 1) * 100 <= MEAN_PERCENT for one in means)
    assert pushes <= PUSHES_A_MINUTE
    for of in zip(*costs, strict=True):
        assert of[-1].memory_bytes <= GROWTH * of[FULL_LOGS].memory_bytes
        first_s, *_, last_s = spent_s(of)[FULL_LOGS:]
        assert last_s <= GROWTH * first_s


def spent_s(costs: Sequence[Cost]) -> list[float]:
    return [after.cpu_s - before.cpu_s for before, after in pairwise(costs)]
