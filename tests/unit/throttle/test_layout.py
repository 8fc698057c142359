"""What a checkpoint's state depends on is kept at the first start and checked at every other."""

import json
from dataclasses import asdict, fields, replace

import pyarrow as pa
import pytest

from headgate.conf import BrokerConf, Conf, InputSettings, OperatorSettings, ResourceGroup, ResourceGroups, Settings
from headgate.errors import StateError
from headgate.throttle.form import Rules
from headgate.throttle.layout import (
    KEYS,
    Layout,
    check_layout,
    kept_layout,
    layout_of,
    layout_row,
    routing_of,
    rules_of,
)
from headgate.throttle.limits.control import tick_row
from headgate.throttle.routing import Routing
from headgate.throttle.schemas import CONTROL
from headgate.throttle.state import VERSION
from unit.throttle.control_rows import AT

CONF = Conf(
    settings=Settings(
        input=InputSettings(hold_back_ms=250),
        operator=OperatorSettings(state_key="auto", slots=5, traffic="offered", send_timeout_ms=7000),
    ),
    broker=BrokerConf(
        max_debt_ms=500,
        release_quantum_producers=3,
        broker_publish_rate_bytes_per_s=1,
        dispatch_implementation="classic",
        dispatch_on_batch_message=True,
        dispatch_on_non_backlog_consumer=False,
        dispatch_for_filtered_entries=True,
        stats_interval_s=7,
    ),
    resource_groups=ResourceGroups(
        groups={"g": ResourceGroup()}, tenants={"t": "g"}, namespaces={"t/n": "g"}, topics={"persistent://t/n/a": "g"}
    ),
)
LAYOUT = layout_of(CONF)


def control(*rows):
    return pa.Table.from_pylist(list(rows), CONTROL)


def test_a_layout_is_what_the_conf_files_say():
    assert {
        "version": VERSION,
        "state_key": "auto",
        "slots": 5,
        "whole_brokers": True,
        "traffic": "offered",
        "max_debt_ms": 500,
        "release_quantum": 3,
        "send_timeout_ms": 7000,
        "hold_back_ms": 250,
        "classic": True,
        "charges_entries": True,
        "throttles_caught_up": False,
        "filtered_entries": True,
        "stats_interval_s": 7,
    } == asdict(LAYOUT)


@pytest.mark.parametrize(
    "conf",
    [
        Conf(broker=BrokerConf(broker_publish_rate_messages_per_s=1)),
        Conf(broker=BrokerConf(broker_dispatch_rate_bytes_per_s=1)),
        *(
            Conf(resource_groups=ResourceGroups({"g": ResourceGroup()}, **{scope: {"name": "g"}}))
            for scope in ("tenants", "namespaces", "topics")
        ),
    ],
)
def test_a_broker_stays_whole_where_its_topics_can_share_a_limiter(conf):
    assert layout_of(conf).whole_brokers


def test_a_broker_stays_whole_where_the_caller_says_so_and_groups_alone_are_no_reason():
    conf = Conf(resource_groups=ResourceGroups({"g": ResourceGroup(1, 1)}))

    assert [False, True] == [layout_of(conf, whole_brokers=whole).whole_brokers for whole in (False, True)]


def test_settings_that_are_not_there_stand_for_no_bound_no_quantum_and_no_broker_limit():
    layout = layout_of(Conf())

    assert (-1, 0, False) == (layout.max_debt_ms, layout.release_quantum, layout.whole_brokers)


def test_rules_and_routing_follow_the_layout():
    of_dispatch = {"classic": True, "charges_entries": True, "throttles_caught_up": False, "filtered_entries": True}
    rules = Rules(500, 3, offered=True, send_timeout_ms=7000, hold_back_ms=250, whole_brokers=True, slots=5)
    rules = replace(rules, stats_interval_s=7, **of_dispatch)
    by_topic = replace(LAYOUT, state_key="topic")

    assert rules == rules_of(LAYOUT)
    assert Routing(slots=5, whole_brokers=True) == routing_of(LAYOUT)
    assert (True, 0) == (routing_of(by_topic).by_topic, rules_of(by_topic).slots)


def test_the_kept_layout_comes_back_from_the_control_table():
    assert LAYOUT == kept_layout(control(tick_row(AT), layout_row(LAYOUT), tick_row(AT)))
    assert kept_layout(control(tick_row(AT))) is None


def test_a_row_that_somebody_else_appended_under_its_name_is_no_layout():
    other = layout_row(LAYOUT) | {"source": "me", "name": None, "seq": 9}

    assert LAYOUT == kept_layout(control(layout_row(LAYOUT), other))


def test_a_layout_with_other_fields_is_of_another_version():
    fields = asdict(LAYOUT) | {"version": VERSION + 1, "shards": 4}
    row = layout_row(LAYOUT) | {"name": json.dumps(fields)}

    with pytest.raises(StateError, match=f"layout of version {VERSION + 1}, this headgate has version {VERSION}"):
        kept_layout(control(row))


def test_a_layout_of_another_version_is_refused_where_its_fields_are_the_same():
    row = layout_row(replace(LAYOUT, version=VERSION - 1))
    expected = f"version {VERSION - 1}, this headgate has version {VERSION}: start with .* go back to the headgate"

    with pytest.raises(StateError, match=expected):
        kept_layout(control(row))


@pytest.mark.parametrize("same", [LAYOUT, replace(LAYOUT, whole_brokers=False)])
def test_the_same_settings_fit_also_without_the_shared_limits(same):
    check_layout(same, LAYOUT)


@pytest.mark.parametrize("name", [field.name for field in fields(Layout)])
def test_a_setting_that_the_state_depends_on_cannot_change(name):
    kept = replace(LAYOUT, whole_brokers=False)
    was = getattr(kept, name)
    now = f"not {was}" if isinstance(was, str) else was + 1

    with pytest.raises(StateError) as refused:
        check_layout(replace(kept, **{name: now}), kept)

    assert f"{KEYS.get(name, name)}: the checkpoint has {was}, the conf files say {now}." in str(refused.value)


def test_shared_limits_cannot_come_later_and_all_differences_are_told():
    kept = replace(LAYOUT, whole_brokers=False, slots=9)

    with pytest.raises(StateError) as refused:
        check_layout(LAYOUT, kept)

    assert str(refused.value) == (
        "the settings do not fit the state of this checkpoint: slots: the checkpoint has 9, the conf files say 5; "
        "whole_brokers: the checkpoint has False, the conf files say True. Restore them, or start with a new --output "
        "and --checkpoint"
    )
