"""Tasks on all cores, and inputs that are too large for one machine."""

import os

import pytest

from headgate.engines import sizes
from headgate.engines.processes import outcomes
from headgate.engines.sizes import check_memory
from headgate.errors import HeadgateError, InputError


def test_each_task_has_its_outcome_by_number() -> None:
    assert dict(outcomes(abs, [-3, 4, -5, 6])) == {0: 3, 1: 4, 2: 5, 3: 6}


def test_an_error_of_a_task_is_raised_where_outcomes_are_awaited() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(outcomes(int, ["1", "one"]))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no other process")
def test_a_process_that_is_killed_is_an_error_and_no_wait_without_end() -> None:
    with pytest.raises(HeadgateError, match="was killed"):
        list(outcomes(os._exit, [9, 9]))


def test_an_input_that_is_too_large_names_the_job(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sizes.MOST_MIB, "json", 0)
    (tmp_path / "a.json").write_text("{}\n")
    with pytest.raises(InputError, match=r"up to 0 MiB of json in one process.*spark-submit.sh jobs/replay.py"):
        check_memory(str(tmp_path), "json", "jobs/replay.py")
