"""The meter: counts in, cuts of rows and heartbeats out, step by step (resource-groups 6)."""

import pytest

from headgate.core.quota.usage.meter import UsageMeter
from headgate.core.quota.usage.reports import ReportParameters
from headgate.core.quota.usage.usage import NOTHING, Usage
from headgate.core.quota.usage.usage_report import MeterParameters, ReportKind, ReportRow, UsageReport
from headgate.errors import InvalidArgument, StateError

KEY = (7, 0)
OTHER = (3, 1)
CLOSES_ALONE = ReportParameters(event_min_interval_ms=10**9)
RELEASED = ReportParameters(rule="pulsar")


def meter(report=CLOSES_ALONE, **parameters):
    return UsageMeter(MeterParameters(report=report, **parameters), created_ms=10_000)


def seen(cuts):
    """What a cut is about: epoch, kind, heartbeat, and the reason of each row by key."""
    return [
        (
            cut.epoch,
            cut.kind.name,
            cut.closes_epoch,
            {(row.group_id, row.traffic_class): row.reason for row in cut.rows},
        )
        for cut in cuts
    ]


def usages(cuts):
    return [row.usage for cut in cuts for row in cut.rows]


def test_an_epoch_closes_when_the_clock_reaches_its_end_with_a_row_and_a_heartbeat():
    broker = meter()
    broker.count(KEY, 10_000, (3, 300), (3, 300))
    broker.count(KEY, 10_999, (1, 100), (2, 200))

    assert [] == broker.advance(10_999)
    assert [
        UsageReport(
            seq=1,
            epoch=10,
            kind=ReportKind.PERIODIC,
            closes_epoch=True,
            at_ms=11_000,
            config_version=5,
            rows=(ReportRow(7, 0, Usage((4, 400), (8, 800)), "first"),),
        )
    ] == broker.advance(11_000, config_version=5)


def test_rows_of_a_cut_are_in_the_order_of_group_and_class():
    broker = meter()
    for key in [(7, 1), (7, 0), (3, 1)]:
        broker.count(key, 10_000, (1, 1), (1, 1))

    assert [(3, 1), (7, 0), (7, 1)] == [(row.group_id, row.traffic_class) for row in broker.advance(11_000)[0].rows]


def test_steady_usage_is_reported_once_in_r_epochs_and_an_end_at_once():
    broker = meter()
    for second in range(10, 18):
        broker.count(KEY, second * 1000, (100, 1000), (100, 1000))

    assert [{KEY: "first"}, {}, {}, {}, {}, {KEY: "mandatory"}, {}, {}, {KEY: "zero"}] == [
        rows for _, _, _, rows in seen(broker.advance(19_000))
    ]
    assert 6 == broker.suppressed


def test_epochs_without_anything_to_say_close_in_one_cut():
    broker = meter()
    broker.count(KEY, 10_000, (1, 1), (1, 1))

    assert [
        (10, "PERIODIC", True, {KEY: "first"}),
        (11, "PERIODIC", True, {KEY: "zero"}),
        (10_000_000, "PERIODIC", True, {}),
    ] == seen(broker.advance(10_000_001_000))


def test_a_long_time_without_usage_before_some_is_passed_over_as_well():
    broker = meter(ReportParameters())
    broker.count(KEY, 5_000_000_000, (1, 1), (1, 1))
    cuts = broker.advance(5_000_001_000)

    assert (4_999_999, "PERIODIC", True, {}) == seen(cuts)[0]
    assert (5_000_000, "EVENT", False, {KEY: "first"}) == seen(cuts)[1]
    assert 5 > len(cuts)


def test_with_grace_late_events_count_in_their_epoch_and_later_ones_in_the_one_then_open():
    broker = meter(grace_ms=200)
    broker.count(KEY, 11_100, (1, 1), (1, 1))
    broker.advance(11_100)
    broker.count(KEY, 10_900, (10, 10), (10, 10))

    assert [Usage((10, 10), (40, 40))] == usages(broker.advance(11_200))

    broker.count(KEY, 10_900, (100, 100), (100, 100))

    assert [Usage((101, 101), (101, 101))] == usages(broker.advance(12_200))


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "throttled"),
    [
        (10_000, 10_000, [True, False, False]),
        (10_999, 10_999, [True, False, False]),
        (11_000, 11_000, [False, True, False]),
        (10_500, 11_000, [True, False, False]),
        (10_500, 11_001, [True, True, False]),
        (10_500, 12_500, [True, True, True]),
    ],
)
def test_an_epoch_in_which_something_was_refused_or_waited_is_throttled(from_ms, until_ms, throttled):
    broker = meter()
    for second in (10, 11, 12):
        broker.count(KEY, second * 1000, (100 * second**3, 1), (0, 0))
    broker.hold_back(KEY, from_ms, until_ms, (False, True))

    assert [(False, flag) for flag in throttled] == [usage.throttled for usage in usages(broker.advance(13_000))]


def test_a_wait_that_is_told_in_pieces_is_one_wait():
    broker = meter()
    broker.hold_back(KEY, 10_100, 10_400, (True, False))
    broker.hold_back(KEY, 10_400, 11_400, (True, False))
    broker.hold_back(KEY, 11_300, 11_300, (False, True))

    assert [(True, False), (True, True), (False, False)] == [
        usage.throttled for usage in usages(broker.advance(13_000))
    ]


def test_a_row_holds_the_limit_in_force_at_the_end_of_its_epoch():
    broker = meter()
    broker.set_limit(KEY, 10_100, (50, None))
    broker.set_limit(KEY, 11_000, (2**60, 0))
    for second in (10, 11):
        broker.count(KEY, second * 1000, (100, 100), (100, 100))

    assert [(50, None), (2**53 - 1, 0)] == [usage.limit for usage in usages(broker.advance(12_000))]


def test_without_visible_demand_offered_is_null():
    broker = meter(demand_visible=False)
    broker.count(KEY, 10_000, (100, 100), (500, 500))

    assert [Usage((100, 100), (None, None))] == usages(broker.advance(11_000))


def test_an_early_cut_holds_rates_over_the_last_t_in_the_current_epoch_without_a_heartbeat():
    broker = meter(ReportParameters())
    broker.count(KEY, 10_310, (10, 10), (10, 10))

    assert [] == broker.advance(10_399)
    assert [(10, "EVENT", False, {KEY: "first"})] == seen(broker.advance(10_400))
    assert [Usage((10, 10), (40, 40))] == [broker._counts[KEY].last.measured.usage]


def test_demand_that_moved_is_cut_early_and_not_twice():
    broker = meter(ReportParameters())
    for at_ms in range(10_000, 14_000, 50):
        broker.count(KEY, at_ms, (5, 50), (5, 50))
    broker.advance(12_000)
    for at_ms in range(12_000, 12_200, 50):
        broker.count(KEY, at_ms, (20, 200), (20, 200))

    cuts = broker.advance(12_200)

    assert [(12, "EVENT", False, {KEY: "change"})] * 2 == seen(cuts)
    assert [(140, 1400), (180, 1800)] == [usage.admitted for usage in usages(cuts)]


def test_between_two_rows_of_a_key_lies_the_least_interval_but_not_before_a_leave():
    broker = meter(ReportParameters(event_min_interval_ms=300))
    broker.count(KEY, 10_950, (10, 10), (10, 10))

    assert [11_000] == [cut.at_ms for cut in broker.advance(11_299)]
    assert [(11, "LEAVE", False, {KEY: "leave"})] == seen(broker.leave([KEY]))


def test_who_leaves_is_forgotten_and_begins_anew():
    broker = meter()
    broker.count(KEY, 10_000, (1, 1), (1, 1))
    broker.count(OTHER, 10_000, (1, 1), (1, 1))
    broker.advance(11_000)
    broker.count(KEY, 11_000, (1, 1), (1, 1))

    (cut,) = broker.leave([KEY, (9, 0)], config_version=3)

    assert (2, ReportKind.LEAVE, False, 3, (ReportRow(7, 0, NOTHING, "leave"),)) == (
        cut.seq,
        cut.kind,
        cut.closes_epoch,
        cut.config_version,
        cut.rows,
    )
    assert [OTHER] == broker.measured_keys()
    broker.count(KEY, 11_500, (1, 1), (1, 1))
    assert {KEY: "first", OTHER: "zero"} == seen(broker.advance(12_000))[0][3]


def test_nobody_is_told_of_a_leave_who_was_told_of_no_usage():
    broker = meter()
    broker.count(KEY, 10_000, (1, 1), (1, 1))

    assert [] == broker.leave([KEY])
    assert [] == broker.leave_all()


def test_leaving_all_is_one_cut_without_rows():
    broker = meter()
    broker.count(KEY, 10_000, (1, 1), (1, 1))
    broker.advance(11_000)

    assert [(11, "LEAVE", False, {})] == seen(broker.leave_all())
    assert [] == broker.measured_keys()


def test_a_new_incarnation_counts_its_cuts_from_1_and_says_everything_again():
    broker = meter()
    for second in (10, 11):
        broker.count(KEY, second * 1000, (1, 1), (1, 1))
    broker.advance(11_000)
    broker.restart()

    assert [(1, {KEY: "first"})] == [(cut.seq, seen([cut])[0][3]) for cut in broker.advance(12_000)]


def test_a_change_of_the_configuration_is_reported_at_once():
    broker = meter()
    for second in (10, 11):
        broker.count(KEY, second * 1000, (1, 1), (1, 1))
    broker.advance(11_000, config_version=1)

    assert {KEY: "config"} == seen(broker.advance(12_000, config_version=2))[0][3]


def test_the_released_rule_repeats_idle_rows_and_makes_no_early_cuts():
    broker = meter(RELEASED)
    broker.count(KEY, 10_000, (100, 100), (100, 100))

    assert [{KEY: "mandatory"}, {}, {}, {}, {}, {KEY: "mandatory"}] == [
        rows for _, _, _, rows in seen(broker.advance(16_000))
    ]
    assert 8 > len(broker.advance(10_000_000_000))


def test_an_earlier_time_changes_nothing():
    broker = meter()
    broker.advance(12_500)
    before = broker.state()

    assert [] == broker.advance(11_000)
    assert before == broker.state()


@pytest.mark.parametrize(
    "operation",
    [
        lambda broker: broker.count(KEY, 10_000, (-1, 0), (0, 0)),
        lambda broker: broker.count(KEY, 10_000, (0, 0), (0, -1)),
        lambda broker: broker.count(KEY, -1, (0, 0), (0, 0)),
        lambda broker: broker.count((0, 0), 10_000, (0, 0), (0, 0)),
        lambda broker: broker.count((1, 2), 10_000, (0, 0), (0, 0)),
        lambda broker: broker.hold_back(KEY, 10_000, 9_999, (True, True)),
        lambda broker: broker.set_limit(KEY, 10_000, (-1, None)),
        lambda broker: broker.advance(1.5),
        lambda broker: UsageMeter(broker.parameters, created_ms=-1),
    ],
)
def test_wrong_arguments_are_refused_and_change_nothing(operation):
    broker = meter()
    before = broker.state()

    with pytest.raises(InvalidArgument):
        operation(broker)
    assert before == broker.state()


@pytest.mark.parametrize("wrong", [{"epoch_ms": 0}, {"grace_ms": -1}, {"epoch_ms": 1.5}])
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidArgument):
        MeterParameters(**wrong)


def test_state_of_other_epochs_or_another_version_is_refused():
    state = meter().state()

    with pytest.raises(StateError, match="epochs of 1000 ms"):
        UsageMeter.from_state(state, MeterParameters(epoch_ms=500))
    with pytest.raises(StateError, match="missing"):
        UsageMeter.from_state({**state, "seq": 1, "more": 2} | {"clock": 1}, MeterParameters())


def test_other_intervals_may_be_given_to_stored_state():
    broker = meter()
    broker.count(KEY, 10_130, (5, 5), (5, 5))

    again = UsageMeter.from_state(broker.state(), MeterParameters(report=ReportParameters(event_min_interval_ms=40)))

    assert [Usage((5, 5), (20, 20))] == usages(again.advance(10_199))
