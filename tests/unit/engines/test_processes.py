"""Tasks on all cores, and inputs that are too large for one machine."""

import os
import signal
from collections.abc import Iterable
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.engines import sizes
from headgate.engines.processes import outcomes
from headgate.engines.sizes import check_memory
from headgate.errors import HeadgateError, InputError
from headgate.rows.listing import size_at


def test_each_task_has_its_outcome_by_number() -> None:
    assert dict(outcomes(abs, [-3, 4, -5, 6])) == {0: 3, 1: 4, 2: 5, 3: 6}


def test_an_error_of_a_task_is_raised_where_outcomes_are_awaited() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(outcomes(int, ["1", "one"]))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no other process")
def test_a_process_that_is_killed_is_an_error_and_no_wait_without_end() -> None:
    with pytest.raises(HeadgateError, match="was killed"):
        list(outcomes(os._exit, [9, 9]))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no other process")
def test_a_process_that_dies_between_tasks_is_the_same_error() -> None:
    with pytest.raises(HeadgateError, match="was killed"):
        _kill_each(pid for _, pid in outcomes(_pid, [0] * 50))


def _pid(_: int) -> int:
    return os.getpid()


def _kill_each(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_an_input_that_is_too_large_names_the_job(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sizes.MOST_MIB, "json", 0)
    (tmp_path / "a.json").write_text("{}\n")
    with pytest.raises(
        InputError,
        match=r"^--input: given has 0 MiB; .*up to 0 MiB of json in one process.*spark-submit.sh jobs/replay.py",
    ):
        check_memory(size_at(str(tmp_path), "json"), "json", "jobs/replay.py", "given")


def test_compressed_text_counts_ten_times_and_a_delta_table_without_what_it_no_longer_has(tmp_path, monkeypatch):
    for ending, most in (("json", 2), ("json.gz", 20)):
        (tmp_path / ending).mkdir()
        (tmp_path / ending / f"a.{ending}").write_bytes(bytes(2**21))
        for mib, refused in ((most, False), (most - 1, True)):
            monkeypatch.setitem(sizes.MOST_MIB, "json", mib)
            with pytest.raises(InputError) if refused else nullcontext():
                check_memory(size_at(str(tmp_path / ending), "json"), "json", "jobs/replay.py", "given")
    table = str(tmp_path / "delta")
    write_deltalake(table, pa.table({"x": np.random.default_rng(1).bytes(2**21 + 1).split(b"never")}))
    monkeypatch.setitem(sizes.MOST_MIB, "delta", 1)
    with pytest.raises(InputError):
        check_memory(size_at(table, "delta"), "delta", "jobs/replay.py", "given")
    write_deltalake(table, pa.table({"x": [b"little"]}), mode="overwrite")
    check_memory(size_at(table, "delta"), "delta", "jobs/replay.py", "given")
