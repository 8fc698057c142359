"""The quick form of the scenarios runs through, so that the benchmark keeps up with what it measures."""

import json

import pytest
from quota_scenarios import OURS, THEIRS, run, tasks
from quota_traffic import LOSS_PERCENTS, SCENARIOS


@pytest.mark.long
def test_the_quick_form_has_a_row_for_every_cell_and_every_target(capsys):
    rows = run(quick=True, processes=1)

    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    kinds = [record["record"] for record in printed]
    cells = len(SCENARIOS) * len(LOSS_PERCENTS) * 2 * len(OURS + THEIRS)
    assert cells == len(rows) == len({row.cell for row in rows}) == kinds.count("row")
    numbers = {record["name"].partition(":")[0] for record in printed if record["record"] == "target"}
    assert {"1", "3", "4", "5", "6", "7", "8", "9", "10", "12", "14"} == numbers


def test_the_whole_grid_has_six_seeds_with_loss_and_two_for_a_hundred_brokers():
    whole = tasks(quick=False)

    assert [1, 6, 6] == [sum(one.brokers == 20 and one.loss == loss for one in whole) for loss in LOSS_PERCENTS]
    assert [1, 2, 2] == [sum(one.brokers == 100 and one.loss == loss for one in whole) for loss in LOSS_PERCENTS]
