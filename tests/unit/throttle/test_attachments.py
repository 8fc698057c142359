"""Topics move from group to group at a time, like a limit that changes (resource-groups 3)."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conf import ResourceGroup, ResourceGroups
from headgate.throttle.form import Rules
from headgate.throttle.keys import BROKER_KEY, group_key
from headgate.throttle.limits.effective_limits import EffectiveLimits, topics_under
from unit.throttle.domains import FORMS, attach, changes_block, events_block, limit, step_through, tick_block, whole
from unit.throttle.drawn import quick
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, event

MS_US = 1000
GOLD, IRON = limit("group", "gold", 10), limit("group", "iron", 10)
T0, T1 = TOPICS[:2]
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
OFFERED = Rules(offered=True)


def told(outcome):
    """Marks as (ms after the start, group, producer, seq or None)."""
    return [
        ((mark["at_ns"] - START_US * 1000) / 1e6, mark["limiter"], mark["producer"], mark["seq"])
        for mark in outcome.marks
    ]


names = st.sampled_from(["a", "b", "a.b", "a-b"])
groups = st.sampled_from(["g", "h"])
topic_names = st.builds("persistent://{}/{}/{}".format, names, names, names)
suffixes = st.sampled_from(["", "-partition-0", "-partition-17"])


@quick
@given(
    st.dictionaries(names, groups),
    st.dictionaries(st.builds("{}/{}".format, names, names), groups),
    st.dictionaries(topic_names, groups),
    st.lists(st.builds("{}{}".format, topic_names, suffixes), min_size=1, max_size=20),
)
def test_groups_are_those_of_the_conf_files(tenants, namespaces, topics, used):
    conf = ResourceGroups({name: ResourceGroup() for name in "gh"}, tenants, namespaces, topics)
    attached = {"tenant": tenants, "namespace": namespaces, "topic": topics}
    in_force = EffectiveLimits.from_changes(
        attach(name, group, scope) for scope, of in attached.items() for name, group in of.items()
    )
    expected = [None if (group := conf.group_of(topic)) is None else group_key(group) for topic in used]

    assert expected == in_force.groups_of(pa.array(used)).to_pylist()


ATTACHED = [
    attach("acme", "of-tenant", "tenant"),
    attach("acme/ns1", "of-namespace", "namespace"),
    attach("persistent://acme/ns1/own", "of-topic"),
    attach("persistent://acme/ns1/x+y.z", "of-special"),
]


@pytest.mark.parametrize(
    ("topic", "group"),
    [
        ("persistent://acme/ns0/a", "of-tenant"),
        ("persistent://acme/ns1/a", "of-namespace"),
        ("persistent://acme/ns1/own", "of-topic"),
        ("persistent://acme/ns1/own-partition-3", "of-topic"),
        ("persistent://acme/ns1/own-partition-3x", "of-namespace"),
        ("persistent://acme/ns1/own2", "of-namespace"),
        ("persistent://acme/ns1/x+y.z", "of-special"),
        ("persistent://acme/ns1/xxy.z", "of-namespace"),
        ("non-persistent://acme/ns1/own", "of-namespace"),
        ("persistent://acme2/ns1/own", None),
    ],
)
def test_a_topics_group_is_its_own_else_its_namespaces_else_its_tenants(topic, group):
    found = EffectiveLimits.from_changes(ATTACHED).groups_of(pa.array([topic])).to_pylist()

    assert [group and group_key(group)] == found


@pytest.mark.parametrize(("detached", "group"), [([2], "of-namespace"), ([2, 1], "of-tenant"), ([0, 1, 2], None)])
def test_what_is_detached_falls_back_to_the_next_wider(detached, group):
    in_force = EffectiveLimits.from_changes([*ATTACHED, *(replace(ATTACHED[i], group_name=None) for i in detached)])
    found = in_force.groups_of(pa.array(["persistent://acme/ns1/own"])).to_pylist()

    assert [group and group_key(group)] == found


@pytest.mark.parametrize(
    ("change", "positions"),
    [
        (attach("acme", "g", "tenant"), [0, 1, 2, 3]),
        (attach("acme/ns0", "g", "namespace"), [0, 1]),
        (attach("persistent://acme/ns1/x", "g"), [2]),
        (attach("persistent://acme/ns0/a", "g"), [0, 1]),
        (attach("@group", "g", "tenant"), []),
        (attach("@group/acme", "g", "namespace"), []),
    ],
)
def test_an_attachment_concerns_the_topics_under_its_name_and_no_others(change, positions):
    keys = ["persistent://acme/ns0/a", "persistent://acme/ns0/a-partition-1", "persistent://acme/ns1/x"]
    keys += ["non-persistent://acme/ns1/x", "persistent://acme2/ns0/a", BROKER_KEY, group_key("acme")]

    assert positions == topics_under([change], pa.array(keys)).to_pylist()


@both_forms
def test_a_publish_is_charged_to_the_group_of_its_instant(form):
    rows = [event(at_us, T0, seq=seq, messages=11) for seq, at_us in enumerate([0, 999_999, SECOND_US, 2 * SECOND_US])]
    changes = [
        limit("group", "gold", 5),
        limit("group", "iron", 6),
        attach(T0, "gold"),
        attach(T0, "iron", at_us=SECOND_US),
        attach(T0, None, at_us=2 * SECOND_US),
    ]
    marks = step_through(whole(rows, changes), Rules(), form).marks

    assert [("gold", 0), ("gold", 1), ("iron", 2)] == [
        (mark["limiter"], mark["seq"]) for mark in marks if mark["action"] == "mark"
    ]


@both_forms
def test_who_waits_for_the_old_group_is_released_out_of_turn_as_the_topic_moves(form):
    rows = [
        event(0, T0, seq=0, messages=30, producer="p0"),
        event(1, T1, seq=1, producer="p1"),
        event(2, T0, seq=2, producer="p2"),
    ]
    changes = [GOLD, attach(T0, "gold"), attach(T1, "gold"), attach(T0, "iron", at_us=500 * MS_US)]
    outcome = step_through(whole(rows, changes, until_us=500 * MS_US, finish=False), Rules(), form)

    assert [(500, "gold", "p0", None), (500, "gold", "p2", None)] == told(outcome)[3:]
    domain = outcome.state.domains[BROKER]
    assert [domain.keys.index(group_key("gold")).as_py()] == domain.entry_limiter.tolist()


@both_forms
def test_what_a_moved_topics_producers_withheld_is_charged_to_the_new_group_at_once(form):
    rows = [
        event(0, T0, seq=0, messages=100, producer="p0"),
        event(1, T0, seq=1, messages=4, producer="p0"),
        event(2, T0, seq=2, messages=7, producer="p0"),
    ]
    changes = [GOLD, IRON, attach(T0, "gold"), attach(T0, "iron", at_us=SECOND_US)]
    outcome = step_through(whole(rows, changes, until_us=SECOND_US), OFFERED, form)

    assert [(0, "gold", "p0", 0), (1000, "gold", "p0", None), (1000, "iron", "p0", 2)] == told(outcome)
    assert [0, 0] == [
        len(outcome.state.domains[BROKER].withheld["at_ns"]),
        sum(row["failed_publishes"] for row in outcome.usage),
    ]


@both_forms
def test_a_group_whose_limit_ends_as_its_last_topic_moves_lets_nothing_through(form):
    """Its limit ends behind the move: what was withheld meets the limit of the new group."""
    rows = [event(i, T0, seq=i, messages=10, producer="p0") for i in range(20)]
    ends = limit("group", "gold", at_us=SECOND_US)
    changes = [GOLD, IRON, attach(T0, "gold"), attach(T0, "iron", at_us=SECOND_US), ends]
    outcome = step_through(whole(rows, changes, until_us=SECOND_US, finish=False), OFFERED, form)

    assert (1000, "iron", "p0") in [mark[:3] for mark in told(outcome)]
    assert 0 < len(outcome.state.domains[BROKER].withheld["at_ns"])


@both_forms
@pytest.mark.parametrize("rules", [Rules(slot_ms=250), Rules(offered=True, slot_ms=250)])
def test_replication_is_none_of_a_groups_business(form, rules):
    rows = [
        event(0, T0, seq=0, messages=30, producer="pulsar.repl.west-->east"),
        event(1, T0, seq=1, messages=4, producer="pulsar.rep"),
        event(2, T0, seq=2, messages=5, producer="pulsar.repl"),
    ]
    changes = [limit("default", messages=35), limit("group", "gold", 0), attach(T0, "gold")]
    outcome = step_through(whole(rows, changes, until_us=100), rules, form)

    assert {("gold", 1)} == {(mark["limiter"], mark["seq"]) for mark in outcome.marks if mark["scope"] == "group"}
    assert [4] == [row["offered_msgs"] for row in outcome.group_usage]
    assert [2] == [mark["seq"] for mark in outcome.marks if mark["scope"] == "topic"]


@both_forms
def test_the_queue_of_a_topic_limiter_does_not_hear_of_attachments(form):
    changes = [limit("default", messages=10), attach(T0, "gold"), attach(T0, "iron", at_us=SECOND_US)]
    outcome = step_through(whole([event(0, T0, messages=30)], changes, until_us=3 * SECOND_US), Rules(), form)

    assert [0, 2100] == [at_ms for at_ms, *_ in told(outcome)]


@both_forms
def test_several_attachments_of_one_instant_are_one_move(form):
    """Detached from gold and attached elsewhere: the namespace's group, for which nobody waits, is never charged."""
    rows = [event(0, T0, seq=0, messages=30), event(1, T0, seq=1, messages=3)]
    changes = [
        GOLD,
        IRON,
        limit("group", "wide", 1),
        attach("acme/ns0", "wide", "namespace"),
        attach(T0, "gold"),
        attach(T0, None, at_us=SECOND_US, seq=1),
        attach(T0, "iron", at_us=SECOND_US, seq=2),
    ]
    outcome = step_through(whole(rows, changes, until_us=SECOND_US), OFFERED, form)

    assert [(0, "gold", "p", 0), (1000, "gold", "p", None)] == told(outcome)
    assert ["gold", "iron"] == [
        key.removeprefix("@group/") for key in outcome.state.domains[BROKER].keys.to_pylist() if key.startswith("@")
    ]


@both_forms
def test_a_limit_comes_before_an_attachment_of_its_instant(form):
    rows = [event(0, T0, messages=30), event(1, T0, seq=1, messages=5)]
    changes = [
        GOLD,
        attach(T0, "gold"),
        attach(T0, "iron", at_us=SECOND_US, seq=1),
        limit("group", "iron", 3, at_us=SECOND_US, seq=2),
    ]

    assert (1000, "iron", "p", 1) in told(step_through(whole(rows, changes, until_us=SECOND_US), OFFERED, form))


@both_forms
def test_a_late_attachment_holds_from_the_highest_time_reached(form):
    batches = [
        [changes_block([GOLD, attach(T0, "gold")]), events_block([event(0, T0, messages=100)]), tick_block(SECOND_US)],
        [changes_block([attach(T0, None, at_us=5)]), events_block([event(1, T0, seq=1, messages=100)])],
    ]

    assert [(0, "gold", "p", 0), (1000, "gold", "p", None)] == told(step_through(batches, Rules(), form))


def test_groups_are_registered_as_events_reach_them_also_after_a_move():
    rows = [event(at_us, topic, seq=at_us) for at_us, topic in [(0, T0), (10, T0), (20, T1), (30, T0)]]
    changes = [attach(T0, "a"), attach(T1, "b", at_us=5), attach(T0, "c", at_us=25)]
    together = step_through(whole(rows, changes), Rules())
    apart = step_through([[changes_block(changes)], *([events_block([row])] for row in rows)], Rules())

    assert [T0, "@group/a", T1, "@group/b", "@group/c"] == together.state.domains[BROKER].keys.to_pylist()
    assert together.state.domains[BROKER].keys == apart.state.domains[BROKER].keys


def test_an_attachment_of_a_topic_without_traffic_registers_nothing():
    outcome = step_through(
        [*whole([event(0, T0)]), [changes_block([attach(T0, "gold", at_us=10)]), tick_block(20)]], Rules()
    )
    domain = outcome.state.domains[BROKER]

    assert ([T0], [-2]) == (domain.keys.to_pylist(), domain.limiters["group"].tolist())
