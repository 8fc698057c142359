"""The feedback loop: what holds in any trace without loss, and what each event does (resource-groups 11, 17, 18)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.oracles.quota_rounds.rounds import play
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
from headgate.core.quota.evaluation.step import step
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters
from headgate.core.quota.rates import RATE_MAX
from headgate.errors import InvalidArgument
from unit.core.quota.views import active, outside, view

quick = settings(max_examples=examples(60))
demands = st.one_of(st.just(0), st.integers(0, 50), st.integers(0, 20_000))
quotas = st.integers(1, 20_000)


@st.composite
def traces(draw, quota_events=True):
    """Rounds without loss and with fixed membership."""
    count, number = draw(st.integers(1, 4)), draw(st.integers(3, 14))
    rounds = [
        Round(
            draw(st.lists(demands, min_size=count, max_size=count)),
            (QuotaSet(draw(quotas)),) if quota_events and draw(st.integers(0, 5)) == 0 else (),
        )
        for _ in range(number)
    ]
    given_weights = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    visible = draw(st.booleans())
    return Trace(count, draw(quotas), tuple(rounds), tuple(given_weights), demand_visible=visible)


@quick
@given(traces(), st.integers(1, 3), st.sampled_from([0, 2, 60]), st.sampled_from([0, 30]))
def test_fast_without_loss_limits_stay_within_the_quota_and_the_floors(trace, staleness, linger, dead_band):
    parameters = RoundParameters(StepParameters(dead_band_percent=dead_band), staleness, linger)
    weight = sum(trace.weights)
    for played in play(trace, parameters)[staleness:]:
        floors = sum(played.quota * own // weight * 5 // 100 for own in trace.weights)

        assert sum(played.limits) <= played.quota + floors


@quick
@given(traces(quota_events=False))
def test_strict_with_a_view_one_epoch_old_stays_within_overshoot_and_floors(trace):
    for played in play(trace, RoundParameters(StepParameters(mode=Mode.STRICT))):
        assert sum(played.limits) * 100 <= played.quota * 110


@quick
@given(traces(), st.sampled_from(Mode), st.integers(1, 3))
def test_nothing_but_the_quota_decides_between_null_zero_and_a_rate(trace, mode, staleness):
    parameters = RoundParameters(StepParameters(mode=mode), staleness)
    for quota in (None, 0):
        unlimited = Trace(trace.brokers, quota, tuple(Round(round_.demand) for round_ in trace.rounds), trace.weights)

        assert {quota} == {limit for played in play(unlimited, parameters) for limit in played.limits}
    assert None not in {limit for played in play(trace, parameters) for limit in played.limits}


@quick
@given(traces(), st.sampled_from(Profile), st.integers(1, 3))
def test_equal_traces_play_alike(trace, profile, staleness):
    parameters = RoundParameters(StepParameters(profile=profile), staleness)

    assert play(trace, parameters) == play(trace, parameters)


@pytest.mark.parametrize("staleness", [1, 2, 3])
@pytest.mark.parametrize(("mode", "rounds_per_staleness"), [(Mode.FAST, 1), (Mode.STRICT, 2)])
def test_a_step_is_answered_exactly_after_one_view_fast_and_two_strict(staleness, mode, rounds_per_staleness):
    before, after, start = [900, 100, 0], [900, 900, 900], 10
    rounds = [Round(before if number < start else after) for number in range(20)]
    played = play(Trace(3, 900, tuple(rounds)), RoundParameters(StepParameters(mode=mode), staleness))
    exact = [round_.limits == (300, 300, 300) for round_ in played]

    assert start + rounds_per_staleness * staleness == exact.index(True, start)
    assert all(exact[start + rounds_per_staleness * staleness :])


members = st.lists(
    st.tuples(st.none() | st.integers(0, 10**6), st.none() | st.integers(0, 10**6), st.integers(0, 12), st.booleans()),
    min_size=1,
    max_size=5,
)


@given(members, st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(Mode))
def test_targets_sum_to_the_quota_in_the_evaluation_that_reads_it(rows, quota, others, mode):
    active_members = [
        active(broker, 0 if idle else demand, limit, behind=behind, idle=idle)
        for broker, (demand, limit, behind, idle) in enumerate(rows)
    ]
    seen = view(*active_members, *[outside(100 + broker, unheard=broker) for broker in range(others)])
    outcomes = [step(StepParameters(mode=mode), quota, member.broker_id, 7, seen) for member in seen.members]

    assert quota == sum(outcome.target for outcome in outcomes)
    assert quota == sum(outcome.safe_share for outcome in outcomes)


@given(members, st.integers(0, 10**6), st.none() | st.integers(0, 10**6), st.sampled_from(Profile))
def test_where_nothing_was_read_for_long_limits_are_safe_shares(rows, quota, present, profile):
    unheard = [
        active(broker, 0 if idle else demand, limit, behind=8 + behind, idle=idle)
        for broker, (demand, limit, behind, idle) in enumerate(rows)
    ]
    seen, parameters = view(*unheard), StepParameters(profile=profile)
    for member in unheard:
        outcome = step(parameters, quota, member.broker_id, present, seen)

        assert outcome.safe_share == outcome.limit


@given(members, st.integers(0, 10**6), st.randoms(), st.sampled_from(Mode))
def test_the_order_of_members_does_not_matter(rows, quota, random, mode):
    ordered = [
        active(broker, 0 if idle else demand, limit, behind=behind, idle=idle)
        for broker, (demand, limit, behind, idle) in enumerate(rows)
    ]
    shuffled = list(ordered)
    random.shuffle(shuffled)
    for broker in range(len(rows)):
        call = StepParameters(mode=mode), quota, broker, 5

        assert step(*call, view(*ordered)) == step(*call, view(*shuffled))


def limits_of(trace, **parameters):
    return [played.limits for played in play(trace, RoundParameters(**parameters))]


def busy(*events_by_round, rounds, brokers=3):
    """Everyone wants more than the quota of 900 from broker 0 to the last."""
    events = dict(events_by_round)
    return tuple(Round([900] * brokers, events.get(number, ())) for number in range(rounds))


def test_a_crashed_broker_keeps_its_share_until_membership_loses_it():
    trace = Trace(3, 900, busy((2, (Crash(2),)), (4, (MemberLost(2),)), rounds=6))

    assert [(300, 300, "gone")] * 2 + [(450, 450, "gone")] * 2 == limits_of(trace)[2:]


def test_a_broker_that_comes_back_has_no_earlier_life():
    trace = Trace(3, 900, busy((2, (MemberLost(2),)), (4, (MemberJoined(2),)), rounds=7))

    assert [(450, 450, "gone"), (450, 450, 15), (300, 300, 300), (300, 300, 300)] == limits_of(trace)[3:]


def test_a_restart_that_membership_never_noticed_is_a_new_life_as_well():
    trace = Trace(3, 900, busy((3, (Crash(2),)), (4, (MemberJoined(2),)), rounds=7))

    assert [(300, 300, "gone"), (450, 450, 15), (300, 300, 300)] == limits_of(trace)[3:6]


def test_a_newcomer_has_read_the_table_and_lost_reports_too():
    lost = frozenset([(0, 2), (1, 2)])
    rounds = [Round([900, 300, 0], lost=lost)] * 3 + [Round([900, 300, 0], (MemberJoined(2),), lost)]
    trace = Trace(3, 900, tuple(rounds), members=frozenset([0, 1]))

    assert limits_of(trace)[3] == (600, 300, 15)


def test_for_a_newcomer_whose_reports_are_lost_the_others_keep_its_part_until_they_hear_it():
    lost = frozenset([(2, 0), (2, 1)])
    rounds = [Round([900, 900, 0])] * 2 + [Round([900, 900, 900], (MemberJoined(2),), lost)]
    rounds += [Round([900, 900, 900], lost=lost)] * 12 + [Round([900, 900, 900])] * 2
    found = limits_of(Trace(3, 900, tuple(rounds), members=frozenset([0, 1])))

    assert [(450, 450, "gone")] * 2 + [(450, 450, 15)] + [(300, 300, 300)] * 14 == found


@pytest.mark.parametrize("staleness", [1, 2, 3])
def test_a_raise_does_not_wait_for_reports_of_a_newcomer_from_before_it_joined(staleness):
    """Broker 0 asks for more in round 6; its raise is not gated, though broker 2 joins in that very round."""
    demands = [[100, 900, 0]] * 6 + [[900, 900, 0]] * 6
    joining = 6 + staleness
    rounds = [Round(demand, (MemberJoined(2),) if r == joining else ()) for r, demand in enumerate(demands)]
    limits = limits_of(Trace(3, 900, tuple(rounds), members=frozenset([0, 1])), staleness=staleness)

    assert [(100, 800, "gone"), (450, 450, 15)] == limits[joining - 1 : joining + 1]


def test_a_newcomer_before_any_view_has_no_limit_yet():
    trace = Trace(2, 900, busy((1, (MemberJoined(1),)), rounds=4, brokers=2), members=frozenset([0]))

    assert [(900, "gone"), (900, None), (900, None), (900, 22)] == limits_of(trace, staleness=3)


def test_across_a_partition_nobody_is_heard_until_it_heals():
    demand, apart = [900, 900, 0], Partition((frozenset([0, 1]), frozenset([2])))
    rounds = [Round(demand, (apart,)), Round(demand), Round(demand), Round(demand, (Heal(),)), Round(demand)]

    # apart, broker 2 hears nobody active and keeps its cluster share, which the others, who never heard it, leave to it
    assert [(300, 300, 300)] * 4 + [(450, 450, 15)] == limits_of(Trace(3, 900, tuple(rounds)))


def test_a_new_quota_holds_in_its_round_and_null_and_zero_at_once():
    rounds = busy((2, (QuotaSet(450),)), (3, (QuotaSet(0),)), (4, (QuotaSet(None),)), (5, (QuotaSet(90),)), rounds=6)

    assert [(150,) * 3, (0,) * 3, (None,) * 3, (30,) * 3] == limits_of(Trace(3, 900, rounds))[2:]


def test_initial_limits_hold_for_the_first_round_alone():
    assert [(None, 0), (50, 50)] == limits_of(Trace(2, 100, (Round([90, 90]),) * 2, initial=(None, 0)))


def test_rates_above_the_largest_count_as_the_largest():
    played = play(Trace(1, 2**60, (Round([2**60]),)), RoundParameters())

    assert (RATE_MAX, (RATE_MAX,), (RATE_MAX,)) == (played[0].quota, played[0].limits, played[0].admitted)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Trace(2, 1, (Round([1]),)),
        lambda: Trace(2, 1, (), weights=(1,)),
        lambda: RoundParameters(staleness=0),
        lambda: RoundParameters(linger_rounds=-1),
    ],
)
def test_what_is_no_trace_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        wrong()
