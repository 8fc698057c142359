"""Every branch of the step from target to limit, and the reason it gives (resource-groups 9.2, 15)."""

import pytest

from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.assessment import assess_coupled
from headgate.core.quota.evaluation.cell_view import CellMember, CellRow
from headgate.core.quota.evaluation.step import decide, first_limit, limit_without_transport, step
from headgate.core.quota.evaluation.step_parameters import CellLimit, Mode, StepParameters
from headgate.core.quota.rates import RATE_MAX
from headgate.errors import InvalidArgument
from unit.core.quota.views import E, active, awaited, outside, view

FAST = StepParameters()
STRICT = StepParameters(mode=Mode.STRICT)
PIP82 = StepParameters(profile=Profile.PIP82_RESIDUAL_PROPORTIONAL)
PULSAR = StepParameters(profile=Profile.PULSAR)


def wide_band(percent):
    return StepParameters(dead_band_percent=percent)


# Q = 1000 and four members of weight 1, unless said otherwise: safe share 500 for two, floor 250 * 5 / 100 = 12.
IDLE_TWO = (outside(2), outside(3))
TWO_BUSY = view(active(0, 900, 500), active(1, 900, 500), *IDLE_TWO)
ONE_FREE = view(active(0, 900, 500), active(1, 100, 500), *IDLE_TWO)
STEPS = {
    # name: (parameters, quota, broker, present limit, view), (limit, reason, target, safe share)
    "no quota is no limit": ((FAST, None, 0, 500, TWO_BUSY), (None, "unset", None, None)),
    "no quota is no limit in the released profile": ((PULSAR, None, 0, 500, TWO_BUSY), (None, "unset", None, None)),
    "quota 0 blocks": ((FAST, 0, 0, 500, TWO_BUSY), (0, "blocked", 0, 0)),
    "quota 0 blocks in the released profile": ((PULSAR, 0, 0, 500, TWO_BUSY), (0, "blocked", 0, 0)),
    "quota 0 blocks in the texts of PIP-82": ((PIP82, 0, 0, 500, TWO_BUSY), (0, "blocked", 0, 0)),
    "nobody is active": ((FAST, 1001, 0, 7, view(outside(0), outside(1))), (501, "cluster_share", 501, 501)),
    "others are active": ((FAST, 1000, 2, 500, TWO_BUSY), (12, "entry", 0, 0)),
    "nobody is active under PIP-82": ((PIP82, 10, 1, 7, view(outside(0), outside(1))), (5, "cluster_share", 5, 5)),
    "others are active under PIP-82": ((PIP82, 1000, 2, 500, TWO_BUSY), (12, "entry", 0, 0)),
    "down at once": ((FAST, 1000, 1, 500, ONE_FREE), (100, "target", 100, 500)),
    "down at once, strict": ((STRICT, 1000, 1, 500, ONE_FREE), (100, "target", 100, 500)),
    "unchanged": ((FAST, 1000, 0, 500, TWO_BUSY), (500, "target", 500, 500)),
    "up at once in a complete view": ((FAST, 1000, 0, 500, ONE_FREE), (900, "target", 900, 500)),
    # 250 each is kept for two of four that never said a word
    "what was never heard keeps its cluster share": (
        (FAST, 1000, 0, 1000, view(active(0, 900, 500), active(1, 900, 500), awaited(2), awaited(3, joined=99))),
        (250, "target", 250, 250),
    ),
    # 500 wanted and kept, 500 of headroom for two
    "what was never heard has its part of the headroom kept too": (
        (FAST, 1000, 0, 1000, view(active(0, 0, 500, idle=True), awaited(1))),
        (250, "target", 250, 500),
    ),
    "nothing is kept for who joins after the view": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500), awaited(1, joined=-1))),
        (1000, "target", 1000, 1000),
    ),
    # free: 1050 - 300 - 333; the awaited one is missing, and taken to claim a fifth of one's own 367
    "what is kept is not free": (
        (FAST, 1000, 0, 300, view(active(0, 900, 300), awaited(1), outside(2))),
        (647, "gated", 667, 500),
    ),
    "what is kept for a broker it has": (
        (FAST, 1001, 1, 7, view(active(0, 900, 500), awaited(1), active(2, 10, 500))),
        (334, "cluster_share", 334, 334),
    ),
    "the others have theirs where nobody else is active": (
        (FAST, 1000, 0, 7, view(outside(0), awaited(1))),
        (500, "cluster_share", 500, 500),
    ),
    "nothing is kept under PIP-82": (
        (PIP82, 1000, 0, 7, view(active(0, 900, 500, admitted=500), awaited(1))),
        (1000, "profile", 1000, 1000),
    ),
    "from no limit straight to the target": ((STRICT, 1000, 0, None, ONE_FREE), (900, "target", 900, 500)),
    "headroom goes to all by weight": (
        (FAST, 1000, 0, 10, view(active(0, 10, 10), active(1, 0, 10, weight=2, idle=True))),
        (340, "target", 340, 333),
    ),
    "oneself missing leaves the view complete": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500, behind=1), active(1, 100, 500))),
        (900, "target", 900, 500),
    ),
    # free: 1050 - 1000 = 50, of claims 400
    "strict takes part of what is free": ((STRICT, 1000, 0, 500, ONE_FREE), (550, "gated", 900, 500)),
    "strict takes all it claims where that is free": (
        (STRICT, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 100), *IDLE_TWO)),
        (900, "gated", 900, 500),
    ),
    "a missing member outside M gates": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 500), outside(2, unheard=1))),
        (550, "gated", 900, 500),
    ),
    "an extra evaluation of one broker gates": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 500), raises_gated=True)),
        (550, "gated", 900, 500),
    ),
    # claims 400 and, assumed of the missing one, 80: 50 * 400 / 480
    "a missing member claims a part of one's own claim": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 500, behind=1), *IDLE_TWO)),
        (541, "gated", 900, 500),
    ),
    "a missing member's own claim counts where it is larger": (
        (FAST, 900, 0, 300, view(active(0, 900, 300), active(1, 0, 300, idle=True), active(2, 900, 300, behind=1))),
        (322, "gated", 450, 300),
    ),
    # reported 300, present 400: 300 + 200 * 250 / 200 capped at the claim
    "the gate counts from the reported limit": (
        (STRICT, 1000, 0, 400, view(active(0, 500, 300), active(1, 500, 500))),
        (500, "gated", 500, 500),
    ),
    "the gate may end below the present limit": (
        (STRICT, 1000, 0, 400, view(active(0, 500, 300), active(1, 500, 700))),
        (350, "gated", 500, 500),
    ),
    "the gate never takes back what was reported": (
        (STRICT, 1000, 0, 100, view(active(0, 500, 800), active(1, 500, 500))),
        (800, "gated", 500, 500),
    ),
    "nothing is free": (
        (STRICT, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 600))),
        (500, "gated", 900, 500),
    ),
    "a row without a limit counts as its target": (
        (STRICT, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, None))),
        (900, "gated", 900, 500),
    ),
    "an idle row of the epoch counts its limit": (
        (STRICT, 1000, 0, 500, view(active(0, 700, 500), active(1, 0, 400, idle=True))),
        (650, "gated", 850, 500),
    ),
    # target of 1: 0 + 300 / 2 = 150, more than the limit of its older idle row: 1050 - 650 free
    "an older idle row counts its target where that is larger": (
        (STRICT, 1000, 0, 500, view(active(0, 700, 500), active(1, 0, 20, idle=True, behind=3, unheard=0))),
        (850, "gated", 850, 500),
    ),
    "an older busy row counts its limit": (
        (STRICT, 1000, 0, 500, view(active(0, 700, 500), active(1, 300, 520, behind=3, unheard=0))),
        (530, "gated", 700, 500),
    ),
    # 1 was heard 8 epochs ago: demand 500, limit 500
    "a silent member counts at its safe share": (
        (FAST, 1000, 0, 500, view(active(0, 900, 500), active(1, 100, 100, behind=8), outside(2))),
        (500, "target", 500, 500),
    ),
    "a member heard within the rounds counts as reported": (
        (FAST, 1000, 0, 500, view(active(0, 900, 900), active(1, 100, 100, behind=7), outside(2))),
        (900, "gated", 900, 500),
    ),
    "a raise in the dead band waits": ((wide_band(100), 1000, 0, 401, ONE_FREE), (401, "dead_band", 900, 500)),
    "a raise as large as the dead band happens": ((wide_band(100), 1000, 0, 400, ONE_FREE), (900, "target", 900, 500)),
    "a gated raise in the dead band waits": (
        (StepParameters(mode=Mode.STRICT, dead_band_percent=20), 1000, 0, 500, ONE_FREE),
        (500, "dead_band", 900, 500),
    ),
    "the dead band does not hold a fall": ((wide_band(100), 1000, 1, 101, ONE_FREE), (100, "target", 100, 500)),
    # three of four silent
    "among the silent nobody exceeds its safe share": (
        (FAST, 1000, 0, 700, view(active(0, 900, 700), active(1, 100, 9), *[outside(b, unheard=8) for b in (2, 3, 4)])),
        (500, "fenced", 900, 500),
    ),
    "half of the members is enough to go on": (
        (
            FAST,
            1000,
            0,
            900,
            view(active(0, 900, 900), active(1, 100, 9), outside(2, unheard=8), outside(3, unheard=8)),
        ),
        (900, "target", 900, 500),
    ),
    "the fence leaves what is below the safe share": (
        (FAST, 1000, 1, 700, view(active(0, 900, 700), active(1, 100, 9), *[outside(b, unheard=8) for b in (2, 3, 4)])),
        (100, "target", 100, 500),
    ),
    "nobody falls below the floor": (
        (FAST, 1000, 1, 500, view(active(0, 1000, 500), active(1, 0, 500, idle=True), *IDLE_TWO)),
        (12, "floor", 0, 500),
    ),
    "the floor is by weight over all members": (
        (FAST, 1000, 1, 9, view(active(0, 1000, 9), active(1, 0, 9, idle=True, weight=3), outside(2, weight=4))),
        (18, "floor", 0, 750),
    ),
    "without a floor 0 is 0": (
        (StepParameters(floor_percent=0), 1000, 1, 9, view(active(0, 1000, 9), active(1, 0, 9, idle=True))),
        (0, "target", 0, 500),
    ),
    "texts of PIP-82 look at M": (
        (PIP82, 1000, 0, 500, view(active(0, 900, 500, admitted=300), active(1, 90, 500, admitted=100), *IDLE_TWO)),
        (750, "profile", 750, 500),
    ),
    "texts of PIP-82 keep the floor": (
        (PIP82, 1000, 1, 500, view(active(0, 900, 500, admitted=300), active(1, 0, 500, idle=True), *IDLE_TWO)),
        (12, "profile", 0, 500),
    ),
    "the released profile rescales what was admitted": (
        (
            PULSAR,
            100,
            0,
            9,
            view(active(0, 9, 9, admitted=10), active(1, 9, 9, admitted=50), active(2, 9, 9, admitted=30)),
        ),
        (11, "profile", 11, 34),
    ),
    "the released profile counts rows outside M": (
        (PULSAR, 100, 0, 9, view(active(0, 9, 9, admitted=10), outside(1, row=CellRow(E, 10, 10, 9, idle=False)))),
        (50, "profile", 50, 100),
    ),
    "the released profile gives a member without a row 1": (
        (PULSAR, 100, 1, 9, view(active(0, 9, 9, admitted=10), outside(1))),
        (1, "profile", 1, 0),
    ),
    "the released profile gives the quota where nobody used anything": (
        (PULSAR, 100, 1, 9, view(outside(0), outside(1))),
        (100, "profile", 100, 0),
    ),
    "a quota above the largest rate is the largest": (
        (FAST, 2**63 - 1, 0, 5, view(active(0, None, 5))),
        (RATE_MAX, "target", RATE_MAX, RATE_MAX),
    ),
}


@pytest.mark.parametrize(("call", "expected"), STEPS.values(), ids=STEPS)
def test_step(call, expected):
    outcome = step(*call)

    assert expected == (outcome.limit, outcome.reason, outcome.target, outcome.safe_share)


NOTHING_HEARD = view(active(0, 900, 700, behind=8), active(1, 100, 9, behind=9), outside(2, unheard=50))


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("present", [None, 0, 3, 500, 1000])
def test_where_nothing_was_read_for_long_every_active_broker_has_its_safe_share(profile, mode, present):
    parameters = StepParameters(profile=profile, mode=mode)

    assert [500, 500] == [step(parameters, 1000, broker, present, NOTHING_HEARD).limit for broker in (0, 1)]
    assert step(parameters, 1000, 2, present, NOTHING_HEARD).reason == "entry"


def test_a_profile_and_a_mode_are_known_by_their_names():
    named = StepParameters("pulsar", "strict")

    assert named.profile is Profile.PULSAR
    assert named.mode is Mode.STRICT


def test_an_outcome_says_on_what_it_rests():
    seen = view(active(0, None, 500), active(1, 100, 500, behind=9), outside(2, unheard=3))

    assert CellLimit(
        limit=500, target=500, safe_share=500, demand=None, missing=2, silent=1, report_age=9, reason="target"
    ) == step(FAST, 1000, 0, 500, seen)
    assert step(FAST, 1000, 1, 500, seen).demand == 500
    assert step(FAST, 1000, 2, 500, seen).demand == 0
    assert step(FAST, None, 2, 500, seen).report_age == 9


def test_a_product_of_two_rates_is_exact():
    seen = view(active(0, RATE_MAX, RATE_MAX // 2), active(1, 0, RATE_MAX // 2, idle=True))
    free = RATE_MAX * 105 // 100 - 2 * (RATE_MAX // 2)
    claims = RATE_MAX - RATE_MAX // 2

    assert RATE_MAX // 2 + claims * free // claims == step(STRICT, RATE_MAX, 0, 5, seen).limit


def test_the_first_limit_is_the_cluster_share_and_in_the_released_profile_the_quota():
    weights = {1: 1, 2: 2, 9: 1}

    assert [250, 500, 250] == [first_limit(FAST, 1000, broker, weights).limit for broker in weights]
    assert first_limit(FAST, 1000, 1, weights).reason == "cluster_share"
    assert [1000] * 3 == [first_limit(PULSAR, 1000, broker, weights).limit for broker in weights]
    assert (None, "unset") == (
        first_limit(PULSAR, None, 1, weights).limit,
        first_limit(PULSAR, None, 1, weights).reason,
    )
    assert (0, "blocked") == (first_limit(FAST, 0, 1, weights).limit, first_limit(PULSAR, 0, 1, weights).reason)


@pytest.mark.parametrize(
    ("quota", "limit", "reason"), [(10, 3, "no_transport"), (0, 0, "blocked"), (None, None, "unset")]
)
def test_without_transport_each_has_an_equal_part(quota, limit, reason):
    outcome = limit_without_transport(quota, 3)

    assert (limit, reason) == (outcome.limit, outcome.reason)


def test_a_first_limit_where_others_share_the_quota_is_the_floor_and_in_the_released_profile_the_quota():
    found = [first_limit(parameters, 1000, 1, {0: 1, 1: 3}, is_shared_out=True) for parameters in (FAST, PIP82, PULSAR)]

    assert [(37, 0), (37, 0), (1000, 1000)] == [(one.limit, one.target) for one in found]


def test_without_transport_the_number_of_brokers_is_needed():
    with pytest.raises(InvalidArgument, match="broker_count"):
        limit_without_transport(10, 0)


def test_coupled_cells_hand_back_what_the_other_dimension_binds():
    messages = view(active(0, 900, 500), active(1, 900, 500))
    of_bytes = view(active(0, 900_000, 50_000), active(1, 9000, 50_000))
    coupled = assess_coupled(FAST, (1000, 100_000), (messages, of_bytes))

    assert [96, 904] == [decide(FAST, coupled[0], broker, None).limit for broker in (0, 1)]
    assert [95_000, 5000] == [decide(FAST, coupled[1], broker, None).limit for broker in (0, 1)]
    assert decide(FAST, coupled[0], 0, None).demand == 91


@pytest.mark.parametrize(("parameters", "quotas"), [(FAST, (1000, None)), (PIP82, (1000, 100_000))])
def test_cells_stay_independent_without_both_quotas_or_demand(parameters, quotas):
    messages = view(active(0, 900, 500, admitted=400), active(1, 900, 500, admitted=400))
    of_bytes = view(active(0, 900_000, 5, admitted=9), active(1, 9000, 5, admitted=9))
    coupled = assess_coupled(parameters, quotas, (messages, of_bytes))

    assert decide(parameters, coupled[0], 0, 500) == step(parameters, quotas[0], 0, 500, messages)
    assert decide(parameters, coupled[1], 1, 500) == step(parameters, quotas[1], 1, 500, of_bytes)


def test_members_alone_are_evaluated():
    with pytest.raises(InvalidArgument, match="broker_id"):
        step(FAST, 1000, 9, None, TWO_BUSY)


def test_an_active_member_has_a_row():
    with pytest.raises(InvalidArgument, match="without a row"):
        step(FAST, 1000, 0, None, view(CellMember(0, 1, E, missing=False, active=True, row=None)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"floor_percent": 101},
        {"overshoot_percent": -1},
        {"dead_band_percent": 1.0},
        {"silent_rounds": 0},
        {"mode": "slow"},
    ],
)
def test_parameters_outside_their_range_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        StepParameters(**wrong)
