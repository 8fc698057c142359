"""Whose fault it is that a limiter holds somebody in some seconds, and why if nobody exceeded a fair share."""

import pytest

from headgate.quota.usage.contention import Contention, Reason, Within
from headgate.quota.usage.excess import UNITS, Traffic, ran_out
from unit.quota.usage.traffic_rows import FREE, POOL, UNIT_RATES, on_broker_c, sized, traffic


def test_of_a_limiter_that_is_overloaded_from_the_start_it_is_not_known_what_is_usual():
    hold = [(second, "flood", 300) for second in (4, 5)]
    usual = [(second, "calm", 10, FREE) for second in (1, 2, 3)]
    found = [
        Contention(traffic(*rows), lambda *_: 100).without_usual(POOL, "messages") for rows in (hold, usual + hold)
    ]

    assert found == [range(4, 6), range(0)]


@pytest.mark.parametrize(
    ("name", "units", "found"),
    [
        ("msgs", ["messages"], [("messages", False)]),  # what bytes would have done does not count
        ("msgs", ["bytes", "messages"], [("messages", False), ("bytes", True)]),
        ("msgs", [], []),
        ("calm", ["messages", "bytes"], [("messages", True), ("bytes", True)]),
    ],
)
def test_each_unit_that_ran_out_is_told_and_that_first_in_which_one_is_at_fault(name, units, found):
    rows = [(1, "msgs", 0, sized(300, 1)), (1, "size", 0, sized(1, 300)), (1, "calm", 0, sized(1, 1))]
    shared = Contention(traffic(*rows), lambda *_: 100).shared(name, POOL, units)
    assert [(one.unit, one.is_victim(name)) for one in shared] == found


def test_a_unit_of_which_less_came_than_the_rate_does_not_count_beside_one_that_was_exceeded():
    rows = [(1, "msgs", 0, sized(300, 90)), (1, "calm", 0, sized(1, 1))]
    (shared,) = Contention(traffic(*rows), lambda *_: 100).shared("msgs", POOL, UNITS)
    assert shared.unit == "messages"


CALM = ("calm", (30, 30))
RAN_OUT = {(POOL, "b"): {"bytes": [0]}, (POOL, "c"): {"messages": [59, 120], "bytes": [60, 80]}}


def test_what_limits_of_topics_let_through_is_of_these_topics_alone():
    waits = {"let_in_messages": 50, "let_in_bytes": 0, "failed_messages": 0, "failed_bytes": 0}
    rows = [
        *((at, "a", 500, {"topic": "t-partition-1", **waits}) for at in (1, 2)),
        *((at, "a", 100, {"topic": "u", **waits}) for at in (1, 2)),
        *((at, "b", 900, {"topic": "v", **waits}) for at in (1, 2)),
    ]
    of_rows = Traffic(traffic(*rows).rows, own_rates={("t-partition-1", "b"): {"messages": 100}})
    contention = Contention(of_rows, lambda *_: 100)

    asked = [("a", None), ("a", "t"), ("a", "u"), ("b", None)]
    assert [contention.let_through(name, POOL, "messages", topic) for name, topic in asked] == pytest.approx(
        [500 / 1200, 300 / 1000, 1, 1]
    )


@pytest.mark.parametrize(
    ("amounts", "reason"), [((90, 90, 90), Reason.SHARES), ((110, 101, 90), Reason.ABOVE), ((300, 1, 1), Reason.ABOVE)]
)
def test_what_is_within_the_quota_on_average_is_a_matter_of_shares(amounts, reason):
    rows = [(second, "a", amount) for second, amount in enumerate(amounts, 1)]
    contention = Contention(traffic(*rows), lambda *_: 100, shares={POOL})

    assert contention.why_within(POOL, "messages", [1, 2, 3]).reason is reason


def test_the_second_in_which_somebody_sends_most_is_one_in_which_nobody_has_a_larger_part_if_there_is_any():
    rows = [*((at, "first", amount) for at, amount in ((1, 900), (2, 90), (3, 90)))]
    rows += [(at, "then", amount) for at, amount in ((2, 400), (3, 300), (4, 350), (5, 350))]
    contention = Contention(traffic(*rows), lambda *_: 100)

    assert contention.most_in("then", POOL, "messages", [1, 2, 3, 4, 5]) == (350, 5)
    assert contention.most_in("then", POOL, "messages", [1, 2]) == (400, 2)
    assert contention.most_in("first", POOL, "messages", [1, 2, 3]) == (900, 1)


def test_a_unit_that_ran_out_on_another_broker_alone_does_not_count():
    rows = [(at, "here", 0, sized(300, 10)) for at in (1, 2, 3)]
    rows += [(at, "there", 0, {"broker": "c"} | sized(10, 9000)) for at in (1, 2, 3)]
    ran_out = {(POOL, "b"): {"messages": [1, 2, 3]}, (POOL, "c"): {"bytes": [1, 2, 3]}}
    contention = Contention(Traffic(traffic(*rows).rows, ran_out), lambda _, unit: UNIT_RATES[unit])

    found = {name: contention.shared(name, POOL, ["messages", "bytes"]) for name in ("here", "there")}
    assert {name: [one.unit for one in each] for name, each in found.items()} == {
        "here": ["messages"],
        "there": ["bytes"],
    }


def test_a_quota_of_0_blocks_which_is_nobodys_fault():
    contention = Contention(traffic((1, "a", 9), (1, "b", 90)), lambda *_: 0, blocked={POOL})
    (shared,) = contention.shared("b", POOL, ["bytes"])

    assert (shared.unit, shared.is_within, shared.is_victim("a")) == ("bytes", True, False)
    assert contention.why_within(POOL, "bytes", [1]) == Within(Reason.BLOCKED)


@pytest.mark.parametrize(("second_s", "most"), [(6, "burst"), (7, "grows"), (8, None), (9, None)])
def test_of_a_burst_that_is_named_which_grew_most_by_a_tenth_of_the_rate(second_s, most):
    rows = [(second, name, 20, FREE) for second in range(1, 6) for name in ("steady", "burst", "grows")]
    rows += [(6, "steady", 20), (6, "burst", 50), (6, "grows", 45), (7, "burst", 0), (7, "grows", 45), (8, "steady", 4)]
    rows.append((9, "steady", 29))
    contention = Contention(traffic(*rows), lambda *_: 100)

    assert contention.why_within(POOL, "messages", [second_s]) == Within(Reason.ABOVE, most)


def test_a_hold_in_one_unit_ends_though_brokers_hold_on_in_the_other_and_what_that_dammed_up_is_its_fault():
    """Of messages on broker c until second 69, of bytes from 60 to 119, and of messages again."""
    rows = [on_broker_c(59, "flood", 400), on_broker_c(59, "calm", 10)]
    rows += [on_broker_c(second, "calm", 10) for second in range(60, 125)]
    rows.append((60, "size", 1, {"broker": "c", "bytes": 1000}))
    of_rows = Traffic(traffic(*rows).rows, RAN_OUT)
    contention = Contention(of_rows, lambda *_: 100)

    assert set(of_rows.excesses(POOL, {"messages": 100})["messages"].by_second) == {*range(59, 80), *range(120, 125)}
    (at_first,) = contention.shared("calm", POOL, ["messages"], [59])
    (in_bytes,) = contention.shared("calm", POOL, ["bytes"], range(60, 120))
    (dammed_up,) = contention.shared("calm", POOL, ["messages"], range(120, 125))
    assert [set(one.sharers) for one in (at_first, in_bytes, dammed_up)] == [{"flood"}, {"size"}, {"size"}]
    assert [one.unit for one in (at_first, in_bytes, dammed_up)] == ["messages", "bytes", "bytes"]


def test_who_floods_in_one_unit_is_at_fault_in_it_though_another_floods_in_the_other_one_and_is_held_back():
    usual = [(at, name, 0, FREE | sized(*sizes)) for at in range(1, 10) for name, sizes in (("size", (40, 400)), CALM)]
    rows = [(at, *one) for at in range(10, 40) for one in (("size", 0, sized(40, 4000)), (CALM[0], 0, sized(*CALM[1])))]
    rows += [(at, "msgs", 0, sized(60, 60)) for at in range(20, 40)]
    ran_out = {(POOL, "b"): {"bytes": [*range(10, 40)], "messages": [*range(20, 40)]}}
    contention = Contention(Traffic(traffic(*usual, *rows).rows, ran_out), lambda _, unit: UNIT_RATES[unit])
    (shared,) = contention.shared("calm", POOL, ["messages"], range(24, 40))

    assert (shared.unit, shared.sharers) == ("messages", ["msgs"])


@pytest.mark.parametrize(
    ("flood", "in_messages"),
    [((1000, 2_000), [("messages", ["msgs"])]), ((20, 200), [("bytes", ["size"])])],
)
def test_a_flood_in_one_unit_stays_at_fault_though_the_other_one_holds_in_between(flood, in_messages):
    """Of bytes 1,000 a second are let in while they hold, of messages 100: what waits for one waits in the other."""
    usual = [(at, name, 0, FREE | sized(20, 200)) for at in range(1, 10) for name in ("size", "msgs", "calm")]
    rows = [(at, name, 0, sized(20, 200)) for at in range(10, 50) for name in ("size", "msgs", "calm")]
    rows += [(10, "size", 0, sized(20, 40_000)), (12, "msgs", 0, sized(*flood))]
    ran_out = {(POOL, "b"): {"bytes": [10, 11, 12, 13, 44], "messages": [*range(14, 44)]}}
    contention = Contention(Traffic(traffic(*usual, *rows).rows, ran_out), lambda _, unit: UNIT_RATES[unit])
    asked = ("bytes", range(12, 14)), ("messages", range(14, 25)), ("bytes", range(44, 50))
    found = [contention.shared("calm", POOL, [unit], seconds) for unit, seconds in asked]

    in_bytes = [("bytes", ["size"])]
    assert [[(one.unit, one.sharers) for one in shared] for shared in found] == [in_bytes, in_messages, in_bytes]


def test_of_units_in_which_one_has_the_same_part_that_comes_first_which_ran_out_most():
    rows = [(1, "flood", 0, sized(300, 900)), (1, "calm", 0, sized(1, 1))]
    shared = Contention(traffic(*rows), lambda *_: 100).shared("calm", POOL, ran_out({"bytes": 1, "messages": 2}))
    assert [one.unit for one in shared] == ["messages", "bytes"]


@pytest.mark.parametrize(("second", "unit"), [(1, "bytes"), (3, "bytes"), (4, "messages")])
def test_what_is_left_of_a_unit_that_did_not_run_out_counts_if_nobody_exceeds_the_other(second, unit):
    rows = [(1, "size", 0, sized(1, 250)), (2, "size", 0, sized(1, 1)), (3, "size", 0, sized(1, 1))]
    rows += [(4, "flood", 0, sized(300, 1))]
    shared = Contention(traffic(*rows), lambda *_: 100).shared("calm", POOL, ["messages"], [second])
    assert [one.unit for one in shared] == [unit]


@pytest.mark.parametrize(("least", "is_victim"), [(90, True), (91, False)])
def test_a_tenth_of_the_largest_part_is_a_share_of_the_fault(least, is_victim):
    contention = Contention(traffic((1, "most", 901), (1, "some", least)), lambda *_: 0)
    (shared,) = contention.shared("some", POOL, ["messages"])
    assert (shared.is_victim("some"), shared.largest) == (is_victim, "most")
    assert shared.sharers == (["most"] if is_victim else ["most", "some"])


def test_times_over_the_rate_hide_bursts_within_it_and_earlier_seconds_are_not_asked_about():
    rows = [(1, "old", 900), (9, "old", 5, FREE), (10, "burst", 70), (11, "x", 5, FREE), (12, "flood", 400)]
    contention = Contention(traffic(*rows), lambda *_: 100, since_s=10)
    (shared,) = contention.shared("flood", POOL, ["messages"], [10, 12])
    assert (shared.amounts, shared.is_within) == ({"flood": 200}, False)
    assert contention.held_seconds("old", POOL) == []
    assert contention.rivals("flood", POOL) == 2  # burst and x
    (shared,) = contention.shared("burst", POOL, ["messages"])
    assert shared.is_within


def test_without_a_known_rate_all_that_came_counts():
    (shared,) = Contention(traffic((1, "a", 30), (1, "b", 10)), lambda *_: 0).shared("a", POOL, ["messages"])
    assert (shared.part("a"), shared.part("b"), shared.is_within) == (0.75, 0.25, False)


def test_nothing_is_told_of_a_unit_without_a_rate_of_which_nothing_came():
    assert Contention(traffic((1, "a", 0)), lambda *_: 0).shared("a", POOL, UNITS) == ()
