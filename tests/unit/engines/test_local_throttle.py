"""The throttle job on the local engine: the same rows however the input is cut and whatever order blocks have."""

import random

import pytest

from headgate.engines.local_throttle import LocalThrottle
from headgate.engines.tables import BufferedTables, SummedTables
from headgate.report.sql import query
from headgate.report.throttle_screen import shown_sums
from headgate.throttle.kinds import OUTPUT_TABLES
from headgate.throttle.schemas import BATCHES
from headgate.throttle.tables import SCHEMAS
from unit.local_runs import GROUPS, SHARED, conf_of, cut, in_order, parsed, publishes

ALONE = SHARED + "group_limits = 'each_broker'\n"
LIMITS = {"maxPublishRatePerTopicInMessages": 20, "dispatchThrottlingRatePerSubscriptionInMsg": 2}
SECONDS = 4


def tables_of(folder, conf, rows, seed=None):
    """The tables of a run over the rows; with a seed cut into batches anywhere and out of order."""
    tables = BufferedTables(folder, SCHEMAS)
    chance = None if seed is None else random.Random(seed)
    run = LocalThrottle(conf, tables, lambda _: None, disorder=chance)
    for part in [rows] if chance is None else cut(rows, chance, 9):
        run.take([parsed(part)] if part else [])
    run.end()
    return tables


@pytest.mark.parametrize("text", [ALONE, ALONE.replace("offered", "admitted"), SHARED + "state_key = 'topic'\n"])
def test_batches_and_disorder_change_no_row(tmp_path, text):
    conf = conf_of(tmp_path / "conf", text, {} if "topic" in text else GROUPS, **LIMITS)
    whole = tables_of(tmp_path / "whole", conf, publishes(SECONDS))
    assert len(whole.read("marks")) > 10
    for seed in range(2):
        shuffled = tables_of(tmp_path / f"{seed}", conf, publishes(SECONDS), seed)
        for name in OUTPUT_TABLES:
            assert in_order(whole.read(name)) == in_order(shuffled.read(name)), (name, seed)


def test_shares_of_quotas_do_not_depend_on_the_order_of_blocks(tmp_path):
    """Where batches end does count there: limits hold from the next one on."""
    conf = conf_of(tmp_path / "conf")
    runs = []
    for chance in (None, random.Random(1), random.Random(2)):
        tables = BufferedTables(tmp_path / str(len(runs)), SCHEMAS)
        run = LocalThrottle(conf, tables, lambda _: None, disorder=chance)
        for second in range(6):
            run.take([parsed([row for row in publishes() if row["seq"] % 10_000 // 50 == second])])
        run.end()
        runs.append([in_order(tables.read(name)) for name in OUTPUT_TABLES])
        assert {"gold"} == {course.group for course in run.quota_courses()}
        limits = [row for row in tables.read("control").to_pylist() if row["source"] == "quota" and row["broker"]]
        assert {"b1", "b2"} == {row["broker"] for row in limits}
    assert runs[0] == runs[1] == runs[2]


def test_kept_tables_have_what_brokers_told_each_other(tmp_path):
    conf, output = conf_of(tmp_path / "conf"), str(tmp_path / "out")
    tables = BufferedTables(output, SCHEMAS)
    run = LocalThrottle(conf, tables, lambda _: None, output)
    run.take([parsed(publishes())])
    run.end()
    for name in ("rg_usage", "rg_limits", "rg_groups", "rg_attachments", "rg_members"):
        assert len(query(output, f"SELECT * FROM {name}")), name
    assert BATCHES == tables.read("batches").schema
    wanted = shown_sums(conf.resource_groups)
    memory = SummedTables(wanted)
    again = LocalThrottle(conf, memory, lambda _: None)
    again.take([parsed(publishes())])
    again.end()
    assert run.quota_courses() == again.quota_courses() != []
    for sums in wanted:
        assert in_order(tables.totals(sums)) == in_order(memory.totals(sums)), sums


def test_tables_that_a_conf_names_are_those_of_live_jobs_and_are_left_alone(tmp_path):
    places = {f"resourceGroup{name}Table": str(tmp_path / "live" / name) for name in ("Usage", "Limit", "Member")}
    conf = conf_of(tmp_path / "conf", **places)
    for output in (None, str(tmp_path / "out")):
        run = LocalThrottle(conf, SummedTables(()), lambda _: None, output)
        run.take([parsed(publishes(2))])
        run.end()
    assert not (tmp_path / "live").exists()
