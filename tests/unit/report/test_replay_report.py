"""A replay in words and as a report: what differs, what it changed, nothing from elsewhere."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from headgate.replay.run import Trace
from headgate.report.replay import words
from headgate.report.replay.html import NO_BREAK, html_page, most_affected, name_cell, sorted_by_conf
from headgate.report.replay.pictures import group_over_time, outcome_bars
from headgate.report.replay.series import MOST_STEPS, Course, Steps
from unit.replay.scenes import conf_in

ARROW = "\N{RIGHTWARDS ARROW}"
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": 300}}, "tenants": {"acme": "gold"}}
OTHERS = {
    "resourcegroups": {
        "gold": {"publishRateInMsgs": 500, "publishRateInBytes": 1000},
        "iron": {"publishRateInMsgs": 0},
    },
    "tenants": {"acme": "iron"},
}


def row(group="gold", conf="today", **values):
    counts = dict.fromkeys(("offered_msgs", "admitted_msgs", "delayed_msgs", "failed_msgs"), 0)
    return {"group": group, "conf": conf, "throttled_publishes": 0, "offered_publishes": 10} | counts | values


def test_differences_name_everything_that_a_replay_goes_by(tmp_path):
    before = conf_in(tmp_path / "a", groups=GROUPS)
    after = conf_in(
        tmp_path / "b",
        groups=OTHERS,
        broker={"maxPublishRatePerTopicInMessages": 70, "resourceGroupAllocationMode": "strict"},
        settings="[operator]\nsend_timeout_ms = 5000\n",
    )
    assert [
        f"every topic: unlimited {ARROW} 70 msg/s",
        f"group gold: 300 {ARROW} 500 msg/s, unlimited {ARROW} 1,000 B/s",
        f"group iron: none {ARROW} 0 msg/s, unlimited B/s",
        f"tenant acme: gold {ARROW} iron",
        f"resourceGroupAllocationMode: fast {ARROW} strict",
        f"operator.send_timeout_ms: 30000 {ARROW} 5000",
    ] == words.differences(before, after)


def test_equal_folders_do_not_differ(tmp_path):
    assert [] == words.differences(*(conf_in(tmp_path / name, groups=GROUPS) for name in "ab"))


def test_effects_come_with_the_largest_first_and_without_what_stayed():
    before = [
        row("gold", offered_msgs=100, failed_msgs=12, delayed_msgs=5),
        row("iron", offered_msgs=100, failed_msgs=50),
        row(None, offered_msgs=100),
    ]
    after = [
        row("gold", offered_msgs=100, failed_msgs=2, delayed_msgs=5),
        row("iron", offered_msgs=100),
        row(None, offered_msgs=100),
    ]
    assert [f"iron: failed 50 % {ARROW} 0 %", f"gold: failed 12 % {ARROW} 2.0 %"] == words.effects(
        before, after, offered=True
    )
    throttled = words.effects([row(throttled_publishes=1)], [row(throttled_publishes=5)], offered=False)
    assert [f"gold: throttled 10 % {ARROW} 50 %"] == throttled


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (0, "0 %"), (0.04, "<0.1 %"), (3.25, "3.2 %"), (100, "100 %")]
)
def test_percent_says_no_more_than_it_knows(value, expected):
    assert expected == words.percent(value)


def test_confs_of_one_group_stand_together_in_the_order_given():
    rows = [row("gold", "b"), row("gold", "a"), row(None, "b"), row(None, "a")]
    assert [("gold", "a"), ("gold", "b"), (None, "a"), (None, "b")] == [
        (one["group"], one["conf"]) for one in sorted_by_conf(rows, ["a", "b"], "group")
    ]


def test_groups_that_fail_most_under_any_conf_come_first_then_the_busiest():
    rows = [
        row("calm", offered_msgs=50),
        row("busy", offered_msgs=900),
        row("iron", offered_msgs=100, failed_msgs=1),
        row("gold", offered_msgs=100, failed_msgs=0),
        row("gold", "wider", offered_msgs=100, failed_msgs=7),
        row(None, offered_msgs=50),
    ]
    assert ["gold", "iron", "busy", None, "calm"] == most_affected(rows, offered=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300 msg/s, 1,000 B/s", "300~msg/s, 1,000~B/s"),
        ("topic 1,234, group 5", "topic~1,234, group~5"),
        ("not limited", "not limited"),
        ("a & b", "a &amp; b"),
    ],
)
def test_cells_of_words_wrap_but_never_beside_a_number(text, expected):
    assert f'<td class="name">{expected.replace("~", NO_BREAK)}</td>' == name_cell(text)


def test_cells_of_numbers_do_not_wrap():
    style = dict(re.findall(r"^(td[.a-z]*) \{(.*?)\}", html_page("title", ""), re.MULTILINE))

    assert "white-space: nowrap" in style["td"]


@pytest.mark.parametrize("length_s", [1, 240, 241, 86_400])
def test_a_trace_is_drawn_in_few_steps_of_whole_seconds(length_s):
    steps = Steps.of(Trace(("a",), 5_500_000, 5_500_000 + (length_s - 1) * 1_000_000))
    assert steps.count <= MOST_STEPS
    assert (steps.count - 1) * steps.step_s < length_s <= steps.count * steps.step_s


def test_pictures_are_the_same_for_the_same_numbers_and_name_what_they_show():
    steps = Steps(0, 1, 4)
    course = Course(np.array([5.0, 9, 9, 5]), np.array([5.0, 6, 6, 5]))
    course.by_broker = {f"broker-{i}": course.admitted / 8 for i in range(8)}
    course.limits = {f"broker-{i}": np.array([np.nan, 1, 1, 1]) for i in range(8)}
    drawn = [
        group_over_time({"today": course}, ["today", "wide"], {"today": 6, "wide": None}, steps, "msgs") for _ in "ab"
    ]
    rows = [
        row(conf=conf, offered_msgs=100, admitted_msgs=80, delayed_msgs=30, failed_msgs=20)
        for conf in ("today", "wide")
    ]
    drawn += [outcome_bars(rows, ["today", "wide"]) for _ in "ab"]
    assert (drawn[0], drawn[2]) == (drawn[1], drawn[3])
    for svg in drawn:
        ET.fromstring(svg)
        assert not re.search(r'href="http', svg)
        assert "<!-- today -->" in svg
