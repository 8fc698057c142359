"""Tenants and topics: charged to one group each, and held by one limiter most, which they share with others."""

from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
import pytest

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.quota.usage.contention import Contention
from headgate.quota.usage.excess import TRAFFIC, Traffic
from headgate.quota.usage.topic_view import NO_TENANT, TopicSum, consumers_of, tenant_name

CONFIG = ConfigTables.of(
    [ResourceGroup(1, "gold"), ResourceGroup(2, "own")],
    [
        Attachment(AttachedTo.TENANT, "a", "gold", 1),
        Attachment(AttachedTo.NAMESPACE, "b/n", "gold", 2),
        Attachment(AttachedTo.TOPIC, "persistent://a/n/x", "own", 3),
        Attachment(AttachedTo.TENANT, "c", "absent", 4),
    ],
)


GROUP_OF = dict.fromkeys(("persistent://a/n/y", "persistent://b/n/y"), "gold")


def topic(name, messages=100, *, bytes_=None, broker="b-0", by=(0, 0, 0), ns=0):
    size = messages if bytes_ is None else bytes_
    return TopicSum(name, broker, 10, messages, size, messages, size, max(by), 10, max(by), *by, ns)


def found(*sums, units=MappingProxyType({}), rate=0, by="tenant", **options):
    rows = [
        {"second_s": 9, "broker": one.broker, "group": GROUP_OF.get(one.topic), "name": tenant_name(one.topic)}
        | {"messages": one.messages, "bytes": one.bytes, "by_broker": one.by_broker, "by_group": one.by_group}
        | {"held": int(one.throttled > 0)}
        for one in sums
    ]
    contention = Contention(Traffic(pa.Table.from_pylist(rows, TRAFFIC)), lambda *_: rate)
    return consumers_of(sums, CONFIG, by, units, contention, **options)


def test_a_tenant_has_a_line_for_each_group_that_it_is_charged_to():
    one, other, nothing, stray = found(
        *(topic("persistent://a/n/x-partition-3", 9), topic("persistent://a/n/x-partition-4", 9)),
        *(topic("persistent://a/n/y", 5), topic("persistent://c/n/z", 2), topic("no topic", 1)),
    )
    assert ("a", "own", 18, 18) == (one.name, one.group, one.messages, one.bytes)
    assert ("a", "gold", 5) == (other.name, other.group, other.messages)
    assert ("c", None, 2) == (nothing.name, nothing.group, nothing.messages)
    assert (NO_TENANT, None) == (stray.name, stray.group)


def test_one_group_alone_is_still_reckoned_against_all_of_its_limiter():
    held, _ = found(topic("persistent://a/n/y", 10, by=(0, 4, 0)), topic("persistent://d/n/y", 90))
    (alone,) = found(topic("persistent://a/n/y", 10, by=(0, 4, 0)), topic("persistent://d/n/y", 90), group="gold")
    assert held == alone
    assert (0.1, 1) == (alone.shared[0].part("a"), alone.rivals)


@pytest.mark.parametrize(
    ("ran_out", "units", "victim"),
    [
        ({"messages"}, ["messages"], True),
        ({"bytes"}, ["bytes"], False),
        ({"messages", "bytes"}, ["bytes", "messages"], False),
    ],
)
def test_a_victim_has_little_of_the_excess_in_each_unit_that_ran_out(ran_out, units, victim):
    throttled = topic("persistent://a/n/y", 5, bytes_=60, by=(0, 0, 1), ns=1)
    of_limiters = {("a", ("group", "gold")): ran_out, ("a", ("broker", "b-0")): {"bytes"}}
    one, _ = found(throttled, topic("persistent://b/n/y", 95, bytes_=40), units=of_limiters)

    assert (("group", "gold"), victim) == (one.limiter, one.is_victim)
    assert [shared.unit for shared in one.shared] == units


def test_the_limiter_is_that_which_held_most_publishes_not_that_which_marked_most_often():
    """One topic's publishes came late at the broker's limit, another one had many short marks of its group."""
    late = replace(topic("persistent://a/n/x", 50, by=(0, 1, 0), ns=9), held=10)
    marked = replace(topic("persistent://a/n/y", 50, by=(0, 0, 9), ns=9), held=1)
    consumers = found(late, marked, by="tenant")

    assert {one.group: one.limiter for one in consumers} == {"own": ("broker", "b-0"), "gold": ("group", "gold")}
    together = found(replace(late, topic="persistent://a/n/z"), marked)
    assert [(one.limiter, round(one.blame, 2)) for one in together] == [(("broker", "b-0"), 0.91)]


def test_nobody_is_a_victim_of_traffic_that_fits_into_the_rate():
    one, _ = found(topic("persistent://a/n/y", 5, by=(0, 0, 1), ns=1), topic("persistent://b/n/y", 95), rate=100)

    assert (one.shared[0].is_within, one.is_victim) == (True, False)


@pytest.mark.parametrize(
    ("by", "limiter", "blame"),
    [((3, 1, 0), ("topic", ""), 0.75), ((0, 2, 1), ("broker", "b-0"), 2 / 3), ((0, 0, 0), None, 0.0)],
)
def test_the_limiter_to_blame_is_the_one_that_throttled_most(by, limiter, blame):
    (one,) = found(topic("persistent://a/n/y", by=by))

    assert (limiter, blame, False) == (one.limiter, one.blame, one.is_victim)


def test_who_was_held_longest_comes_first():
    held = topic("persistent://d/n/y", 1, by=(1, 0, 0), ns=5)
    sums = [topic("persistent://a/n/y", 5), held, topic("persistent://e/n/y", 9)]

    assert ["d", "e", "a"] == [one.name for one in found(*sums)]


def test_a_topic_is_all_of_its_partitions_and_judged_by_its_tenant():
    """Each partition sends less than the other tenant's topic, and no more than an equal part of the rate."""
    many = [topic(f"persistent://b/n/y-partition-{number}", 30, by=(0, 1, 0)) for number in range(9)]
    one, other = found(topic("persistent://a/n/y", 60, by=(0, 2, 0), ns=9), *many, rate=100, by="topic")

    assert [(each.name, each.tenant, each.messages) for each in (one, other)] == [
        ("persistent://a/n/y", "a", 60),
        ("persistent://b/n/y", "b", 270),
    ]
    assert (one.is_victim, other.shared[0].part(other.tenant)) == (True, 1)


def test_who_exceeds_a_fair_share_of_a_limiter_that_throttled_less_of_it_is_at_fault_there_too():
    loud, calm = (
        found(
            topic("persistent://a/n/y", 600, by=(0, by_broker, 2)),
            topic("persistent://b/n/y", 5, by=(0, 0, 4)),
            *(topic("persistent://d/n/y", 2000, by=(0, 6, 0)) for _ in range(with_others)),
            rate=100,
        )[:2]
        for by_broker, with_others in ((7, 1), (0, 0))
    )

    assert [(one.name, one.limiter, one.also_at_fault) for one in loud] == [
        ("a", ("broker", "b-0"), (("group", "gold"),)),
        ("d", ("broker", "b-0"), ()),
    ]
    assert [one.also_at_fault for one in calm] == [(), ()]
