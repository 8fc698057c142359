"""Tenants and topics: charged to one group each, and held by one limiter most, which others may have filled."""

from types import MappingProxyType

import pytest

from headgate.core.quota.attachments import Scope
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.quota.usage.topic_view import NO_TENANT, TopicSum, consumers_of, tenant_name

CONFIG = ConfigTables.of(
    [ResourceGroup(1, "gold"), ResourceGroup(2, "own")],
    [
        Attachment(Scope.TENANT, "a", "gold", 1),
        Attachment(Scope.NAMESPACE, "b/n", "gold", 2),
        Attachment(Scope.TOPIC, "persistent://a/n/x", "own", 3),
        Attachment(Scope.TENANT, "c", "absent", 4),
    ],
)


def topic(name, messages=100, *, bytes_=None, broker="b-0", by=(0, 0, 0), ns=0):
    size = messages if bytes_ is None else bytes_
    return TopicSum(name, broker, 10, messages, size, messages, size, max(by), 10, max(by), *by, ns)


def found(*sums, units=MappingProxyType({}), **options):
    return consumers_of(sums, CONFIG, tenant_name, units, **options)


def test_a_tenant_has_a_line_for_each_group_that_it_is_charged_to():
    one, other, nothing, stray = found(
        *(topic("persistent://a/n/x-partition-3", 9), topic("persistent://a/n/x-partition-4", 9)),
        *(topic("persistent://a/n/y", 5), topic("persistent://c/n/z", 2), topic("no topic", 1)),
    )
    assert ("a", "own", 18) == (one.name, one.group, one.messages)
    assert ("a", "gold", 5) == (other.name, other.group, other.messages)
    assert ("c", None, 2) == (nothing.name, nothing.group, nothing.messages)
    assert (NO_TENANT, None) == (stray.name, stray.group)


def test_one_group_alone_is_still_reckoned_against_all_of_its_limiter():
    held, _ = found(topic("persistent://a/n/y", 10, by=(0, 4, 0)), topic("persistent://d/n/y", 90))
    (alone,) = found(topic("persistent://a/n/y", 10, by=(0, 4, 0)), topic("persistent://d/n/y", 90), group="gold")
    assert held == alone
    assert (0.1, 1) == (alone.share, alone.rivals)


@pytest.mark.parametrize(
    ("own", "other", "victim"),
    [
        ((10, 10), (90, 90), True),
        ((50, 50), (50, 50), False),
        ((33, 33), (67, 67), True),
        ((34, 34), (66, 66), False),
        ((10, 60), (90, 40), False),
        ((90, 90), (10, 10), False),
    ],
)
def test_a_victim_has_less_than_half_of_the_largest_part_in_messages_and_in_bytes(own, other, victim):
    throttled = topic("persistent://a/n/y", own[0], bytes_=own[1], by=(0, 0, 1), ns=1)
    one, _ = found(throttled, topic("persistent://b/n/y", other[0], bytes_=other[1]))

    assert ("a", ("group", "gold"), victim) == (one.name, one.limiter, one.is_victim)


@pytest.mark.parametrize(
    ("ran_out", "unit", "victim", "share"),
    [
        (("messages",), "messages", True, 0.1),
        (("bytes",), "bytes", False, 0.6),
        (("messages", "bytes"), "bytes", False, 0.6),
    ],
)
def test_parts_are_of_the_unit_that_ran_out_or_of_both_that_with_the_larger_part(ran_out, unit, victim, share):
    throttled = topic("persistent://a/n/y", 10, bytes_=60, by=(0, 0, 1), ns=1)
    units = {("group", "gold"): ran_out, ("broker", "b-0"): ("bytes",)}
    one, _ = found(throttled, topic("persistent://b/n/y", 90, bytes_=40), units=units)

    assert (unit, victim, share) == (one.unit, one.is_victim, one.share)


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
