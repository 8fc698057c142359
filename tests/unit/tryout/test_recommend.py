"""headgate try --recommend: limits are the smallest that keep the bound, and the folder gives what the screen says."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from headgate.conf import load_conf
from headgate.core.quota.groups import UNLIMITED
from headgate.core.topic_names import tenant_of, without_partition
from headgate.errors import InputError
from headgate.report.screen import terminal_console
from headgate.tryout import recommend_session
from headgate.tryout.batches import Trace
from headgate.tryout.bound import Bound
from headgate.tryout.folders import loaded
from headgate.tryout.inputs import Source
from headgate.tryout.loads import Load
from headgate.tryout.notches import notch_from, rate_at
from headgate.tryout.recommend import Recommended, Runs, recommend
from headgate.tryout.recommend_session import RecommendSession
from headgate.tryout.recommended_conf import (
    group_rows,
    groups_of,
    own_groups,
    topic_rows,
    with_tenants,
    with_topics,
    without_limits,
)
from headgate.tryout.steps import _courses, _lowered, lowered
from headgate.tryout.waiting import Publishes, Switch, Waited, by_name, waits
from unit.local_runs import SECOND_US, SHARED, START_US, conf_of, write_conf, write_trace

BOUND = Bound(5.0, 500)
BURSTS, STEADY, FAT = "persistent://acme/shop/bursts", "persistent://acme/shop/steady", "persistent://globex/shop/fat"
LIMIT = "maxPublishRatePerTopicInMessages"
GROUPS = {
    "resourcegroups": {
        "gold": {"publishRateInMsgs": 900, "dispatchRateInMsgs": 70},
        "silver": {"publishRateInMsgs": 900, "dispatchRateInMsgs": 80},
    },
    "tenants": {"acme": "gold", "globex": "silver"},
    "namespaces": {"acme/shop": "silver"},
}


def rows(seconds=8):
    """Acme: bursts of one topic on two brokers, the other steady. Globex: few and large. Initech: too few to say."""
    found = []
    for at in range(seconds * 20):
        topics = [STEADY, *([BURSTS] * 6 if at // 20 % 8 == 2 else ()), FAT]
        topics += ["persistent://initech/shop/rare"] if at % 60 == 0 else []
        for number, topic in enumerate(topics):
            partition = f"-partition-{at % 3 // 2}" if topic == FAT else ""
            row = {"event_time": START_US + at * SECOND_US // 20 + number, "seq": at, "broker": f"b{number % 2}"}
            row |= {
                "kind": "publish",
                "topic": topic + partition,
                "producer": f"p{at % 3}",
                "connection": "c",
                "messages": 2,
            }
            found.append(row | {"bytes": 1000 + at % 7 * 300 if topic == FAT else 10})
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return Source(str(write_trace(tmp_path_factory.mktemp("trace") / "t.json", rows())), "json")


@pytest.fixture(scope="module")
def conf(tmp_path_factory):
    return conf_of(tmp_path_factory.mktemp("conf"), SHARED, GROUPS, **{LIMIT: 1000})


@pytest.fixture(scope="module")
def runs(source, conf):
    return Runs(conf, Publishes(Trace(source), conf), BOUND, lambda _: None)


@pytest.fixture(scope="module")
def recommended(session):
    return session.recommended


def one_lower(rates, place):
    lower = rate_at(notch_from(rates[place]) - 1)
    return (lower, rates[1]) if place == 0 else (rates[0], lower)


def below_least(rates, loads, place):
    """The names whose rate would do for this trace, and let clients wait longer and longer in a longer one."""
    return {name for name, of_name in rates.items() if of_name[place] < loads[name].least[place]}


def late(waited):
    """The topics of which some partition does not keep the bound."""
    return {without_partition(topic) for topic, one in waited.items() if not one.keeps(BOUND)}


@pytest.mark.parametrize("place", [0, 1])
def test_a_limit_of_a_topic_keeps_the_bound_and_the_next_lower_rate_does_not(place, recommended, runs, conf):
    free = without_limits(conf)
    assert set(recommended.topics) == {BURSTS, STEADY, FAT}
    assert not late(runs.waits(with_topics(free, recommended.topics), ""))
    lower = {topic: one_lower(rates, place) for topic, rates in recommended.topics.items()}
    kept = set(recommended.topics) - late(runs.waits(with_topics(free, lower), ""))
    assert kept == below_least(lower, recommended.topic_loads, place) < set(recommended.topics)


@pytest.mark.parametrize("place", [0, 1])
def test_a_quota_of_a_tenant_keeps_the_bound_with_its_topics_and_the_next_lower_does_not(
    place, recommended, runs, conf
):
    set_ = with_topics(without_limits(conf), recommended.topics)
    assert set(recommended.tenants) == {"acme", "globex"}

    def keep(rates):
        waited = runs.waits(with_tenants(set_, rates, recommended.own), "")
        of_tenants = by_name(waited, tenant_of)
        spoilt = {tenant_of(topic) for topic in late(waited) & set(recommended.topics)}
        return {tenant for tenant in rates if of_tenants[tenant].keeps(BOUND) and tenant not in spoilt}

    assert keep(recommended.tenants) == {"acme", "globex"}
    lower = {tenant: one_lower(rates, place) for tenant, rates in recommended.tenants.items()}
    assert keep(lower) <= below_least(lower, recommended.tenant_loads, place)


def test_who_has_few_publishes_is_left_out(recommended):
    assert recommended.few_topics == ["persistent://initech/shop/rare"]
    assert recommended.few_tenants == ["initech"]


def test_loads_of_a_topic_are_those_of_its_partition_with_most(recommended):
    assert recommended.topic_loads[FAT].publishes == 160
    assert recommended.topic_loads[FAT].busiest[0] == 28
    assert recommended.topic_loads[FAT].mean[0] == pytest.approx(2 * 107 / 8)
    assert recommended.tenant_loads["globex"].busiest[0] == 40


def test_waits_are_those_of_the_rules_also_after_the_end_of_the_trace(tmp_path):
    """10 a second and a bucket of 10: 25 at once are paid for after 1.5 s, 400 more after another 40 s."""
    at_ms = {0: 25, 100: 1, 1000: 1, 5000: 1, 6000: 410, 6100: 1}
    one = {"broker": "b", "kind": "publish", "topic": STEADY, "producer": "p", "connection": "c", "bytes": 1}
    found = [
        one | {"event_time": START_US + ms * 1000, "seq": ms, "messages": messages} for ms, messages in at_ms.items()
    ]
    conf = conf_of(tmp_path / "conf", SHARED, {}, **{LIMIT: 10})
    publishes = Publishes(Trace(Source(str(write_trace(tmp_path / "t.json", found)), "json")), conf)
    (waited,) = waits(conf, publishes, Bound(1.0, 1000)).values()
    assert (waited.publishes, waited.slow, waited.failed) == (6, 2, 1)
    assert waited.longest_ns == 30 * 10**9
    (waited,) = waits(conf, publishes, Bound(1.0, 450)).values()
    assert (waited.slow, waited.failed) == (3, 1)


def test_publishes_that_fail_break_any_bound():
    assert Waited(1000, 10, 0).keeps(Bound(1.0, 1000))
    assert not Waited(1000, 11, 0).keeps(Bound(1.0, 1000))
    assert not Waited(1000, 1, 1).keeps(Bound(1.0, 1000))


def test_a_tenant_keeps_a_group_that_nobody_else_uses_and_gets_one_otherwise(conf):
    groups = {"resourcegroups": {name: {} for name in ("a", "b", "initech")}, "tenants": {"acme": "a", "globex": "b"}}
    groups |= {"namespaces": {"acme/x": "a", "umbrella/x": "b"}}
    found = replace(conf, resource_groups=conf.resource_groups.__class__(*(groups[name] for name in groups)))
    own = own_groups(found, ["acme", "globex", "initech"])
    assert own == {"acme": "a", "globex": "globex", "initech": "initech-2"}


class Shown(NamedTuple):
    """The lines of the whole command, the folders of before and after, and what was recommended."""

    lines: list
    folder: Path
    target: Path
    recommended: Recommended


@pytest.fixture(scope="module")
def session(source, tmp_path_factory):
    """One run of the whole command for all tests: it plays the trace some dozens of times."""
    here, found = tmp_path_factory.mktemp("session"), []

    def noted(*arguments):
        found.append(recommend(*arguments))
        return found[-1]

    folder, target = write_conf(here / "conf", SHARED, GROUPS, **{LIMIT: 1000}), here / "new"
    (folder / "policies.json").write_text(
        json.dumps({"topics": {"acme/shop/steady": {"//": "ours", "publishRate": None, "subscribeRate": None}}})
    )
    console = io.StringIO()
    with pytest.MonkeyPatch.context() as wide, RecommendSession(source, str(folder), str(target)) as session:
        wide.setenv("COLUMNS", "250")
        wide.setattr(recommend_session, "recommend", noted)
        session._screen._console = terminal_console(console)
        assert session.recommend(loaded([str(folder)]), BOUND) == 0
    return Shown([line.rstrip() for line in console.getvalue().splitlines()], folder, target, *found)


@pytest.fixture(scope="module")
def shown(session):
    return session[:3]


def test_the_written_folder_gives_the_figures_that_the_screen_says(shown, source, conf):
    lines, _, target = shown
    new = load_conf(target)
    waited = waits(new, Publishes(Trace(source), new), BOUND)
    figures = by_name(waited, without_partition) | by_name(waited, tenant_of)
    for name in (BURSTS, STEADY, FAT, "acme", "globex"):
        (line,) = (line for line in lines if line.startswith(f"{name} ") and "messages/s" in line)
        percent, _, longest_s, _ = line.split()[-4:]
        assert percent == f"{figures[name].slow_percent:.2f}"
        assert longest_s == f"{figures[name].longest_ns / 1e9:,.1f}"
        assert figures[name].keeps(BOUND)


def test_the_written_folder_is_the_one_of_now_with_limits_and_a_comment_for_each(shown):
    _, folder, target = shown
    assert (target / "broker.conf").read_text() == (folder / "broker.conf").read_text()
    policies = json.loads((target / "policies.json").read_text())["topics"]
    assert set(policies) == {"acme/shop/steady", BURSTS, FAT}
    assert policies["acme/shop/steady"]["//"] == "ours"
    groups = json.loads((target / "resource-groups.json").read_text())
    assert groups["tenants"]["acme"] == "gold"
    assert groups["tenants"]["globex"] == "globex"
    assert [groups["resourcegroups"][name]["dispatchRateInMsgs"] for name in ("gold", "globex", "silver")] == [
        70,
        80,
        80,
    ]
    assert groups["resourcegroups"]["silver"]["publishRateInMsgs"] == 900
    assert "acme/shop" not in groups["namespaces"]
    limits = [policy["publishRate"] for policy in policies.values()]
    limits += [groups["resourcegroups"][name] for name in ("gold", "globex")]
    for limit in limits:
        rates = [key for key in limit if "publish" in key and not key.startswith("//")]
        assert len(rates) == 2
        assert all("busiest second" in limit[f"// {key}"] for key in rates)
    assert "1,000 before; can be lowered in one step" in limits[0]["// publishThrottlingRateInMsg"]


def test_the_screen_compares_now_and_recommended_and_says_how_limits_come_down(shown):
    lines, _, target = shown
    assert "No recommendation for tenants of fewer than 100 publishes, or of empty ones alone (1): initech" in lines
    assert any(line.startswith("All 5 topics and tenants with lower limits can get them in one step") for line in lines)
    left = "so these leave their groups: acme/shop (group silver, 900 messages/s)"
    assert left in " ".join(lines)
    assert any(line.split() == ["tenant", "now", "recommended"] for line in lines)
    assert any(str(target) in line and "--traffic offered" in line for line in lines)


def test_limits_that_are_switched_while_the_trace_runs_hold_from_then_on(runs, conf, tmp_path):
    free = without_limits(conf)
    middle_us = START_US + 4 * SECOND_US
    of_topic = runs.waits(free, "", [Switch(middle_us, topic_rows({STEADY: (1, None)}))])
    assert 0 < of_topic[STEADY].failed < of_topic[STEADY].publishes
    own = {"acme": "acme"}
    start = with_tenants(free, {"acme": UNLIMITED}, own)
    of_group = runs.waits(start, "", [Switch(middle_us, groups=groups_of({"acme": (1, None)}, own))])
    assert 0 < of_group[STEADY].failed < of_group[STEADY].publishes
    assert not of_group[f"{FAT}-partition-0"].slow
    alone = conf_of(tmp_path / "alone", SHARED + "group_limits = 'each_broker'\n", GROUPS)
    start = with_tenants(without_limits(alone), {"acme": UNLIMITED}, own)
    of_group = runs.waits(start, "", [Switch(middle_us, group_rows({"acme": (1, None)}, own))])
    assert 0 < of_group[STEADY].failed < of_group[STEADY].publishes


def test_nothing_fails_at_the_steps_that_are_called_safe(recommended, runs):
    courses = lowered(recommended, runs)
    names = [course.name for course in (*courses.topics, *courses.tenants)]
    assert sorted(names) == sorted([*recommended.topics, *recommended.tenants])
    assert all(course.is_safe and len(course.rates) == 2 for course in (*courses.topics, *courses.tenants))


def test_a_limit_that_rises_does_so_before_the_others_fall():
    now, recommended = {"a": (5, None), "b": (5, 5)}, {"a": (10, 10), "b": (10, 10)}
    assert _lowered(now, recommended) == {"a": ((10, None), (10, 10))}


def test_as_few_steps_are_taken_as_will_do():
    load = Load(100, (1000, 1000), (0, 0), (1.0, 1.0), (0, 0))
    moves = {"one": ((1000, None), (800, None)), "two": ((1000, None), (500, None)), "none": ((900, None), (1, None))}

    def fail(now, step, steps):
        assert 1 <= step <= steps
        return {name for name, (before, after) in now.items() if after[0] < before[0] * 0.6}

    one, two, none = _courses(moves, dict.fromkeys(moves, load), dict.fromkeys(moves, 0), fail)
    assert one.rates == ((1000, None), (800, None))
    assert two.rates == ((1000, None), (710, None), (500, None))
    assert (one.is_safe, two.is_safe, none.is_safe) == (True, True, False)
    assert len(none.rates) == 9


def test_a_trace_with_nothing_to_go_by_is_refused(tmp_path):
    trace = Source(str(write_trace(tmp_path / "t.json", rows(1)[:20])), "json")
    folder = write_conf(tmp_path / "conf", SHARED, {})
    with (
        RecommendSession(trace, str(folder), str(tmp_path / "new")) as session,
        pytest.raises(InputError, match="no topic or tenant with 100 publishes"),
    ):
        session.recommend(loaded([str(folder)]), BOUND)
    assert not (tmp_path / "new").exists()
