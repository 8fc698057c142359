"""The array form of the rounds plays every trace as the readable form does (resource-groups 18)."""

import pytest
from _quota_rounds import RATE_LIMIT, play
from hypothesis import example, given, settings
from hypothesis import strategies as st
from quota_traffic import SCENARIOS, losses, scenario

from examples import examples
from headgate.conformance.oracles.quota_rounds import rounds
from headgate.conformance.oracles.quota_rounds.trace import (
    Crash,
    Heal,
    MemberJoined,
    MemberLost,
    Partition,
    QuotaSet,
    Round,
    RoundParameters,
    Trace,
)
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters

demands = st.one_of(st.just(0), st.integers(0, 50), st.integers(0, 20_000))
quotas = st.none() | st.just(0) | st.integers(1, 20_000)
parameters = st.builds(
    RoundParameters,
    st.builds(
        StepParameters,
        st.sampled_from(Profile),
        st.sampled_from(Mode),
        dead_band_percent=st.sampled_from([0, 30]),
        silent_rounds=st.sampled_from([1, 2, 8]),
    ),
    st.integers(1, 3),
    st.sampled_from([0, 2, 60]),
)


@st.composite
def traces(draw):
    """Rounds with losses and every event that the array form knows."""
    count, number = draw(st.integers(1, 5)), draw(st.integers(2, 14))
    brokers = st.integers(0, count - 1)
    sides = st.lists(st.frozensets(brokers), min_size=1, max_size=2).map(tuple)
    events = st.one_of(
        st.builds(QuotaSet, quotas),
        st.builds(Crash, brokers),
        st.builds(MemberLost, brokers),
        st.builds(Partition, sides),
        st.just(Heal()),
    )
    made = [
        Round(
            draw(st.lists(demands, min_size=count, max_size=count)),
            (draw(events),) if draw(st.integers(0, 4)) == 0 else (),
            draw(st.frozensets(st.tuples(brokers, brokers))),
        )
        for _ in range(number)
    ]
    weights = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    return Trace(count, draw(quotas), tuple(made), tuple(weights))


NOBODY_LEFT = Trace(1, 1, tuple(Round((0,), (MemberLost(0),) * (number == 0)) for number in range(2)), (1,))


@settings(max_examples=examples(250))
@example(NOBODY_LEFT, RoundParameters(StepParameters(), 1, 2))
@given(traces(), parameters)
def test_any_trace_plays_alike_in_both_forms(trace, chosen):
    assert rounds.play(trace, chosen) == play(trace, chosen).rounds


OTHERS = [pytest.param(profile, marks=pytest.mark.long) for profile in Profile if profile is not Profile.MAX_MIN]


@pytest.mark.parametrize("profile", [Profile.MAX_MIN, *OTHERS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_plays_alike_in_both_forms(name, profile):
    trace = scenario(name, 5, losses(5, 30, seed=1), seed=1)
    for mode in Mode if profile is Profile.MAX_MIN else (Mode.FAST,):
        chosen = RoundParameters(StepParameters(profile=profile, mode=mode), staleness=2)

        assert rounds.play(trace, chosen) == play(trace, chosen).rounds


def test_targets_of_every_view_sum_to_the_quota():
    trace = scenario("mixed", 5, losses(5, 30, seed=1))

    assert play(trace, RoundParameters()).target_gap == 0


@pytest.mark.parametrize(
    "trace",
    [
        Trace(2, 10, (Round([1, 1]),), initial=(1, 1)),
        Trace(2, 10, (Round([1, 1]),), members=frozenset([0])),
        Trace(2, 10, (Round([1, 1]),), demand_visible=False),
        Trace(2, 10, (Round([1, 1]), Round([1, 1], (MemberJoined(1),)))),
        Trace(2, 10, (Round([1, RATE_LIMIT + 1]),)),
    ],
    ids=["initial", "members", "hidden demand", "join", "rate"],
)
def test_a_trace_beyond_the_array_form_is_refused(trace):
    with pytest.raises(ValueError, match="allowed"):
        play(trace, RoundParameters())
