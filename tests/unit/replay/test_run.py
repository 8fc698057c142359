"""A key replayed: shares follow the traffic, everything adds up, and cuts of the input do not matter."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.replay import run as run_module
from headgate.throttle.readable_form import run_readable
from unit.replay.scenes import (
    events,
    limits,
    moving,
    plan_in,
    publish,
    replayed,
    steady,
    total,
    trace_of,
)

BLOCKED = {"resourcegroups": {"gold": {"publishRateInMsgs": 0}}, "tenants": {"acme": "gold"}}


def test_shares_follow_the_traffic_from_the_next_epoch_on(tmp_path):
    """Until b has let in what it had held back, it counts by that: more than what it is offered by then."""
    told = limits(replayed(plan_in(tmp_path), moving()))
    assert ({"a": 50, "b": 50}, {"a": 20, "b": 80}) == (told[0.0], told[1.0])
    assert ({"a": 50, "b": 50}, {"a": 80, "b": 20}) == (told[9.0], told[10.0])


def test_new_shares_hold_so_long_after_the_epoch_as_the_delay_says(tmp_path):
    by_delay = {delay: limits(replayed(plan_in(tmp_path, delay_ms=delay), moving())) for delay in (300, 1000, 1500)}
    firsts = {
        delay: min(second for second, held in told.items() if held == {"a": 20, "b": 80})
        for delay, told in by_delay.items()
    }
    assert {300: 1.3, 1000: 2.0, 1500: 2.5} == firsts


def test_the_sum_of_limits_is_within_the_quota_and_the_floors(tmp_path):
    told = limits(replayed(plan_in(tmp_path, delay_ms=1000), moving()))
    held, sums = {}, []
    for changes in told.values():
        held |= changes
        sums.append(sum(held.values()))
    assert max(sums) <= 105


def test_what_is_admitted_follows_the_limit_that_stands_beside_it(tmp_path):
    out = replayed(plan_in(tmp_path), events(steady("b", 40, 0, 10)))
    seconds = [row for row in out["replay_seconds"] if row["offered_msgs"]]
    assert [100] * 10 == [row["limit_msgs"] for row in seconds]
    late = sorted(seconds, key=lambda row: row["event_time"])[3:]
    assert all(95 <= row["admitted_msgs"] <= 105 for row in late)


@pytest.mark.parametrize("traffic", ["offered", "admitted"])
def test_everything_offered_is_admitted_or_failed(tmp_path, traffic):
    plan = plan_in(tmp_path, traffic=traffic, settings="[operator]\nsend_timeout_ms = 2000\n")
    table = events(steady("a", 40, 0, 6), steady("b", 60, 0, 6), steady("b", 10, 0, 6, tenant="other"))
    out = replayed(plan, table)
    assert sum(table["messages"].to_pylist()) == total(out, "offered_msgs")
    assert total(out, "offered_msgs") == total(out, "admitted_msgs") + total(out, "failed_msgs")
    assert (total(out, "failed_msgs") > 0) == (traffic == "offered")
    for column in ("offered_msgs", "offered_bytes", "admitted_msgs", "failed_msgs", "delayed_publishes"):
        assert total(out, column) == total(out, column, "replay_seconds")


def test_delays_are_told_of_every_delayed_publish(tmp_path):
    out = replayed(plan_in(tmp_path, settings="[operator]\nsend_timeout_ms = 2000\n"), moving())
    assert 0 < total(out, "delayed_publishes")
    assert 5 * total(out, "delayed_publishes") == total(out, "messages", "delays")


def test_a_blocked_group_fails_everything_after_the_time_out(tmp_path):
    out = replayed(plan_in(tmp_path, groups=BLOCKED), events(steady("a", 10, 0, 3)))
    assert (150, 0, 150) == tuple(total(out, name) for name in ("offered_msgs", "admitted_msgs", "failed_msgs"))


def test_each_broker_alone_has_the_whole_rate_where_nothing_is_shared(tmp_path):
    plan = plan_in(tmp_path, settings="[operator]\ngroup_limits = 'each_broker'\n")
    out = replayed(plan, moving())
    assert {0.0: {"a": 100, "b": 100}} == limits(out)
    assert 0 == total(out, "delayed_publishes")


def test_a_broker_limit_ties_everything_and_holds_beside_the_groups(tmp_path):
    plan = plan_in(tmp_path, broker={"brokerPublisherThrottlingMaxMessageRate": 50})
    table = events(steady("a", 10, 0, 5), steady("a", 10, 0, 5, tenant="other"), steady("b", 4, 0, 5))
    out = replayed(plan, table, key="everything")
    assert len(table) == total(out, "offered_publishes")
    assert {"a"} == {row["broker"] for row in out["tenants"] if row["throttled_by_broker"]}


def test_brokers_without_traffic_of_the_group_are_members_with_a_floor(tmp_path):
    table = events(steady("a", 40, 0, 4), steady("b", 4, 0, 4, tenant="other"))
    told = limits(replayed(plan_in(tmp_path), table, key="group gold"))
    assert ({"a": 50, "b": 50}, {"a": 100, "b": 2}) == (told[0.0], told[1.0])


def test_both_forms_give_the_same(tmp_path):
    plan = plan_in(tmp_path)
    assert replayed(plan, moving()) == replayed(plan, moving(), form=run_readable)


def test_rows_of_one_instant_act_by_what_they_say(tmp_path):
    plan = plan_in(tmp_path, groups={"resourcegroups": {"gold": {"publishRateInMsgs": 3}}, "tenants": {"acme": "gold"}})
    rows = [publish(1, "a", producer=f"p{i}", messages=i) for i in range(1, 6)]
    first, second = (replayed(plan, pa.Table.from_pylist(some, events(rows).schema)) for some in (rows, rows[::-1]))
    assert first == second


arrivals = st.lists(
    st.tuples(
        st.integers(0, 5_000), st.sampled_from("ab"), st.sampled_from(["acme", "other"]), st.integers(1, 60),
        st.sampled_from("xyz"), st.integers(0, 2),
    ),
    min_size=1,
    max_size=120,
)  # fmt: skip


@settings(max_examples=examples(15))
@given(arrivals, st.integers(1, 40), st.sampled_from([0, 700, 1000]))
def test_any_cut_of_the_rows_gives_the_same(tmp_path_factory, found, rows, delay_ms):
    settings_ = "[operator]\nsend_timeout_ms = 1500\n"
    broker = {"maxPublishRatePerTopicInMessages": 70}
    plan = plan_in(tmp_path_factory.mktemp("conf") / "c", delay_ms=delay_ms, settings=settings_, broker=broker)
    table = events(
        [
            publish(at / 1000, broker, name=name, tenant=tenant, messages=count, producer=name, seq=seq)
            for at, broker, tenant, count, name, seq in found
        ]
    )
    whole = replayed(plan, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "MOST_ROWS", rows)  # rows of a round act in parts, too
        assert whole == replayed(plan, table, rows=rows)
    assert total(whole, "offered_msgs") == total(whole, "admitted_msgs") + total(whole, "failed_msgs")
    of_kernel = {(row["tenant"], row["broker"]): row["delayed_publishes"] for row in whole["tenants"]}
    assert (sum(of_kernel.values()) > 0) == (total(whole, "messages", "delays") > 0)


def test_only_the_rows_of_a_round_are_kept(tmp_path):
    """Rows that come in order leave with the end of their round."""
    plan = plan_in(tmp_path)
    table = events(steady("a", 100, 0, 10))
    run = run_module.KeyRun("group gold", plan, trace_of(table), run_readable, lambda _kind, _rows: None)
    kept = []
    for start in range(0, len(table), 50):
        run.take(table.slice(start, 50))
        kept.append(sum(map(len, run._waiting)))
    assert max(kept) <= 150


def test_seconds_come_in_order_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "SECONDS_AT_ONCE", 2)
    plan, table = plan_in(tmp_path), moving()
    told = []
    run = run_module.KeyRun(
        "group gold",
        plan,
        trace_of(table),
        run_readable,
        lambda kind, rows: told.append(rows) if kind == "replay_seconds" else None,
    )
    run.take(table)
    run.end()
    places = [(row["event_time"], row["broker"]) for part in told for row in part.to_pylist()]
    assert len(places) == len(set(places))
    assert all(before[0] <= after[0] for before, after in pairwise(places))
