"""A limiter's excess: a backlog belongs to who exceeded a fair share, not to who sends while it is worked off."""

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.quota.usage.excess import Traffic
from headgate.quota.usage.fair_share import unserved
from unit.quota.usage.traffic_rows import BOTH, BY_BROKER, BY_TOPIC, FREE, POOL, WAITS, offered, traffic

AMOUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 1000), max_size=6)


@pytest.mark.parametrize(
    ("demands", "capacity", "left"),
    [
        ({"a": 10, "b": 50}, 100, {}),
        ({"a": 10, "b": 90}, 100, {}),
        ({"a": 10, "b": 500}, 100, {"b": 410}),
        ({"a": 300, "b": 60, "c": 500}, 200, {"a": 230, "c": 430}),
        ({"a": 7, "b": 9}, 0, {"a": 7, "b": 9}),
        ({}, 5, {}),
    ],
)
def test_each_gets_as_much_as_any_other_or_all_that_it_wants(demands, capacity, left):
    assert unserved(demands, capacity) == left


@pytest.mark.parametrize(
    ("demands", "kept", "left"),
    [
        ({"steady": 80, "flood": 300}, {"steady": 80}, {"flood": 280}),
        ({"steady": 95, "flood": 300}, {"steady": 80}, {"steady": 5, "flood": 290}),
        ({"steady": 10, "flood": 300}, {"steady": 80}, {"flood": 210}),
        ({"a": 60, "b": 60, "c": 60}, {"a": 60, "b": 10}, {"b": 35, "c": 45}),
        ({"grown": 85, "flood": 300}, {"grown": 80}, {"flood": 285}),
        ({"a": 60, "b": 60}, {"a": 70, "b": 30}, {"b": 20}),
    ],
)
def test_what_is_kept_for_somebody_comes_first(demands, kept, left):
    assert unserved(demands, 100, kept) == left


@given(AMOUNTS, st.integers(0, 6000))
def test_nothing_of_the_capacity_is_lost_and_who_gets_least_gets_all_that_it_wants(demands, capacity):
    left = unserved(demands, capacity)
    assert sum(left.values()) == pytest.approx(max(0, sum(demands.values()) - capacity))
    got = {name: demand - left.get(name, 0) for name, demand in demands.items()}
    assert all(got[name] >= most - 1e-6 for name in left for most in got.values())


def parts(rows, per_s=100):
    """The excess by second in which the limiter held somebody, rounded."""
    found = traffic(*rows).excesses(POOL, {"messages": per_s})["messages"].by_second
    return {second: {name: round(amount) for name, amount in one.items()} for second, one in found.items()}


@pytest.mark.parametrize(
    ("rows", "excess"),
    [
        ([(1, "flood", 400), (1, "calm", 20)], {1: {"flood": 220}}),
        (  # what is left of a flood stays that of who sent it
            [(1, "flood", 400), (2, "calm", 40), (3, "calm", 40)],
            {1: {"flood": 200}, 2: {"flood": 200}, 3: {"flood": 140}},
        ),
        ([(1, "flood", 250), (2, "calm", 10)], {1: {"flood": 50}, 2: {"flood": 50}}),  # worked off in this second
        (
            [(1, "flood", 600), (4, "calm", 10), (5, "calm", 9)],
            {1: {"flood": 400}, 4: {"flood": 400}, 5: {"flood": 110}},
        ),
        (  # all is worked off, but the limiter still holds somebody
            [(1, "flood", 400), (4, "calm", 10), (5, "calm", 10)],
            {1: {"flood": 200}, 4: {"flood": 200}, 5: {"flood": 200}},
        ),
        (  # the limiter was free in between
            [(1, "flood", 400), (2, "flood", 100, FREE), (3, "calm", 150), (3, "flood", 10)],
            {1: {"flood": 200}, 3: {"calm": 60}},
        ),
        (  # who stays with what he usually sends is not at fault, however much that is
            [*((s, "steady", 80, FREE) for s in (1, 2, 3)), (4, "steady", 80), (4, "flood", 400), (5, "steady", 85)],
            {4: {"flood": 280}, 5: {"flood": 280}},
        ),
        (  # of less than three seconds nothing is known
            [(1, "a", 90), (2, "a", 180, FREE), (3, "a", 80), (3, "b", 90)],
            {1: {}, 3: {"a": 20, "b": 30}},
        ),
        ([(1, "burst", 190), (1, "calm", 10)], {1: {}}),  # a second of the rate is saved up
        ([(1, "a", 350), (1, "b", 250), (1, "c", 10)], {1: {"a": 255, "b": 155}}),
        ([(1, "burst", 60), (1, "calm", 10)], {1: {}}),
    ],
)
def test_the_excess_belongs_to_who_took_more_than_a_fair_share(rows, excess):
    assert parts(rows) == excess


def test_what_used_up_the_saved_up_rate_before_a_hold_is_no_usual_traffic():
    """A limiter that begins full holds nobody while little more than its rate comes, until the saved part is used."""
    rows = [(second, "steady", 70, FREE) for second in range(1, 20)]
    rows += [(second, "grows", 25 if second < 8 else 45, FREE) for second in range(1, 20)]
    rows += [(second, name, amount) for second in (20, 21) for name, amount in (("steady", 70), ("grows", 45))]

    assert {second: set(by_name) for second, by_name in parts(rows).items()} == {20: {"grows"}, 21: {"grows"}}
    assert traffic(*rows).excesses(POOL, {"messages": 0})["messages"].by_second[20].keys() == {"steady", "grows"}


def test_what_is_usual_stays_so_until_the_limiter_was_full_again_for_long():
    usual = [(second, "a", 50, FREE) for second in range(1, 6)]
    first = [(6, "a", 50), (6, "b", 200)]
    not_full = [(7, "a", 90, FREE), (8, "a", 90), (8, "b", 60)]
    full = [(7, "a", 20, FREE), (8, "a", 0, FREE), (9, "a", 90), (9, "b", 160)]

    assert parts([*usual, *first, *not_full]) == {6: {"b": 50}, 8: {"a": 10, "b": 30}}
    assert parts([*usual, *first, *full]) == {6: {"b": 50}, 9: {"b": 50}}


def test_after_a_pause_what_is_usual_is_of_it_and_of_what_was_usual_before():
    rows = [(at, name, amount, FREE) for at in range(1, 31) for name, amount in (("a", 50), ("b", 30))]
    rows += [(31, "a", 50), (31, "b", 200)]
    rows += [(at, name, amount, FREE) for at in range(32, 47) for name, amount in (("a", 0), ("b", 80))]

    assert parts([*rows, (47, "a", 100), (47, "b", 200)])[47] == {"a": 15, "b": 85}


@pytest.mark.parametrize(
    ("rows", "excess"),
    [
        (  # at fault until nothing of his waits, however long that takes
            [
                *(offered(1, "flood", 400, 190), offered(1, "calm", 10, 10)),
                *(offered(second, "flood", 0, 40) for second in (2, 3, 4, 5)),
                *(offered(6, "flood", 0, 50), offered(7, "calm", 1, 1)),
            ],
            {
                1: {"flood": 210},
                2: {"flood": 210},
                3: {"flood": 170},
                4: {"flood": 130},
                5: {"flood": 90},
                6: {"flood": 50},
                7: {"flood": 50},
            },
        ),
        (  # what fails does not wait any more
            [offered(1, "flood", 1000, 200), offered(2, "flood", 0, 90, 700), offered(3, "flood", 0, 10)],
            {1: {"flood": 800}, 2: {"flood": 800}, 3: {"flood": 10}},
        ),
        (  # one took more than his part elsewhere, the other waits on a broker with a small share
            [
                *(offered(1, "here", 350, 10), offered(1, "there", 350, 240)),
                *(offered(2, "here", 0, 10), offered(2, "there", 0, 80)),
                *(offered(3, "here", 0, 10), offered(3, "there", 10, 40)),
            ],
            {1: {"here": 250, "there": 250}, 2: {"here": 250, "there": 250}, 3: {"here": 250, "there": 200}},
        ),
        (  # let in whole on debt, for which all others wait
            [
                *(offered(1, "large", 1000, 1000), offered(1, "calm", 40, 20)),
                *(offered(second, "calm", 40, 0) for second in range(2, 9)),
                *(offered(9, "calm", 40, 100), offered(10, "calm", 40, 100)),
            ],
            {
                1: {"large": 840},
                2: {"large": 840},
                3: {"large": 780},
                4: {"large": 720},
                5: {"large": 660},
                6: {"large": 600},
                7: {"large": 540},
                8: {"large": 480},
                9: {"large": 420},
                10: {"large": 360},
            },
        ),
        (  # who sends no more than usual again, of which all waits behind a flood
            [
                *(offered(1, "flood", 500, 120), offered(1, "wave", 160, 80)),
                *(one for at in (2, 3, 4) for one in (offered(at, "flood", 0, 60), offered(at, "wave", 40, 40))),
            ],
            {
                at: {"wave": wave, "flood": flood}
                for at, wave, flood in [(1, 60, 400), (2, 60, 400), (3, 50, 350), (4, 40, 300)]
            },
        ),
        (  # who exceeds it by little beside a flood of which most has failed
            [
                offered(1, "flood", 1000, 200),
                *(offered(2, "flood", 0, 90, 700), offered(2, "grows", 10, 10)),
                *(offered(3, "flood", 0, 0), offered(3, "grows", 120, 100)),
            ],
            {1: {"flood": 800}, 2: {"flood": 800}, 3: {"flood": 10, "grows": 30}},
        ),
        (  # who is let in at once although he takes more than his part, while others wait
            [
                *(offered(1, "grows", 180, 180), offered(1, "calm", 30, 20)),
                *(offered(2, "grows", 60, 60), offered(2, "calm", 30, 20)),
            ],
            {1: {"grows": 10}, 2: {"grows": 10}},
        ),
    ],
)
def test_in_offered_traffic_who_exceeded_a_fair_share_is_at_fault_for_what_he_took_or_what_waits(rows, excess):
    assert parts(rows) == excess


@given(st.lists(AMOUNTS, min_size=1, max_size=8), st.integers(1, 2000))
def test_who_never_wants_more_than_an_equal_part_is_never_at_fault(seconds, per_s):
    """And only those, as long as more comes than the rate in every second."""
    small = per_s / 8  # of up to eight tenants
    rows = [
        (second, name, messages)
        for second, by_name in enumerate(seconds, 1)
        for name, messages in {**by_name, "calm": int(small), "flood": 3 * per_s}.items()
    ]
    found = traffic(*rows).excesses(POOL, {"messages": per_s})["messages"].by_second
    assert all("calm" not in one and one["flood"] > 0 for one in found.values())


def test_who_grows_a_little_while_another_floods_is_not_at_fault_though_the_flood_is_let_in_first():
    usual = [offered(second, "grows", 300, 300, **FREE) for second in range(1, 10)]
    usual.append(offered(9, "flood", 30, 30, **FREE))
    hold = [(10, "grows", 300, 150), (10, "flood", 900, 450), (11, "grows", 360, 150), (11, "flood", 60, 250)]
    hold += [(12, "grows", 330, 140), (12, "flood", 30, 290), (13, "grows", 330, 400)]
    found = traffic(*usual, *(offered(*one) for one in hold)).excesses(POOL, {"messages": 400})["messages"].by_second
    assert {second: set(one) for second, one in found.items()} == {at: {"flood"} for at in (10, 11, 12, 13)}


def test_who_waits_for_what_a_flood_has_pushed_aside_is_not_at_fault_for_small_excesses_after_it():
    rows = [offered(1, "flood", 1000, 190), offered(2, "flood", 0, 810), offered(13, "calm", 185, 90)]
    rows += [offered(at, "calm", 20, 0) for at in range(2, 13)]
    rows += [offered(at, "calm", 103, 90) for at in range(14, 20)]

    assert {name for one in parts(sorted(rows)).values() for name in one} == {"flood"}


def test_what_another_limiter_holds_back_is_usual_all_the_same():
    usual = [offered(at, "calm", 550, 300, **BY_BROKER) for at in range(1, 31)]
    usual += [offered(at, "grows", 300, 300, **FREE) for at in range(1, 31)]
    rows = [offered(at, name, came, came) for at in range(31, 50) for name, came in (("calm", 550), ("grows", 600))]
    found = traffic(*usual, *rows).excesses(POOL, {"messages": 1000})["messages"].by_second

    assert {name for one in found.values() for name in one} == {"grows"}


@pytest.mark.parametrize(
    ("rows", "of_pool", "of_broker", "before"),
    [
        ([(1, "a", 9, BY_BROKER), (2, "a", 9, FREE), (3, "a", 9)], {3}, {1}, set()),  # two holds
        ([(1, "a", 9, BY_BROKER), (2, "a", 9), (3, "a", 9, WAITS)], {2, 3}, {1, 2, 3}, {2, 3}),  # one after the other
        (
            [(1, "a", 9), *((s, "a", 9, BY_BROKER) for s in range(2, 15))],
            {*range(1, 12)},
            {*range(2, 15)},
            {*range(2, 12)},
        ),
        ([(1, "a", 9, WAITS), (2, "a", 9, WAITS)], {1, 2}, {1, 2}, set()),  # behind others, for whichever
        ([(1, "a", 9, WAITS), (2, "a", 9, BOTH)], {2}, {2}, {2}),
        ([(1, "a", 9, BY_BROKER), (12, "a", 9, WAITS)], {12}, {1, 12}, set()),  # after a long silence it is another one
        ([(1, "a", 9, BY_BROKER), (1, "a", 9, WAITS), (2, "a", 9, WAITS)], set(), {1, 2}, set()),  # of two topics
        ([(1, "b", 9, BY_BROKER), (1, "a", 9), (2, "b", 9, WAITS)], {1}, {1, 2}, set()),  # each name by itself
    ],
)
def test_a_limiter_holds_from_where_it_throttles_until_only_others_did_for_long(rows, of_pool, of_broker, before):
    found = traffic(*rows)
    held = {
        limiter: found.under(limiter).filter(pc.field("held") > 0).to_pylist() for limiter in (POOL, ("broker", "b"))
    }
    assert {row["second_s"] for row in held[POOL]} == of_pool
    assert {row["second_s"] for row in held["broker", "b"]} == of_broker
    assert {row["second_s"] for row in held[POOL] if row["before"]} == before


def test_of_what_another_limiter_holds_that_comes_which_it_lets_in_but_no_backlog_after_it():
    rows = [
        offered(1, "a", 50, 30, **BY_BROKER),
        offered(2, "a", 20, 40),
        offered(3, "a", 90, 40),
        offered(4, "a", 5, 5, **FREE),
    ]
    came = traffic(*rows).under(POOL).sort_by("second_s")

    assert came["messages"].to_pylist() == [30, 20, 90, 5]


def test_of_a_topic_with_a_limit_of_its_own_no_more_comes_than_that_lets_through():
    """Its rate, and a second of it at first; where only its own limit holds it, what that lets in."""
    own = {"topic": "t", "let_in_bytes": 0, "failed_bytes": 0, "bytes": 0}
    rows = [
        (1, "a", 150, own | {"let_in_messages": 150, "failed_messages": 0}),
        (2, "a", 400, own | {"let_in_messages": 60, "failed_messages": 150}),
        (3, "a", 20, own | {"let_in_messages": 60, "failed_messages": 0}),
        (4, "a", 0, own | {"let_in_messages": 10, "failed_messages": 0}),
        (5, "a", 0, own | BY_TOPIC | {"let_in_messages": 7, "failed_messages": 0}),
        (9, "a", 300, own | {"let_in_messages": 1, "failed_messages": 0}),
        (20, "a", 900, own | {"let_in_messages": 900, "failed_messages": 0}),  # on debt
        (21, "a", 90, own | {"let_in_messages": 0, "failed_messages": 0}),
    ]
    others = [(1, "b", 500, own | {"topic": "u", "let_in_messages": 50, "failed_messages": 0})]
    came = Traffic(traffic(*rows, *others).rows, own_rates={("t", "b"): {"messages": 100}}).under(POOL)

    assert came.filter(pc.field("topic") == "t").sort_by("second_s")["messages"].to_pylist() == [
        *(150, 150, 100, 20, 7, 200, 900, 0),
    ]
    assert came.filter(pc.field("topic") == "u")["messages"].to_pylist() == [500]
