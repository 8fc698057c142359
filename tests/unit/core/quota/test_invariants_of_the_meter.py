"""The meter gives the same rows however its input is cut, and its state can be stored between any two operations."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.quota.usage.meter import UsageMeter
from headgate.core.quota.usage.reports import ReportParameters
from headgate.core.quota.usage.usage_map import MapParameters, Member, UsageMap
from headgate.core.quota.usage.usage_report import MeterParameters
from headgate.core.quota.usage.usage_row import UsageRow

KEYS = [(1, 0), (1, 1), (2, 0)]
START_MS = 10_000
quick = settings(max_examples=examples(60))

parameter_sets = st.builds(
    MeterParameters,
    epoch_ms=st.sampled_from([1000, 250, 30]),
    grace_ms=st.sampled_from([0, 70, 300]),
    demand_visible=st.booleans(),
    report=st.builds(
        ReportParameters,
        suppress_rounds=st.sampled_from([5, 2, 0, -1]),
        event_min_interval_ms=st.sampled_from([100, 70, 400]),
    ),
)
pairs = st.tuples(st.integers(0, 40), st.integers(0, 4000))
gaps_ms = st.one_of(st.integers(0, 300), st.sampled_from([0, 1000, 5000]))
operations = st.lists(
    st.tuples(
        gaps_ms,
        st.sampled_from(KEYS),
        st.one_of(
            st.tuples(st.just("count"), pairs, pairs),
            st.tuples(st.just("wait"), st.integers(0, 1500), st.tuples(st.booleans(), st.booleans())),
            st.tuples(st.just("limit"), st.tuples(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100))),
        ),
    ),
    min_size=1,
    max_size=25,
)


def perform(meter, operation, key, at_ms):
    match operation:
        case "count", admitted, offered:
            meter.count(key, at_ms, admitted, offered)
        case "wait", length_ms, flags:
            meter.hold_back(key, at_ms, at_ms + length_ms, flags)
        case "limit", limit:
            meter.set_limit(key, at_ms, limit)


def timed(steps):
    at_ms = START_MS
    for gap_ms, key, operation in steps:
        at_ms += gap_ms
        yield at_ms, key, operation


def rows_of(cuts):
    """Everything but seqs and heartbeats: empty epochs may close one by one or together."""
    return [(cut.epoch, cut.kind, cut.at_ms, cut.rows) for cut in cuts if cut.rows]


def covered(cuts):
    return max((cut.epoch for cut in cuts if cut.closes_epoch), default=None)


@quick
@given(parameter_sets, operations)
def test_rows_do_not_depend_on_how_often_time_is_told(parameters, steps):
    at_once, step_by_step = (UsageMeter(parameters, created_ms=START_MS) for _ in range(2))
    cuts, end_ms = [], START_MS
    for at_ms, key, operation in timed(steps):
        cuts += step_by_step.advance(at_ms)
        perform(step_by_step, operation, key, at_ms)
        perform(at_once, operation, key, at_ms)
        end_ms = at_ms
    for later_ms in range(end_ms, end_ms + 5000, 130):
        cuts += step_by_step.advance(later_ms)
    end_ms += 5000
    cuts += step_by_step.advance(end_ms)
    cuts_at_once = at_once.advance(end_ms)

    assert rows_of(cuts_at_once) == rows_of(cuts)
    assert covered(cuts_at_once) == covered(cuts)
    assert (at_once.next_epoch, at_once.clock_ms) == (step_by_step.next_epoch, step_by_step.clock_ms)


@quick
@given(parameter_sets, operations)
def test_state_is_plain_and_round_trips_between_any_two_operations(parameters, steps):
    kept = stored = UsageMeter(parameters, created_ms=START_MS)
    stored = UsageMeter.from_state(kept.state(), parameters)
    for at_ms, key, operation in timed(steps):
        for meter in (kept, stored):
            perform(meter, operation, key, at_ms)
        assert kept.advance(at_ms, config_version=1) == stored.advance(at_ms, config_version=1)
        stored = UsageMeter.from_state(json.loads(json.dumps(stored.state(), allow_nan=False)), parameters)
        assert kept.state() == stored.state()


@quick
@given(parameter_sets, operations)
def test_seqs_count_cuts_and_heartbeats_cover_epoch_after_epoch(parameters, steps):
    meter = UsageMeter(parameters, created_ms=START_MS)
    cuts = []
    for at_ms, key, operation in timed(steps):
        perform(meter, operation, key, at_ms)
        cuts += meter.advance(at_ms)
    closed = [cut.epoch for cut in cuts if cut.closes_epoch]

    assert list(range(1, len(cuts) + 1)) == [cut.seq for cut in cuts]
    assert sorted(set(closed)) == closed
    assert all(cut.rows for cut in cuts if not cut.closes_epoch)


@quick
@given(st.integers(1, 4), operations)
def test_a_reader_of_all_cuts_knows_the_last_usage_within_the_tolerance(rounds, steps):
    parameters = MeterParameters(report=ReportParameters(suppress_rounds=rounds))
    meter, reader = UsageMeter(parameters, created_ms=START_MS), UsageMap(MapParameters(stale_ms=10**6))
    reader.set_members({1: Member(1)}, START_MS)
    for at_ms, key, operation in timed(steps):
        perform(meter, operation, key, at_ms)
        for cut in meter.advance(at_ms):
            for row in cut.rows:
                usage = row.usage
                reader.receive(
                    UsageRow(
                        1,
                        1,
                        cut.seq,
                        cut.epoch,
                        cut.at_ms,
                        row.group_id,
                        row.traffic_class,
                        cut.kind,
                        usage.admitted,
                        usage.offered,
                        usage.limit,
                        usage.throttled,
                    ),
                    cut.at_ms,
                )

    assert {} == reader.dropped
    for key in meter.measured_keys():
        last = meter._counts[key].last
        known = reader.entries().get(key, {}).get(1)
        assert (last is None or last.measured.usage.idle) is (known is None)
        if known is not None:
            assert (last.epoch, last.measured.usage.admitted) == (known.epoch, known.usage.admitted)
