"""The benchmark's scenarios: what each offers before and after its event, and what chance decides (12.1)."""

import pytest
from _chance import Chance
from quota_traffic import EVENT_ROUND, ROUNDS, SCENARIOS, losses, scenario, seeds

from headgate.conformance.oracles.quota_rounds.trace import Crash, Heal, MemberLost, Partition, QuotaSet
from headgate.errors import InvalidArgument

# With five brokers and a quota of 10 000, f is 2000; the first half has three brokers, the second two.
SHAPES = {
    "fair7030": ([2333] * 3 + [1500] * 2, [2800] * 5),
    "shift8020": ([2333] * 3 + [1500] * 2, [2666] * 3 + [1000] * 2),
    "join": ([6000] * 3 + [0] * 2, [6000] * 5),
    "wake": ([12_000] + [0] * 4, [12_000] + [10_000] * 4),
    "leave": ([6000] * 5, [6000] * 3 + [0] * 2),
    "mixed": ([1000] * 5, [600] * 3 + [8000] * 2),
    "quota2": ([600] * 3 + [8000] * 2, [600] * 3 + [8000] * 2),
    "crash": ([6000] * 5, [6000] * 5),
    "partition": ([6000] * 5, [6000] * 5),
}


@pytest.mark.parametrize(("name", "shape"), SHAPES.items(), ids=SHAPES)
def test_demand_changes_at_the_event(name, shape):
    demands = [round_.demand for round_ in scenario(name, 5).rounds]

    assert [shape[0]] * EVENT_ROUND + [shape[1]] * (ROUNDS - EVENT_ROUND) == demands


def test_rates_are_truncated():
    assert [3500, 3500, 3000] == scenario("fair7030", 3).rounds[0].demand
    assert [1000, 1000, 13_333] == scenario("mixed", 3).rounds[EVENT_ROUND].demand


def test_the_ramp_rises_for_thirty_rounds():
    second_half = [round_.demand[-1] for round_ in scenario("ramp", 5).rounds]

    assert [400, 400, 586, 773] == second_half[19:23]
    assert [5813, 6000, 6000] == second_half[49:52]
    assert {3000} == {round_.demand[0] for round_ in scenario("ramp", 5).rounds}


def test_bursts_have_two_levels_and_a_mean_of_eight_rounds():
    rounds = [round_.demand for seed in range(6) for round_ in scenario("bursty", 20, seed=seed).rounds]
    changes = sum(
        one != other
        for seed in range(6)
        for before, after in zip(rounds[seed * ROUNDS :], rounds[seed * ROUNDS + 1 : (seed + 1) * ROUNDS], strict=False)
        for one, other in zip(before, after, strict=True)
    )

    assert {1500, 50} == {demand for round_ in rounds for demand in round_}
    assert changes / (6 * (ROUNDS - 1) * 20) == pytest.approx(1 / 8, rel=0.1)


def events_of(name, brokers):
    return {number: round_.events for number, round_ in enumerate(scenario(name, brokers).rounds) if round_.events}


def test_events_of_the_scenarios_that_have_some():
    assert {20: (QuotaSet(5000),)} == events_of("quota2", 5)
    assert {20: (Crash(1),), 21: (MemberLost(1),)} == events_of("crash", 2)
    assert {20: tuple(map(Crash, range(16, 20))), 21: tuple(map(MemberLost, range(16, 20)))} == events_of("crash", 20)
    assert {20: (Partition((frozenset([0, 1, 2]), frozenset([3, 4]))),), 50: (Heal(),)} == events_of("partition", 5)
    assert set(SCENARIOS) - {"quota2", "crash", "partition"} == {name for name in SCENARIOS if not events_of(name, 5)}


@pytest.mark.parametrize("percent", [10, 30])
def test_reports_are_lost_independently_and_never_ones_own(percent):
    lost = losses(20, percent, seed=3)
    pairs = [pair for round_ in lost for pair in round_]

    assert len(pairs) / (ROUNDS * 20 * 19) == pytest.approx(percent / 100, rel=0.05)
    assert not [pair for pair in pairs if pair[0] == pair[1]]
    assert lost[0] != lost[1]


def draws(chance):
    return [chance.happens(1, 2) for _ in range(64)]


def test_chance_follows_from_the_seed_alone():
    assert losses(5, 30, seed=1) == losses(5, 30, seed=1)
    assert losses(5, 30, seed=1) != losses(5, 30, seed=2)
    assert draws(Chance(7, 1)) == draws(Chance(7, 1)) != draws(Chance(7, 2))
    assert scenario("bursty", 5, seed=4) == scenario("bursty", 5, seed=4)
    assert scenario("join", 5, seed=4) == scenario("join", 5, seed=5)


def test_without_loss_nothing_is_lost():
    assert {frozenset()} == set(losses(5, 0, seed=1))
    assert {frozenset()} == {round_.lost for round_ in scenario("join", 5).rounds}


def test_lost_reports_reach_the_trace():
    lost = losses(3, 30, seed=1)

    assert lost == [round_.lost for round_ in scenario("join", 3, lost).rounds]


def test_six_seeds_with_loss_and_two_for_a_hundred_brokers():
    assert [1, 6, 6, 2, 1] == [
        len(seeds(brokers, loss)) for brokers, loss in [(5, 0), (5, 10), (20, 30), (100, 30), (100, 0)]
    ]


def test_what_is_no_scenario_is_refused():
    with pytest.raises(InvalidArgument, match="fair7030"):
        scenario("unfair", 5)
    with pytest.raises(InvalidArgument, match="brokers"):
        scenario("join", 1)
