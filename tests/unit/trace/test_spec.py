"""A TraceSpec is checked as a whole: every mistake, each with what, got and allowed."""

import argparse
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headgate.errors import ConfError
from headgate.trace import TraceSpec, add_options, spec_from


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(arguments)


def test_defaults_are_the_bundled_trace():
    spec = TraceSpec()
    expected = (60_000, 120.0, 3, 5, 60, 12, 500.0)
    assert expected == (
        spec.events,
        spec.duration_s,
        spec.brokers,
        spec.tenants,
        spec.topics,
        spec.files,
        spec.rate_per_s,
    )


def test_a_spec_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        TraceSpec().seed = 8


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seed", -1, "seed: got -1, allowed a whole number from 0 to 9223372036854775807 (seed of all draws)"),
        ("topics", 0, "topics: got 0, allowed a whole number from 1 to 1000000 (topics in all)"),
        ("topics", 1_000_001, "topics: got 1000001, allowed a whole number from 1 to 1000000 (topics in all)"),
        ("brokers", 2.0, "brokers: got 2.0, allowed a whole number from 1 to 1000 (brokers)"),
        ("brokers", True, "brokers: got True, allowed a whole number from 1 to 1000 (brokers)"),
        ("batch_mean", "4", "batch_mean: got '4', allowed a number from 1.0 to 1000.0 (mean messages per publish)"),
        ("zipf", float("nan"), "zipf: got nan, allowed a number from 0.0 to 5.0"),
        ("duration_s", float("inf"), "duration_s: got inf, allowed a number from 1.0 to 31622400.0"),
        ("bad_share", 0.51, "bad_share: got 0.51, allowed a number from 0.0 to 0.5"),
        ("start", datetime(2026, 1, 5, 9), "start: got 2026-01-05T09:00:00, allowed a time with zone from 1970-01-01"),  # noqa: DTZ001
        ("start", datetime(1969, 12, 31, tzinfo=UTC), "start: got 1969-12-31T00:00:00+00:00, allowed a time with zone"),
        ("start", "2026-01-05", "start: got '2026-01-05', allowed a time with zone"),
    ],
)
def test_a_field_outside_its_range_is_refused_with_what_got_and_allowed(field, value, message):
    with pytest.raises(ConfError) as error:
        TraceSpec(**{field: value})
    (mistake,) = error.value.mistakes
    assert mistake.startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"events": 3}, "files: got 12, allowed at most one per event, 3"),
        ({"noisy_share": 0.9}, "noisy_share + burst_share: got 0.96, allowed at most 0.95 together"),
        (
            {"dispatch_share": 0.5, "subscribe_share": 0.4, "unload_share": 0.2},
            "dispatch_share + subscribe_share + unload_share + connection_share: got 1.1, allowed at most 1 together",
        ),
        ({"bursts": 241}, "bursts x burst_ms: got 241 x 500 ms, allowed at most duration_s, 120 s, in all"),
        ({"duration_s": 20_000.0, "swing_period_s": 1.0}, "swing_period_s: got 1, allowed at least duration_s / 10000"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(given, message):
    with pytest.raises(ConfError) as error:
        TraceSpec(**given)
    (mistake,) = error.value.mistakes
    assert mistake.startswith(message)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ConfError) as error:
        TraceSpec(seed=-1, topics=0, zipf=-0.1)
    expected = ["seed", "topics", "zipf"]
    assert expected == [mistake.split(":")[0] for mistake in error.value.mistakes]


def test_start_counts_in_utc_whatever_its_zone():
    plus_two = timezone(timedelta(hours=2))
    assert TraceSpec().start_us == TraceSpec(start=datetime(2026, 1, 5, 11, tzinfo=plus_two)).start_us


def test_every_field_has_an_option_and_none_given_means_the_defaults():
    options = parsed()
    assert {*(spec_field.name for spec_field in fields(TraceSpec)), "rate"} == set(vars(options))
    assert TraceSpec() == spec_from(options)


def test_options_reach_their_fields():
    options = parsed("--seed", "3", "--zipf", "0", "--burst-ms", "20", "--start", "2026-03-01T00:00:00Z")
    expected = TraceSpec(seed=3, zipf=0.0, burst_ms=20, start=datetime(2026, 3, 1, tzinfo=UTC))
    assert expected == spec_from(options)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (["--events", "1200"], (1_200, 120.0)),
        (["--rate", "10"], (1_200, 120.0)),
        (["--duration-s", "60"], (30_000, 60.0)),
        (["--events", "1200", "--duration-s", "60"], (1_200, 60.0)),
        (["--rate", "10", "--duration-s", "60"], (600, 60.0)),
        (["--rate", "10", "--events", "600"], (600, 60.0)),
    ],
)
def test_two_of_events_rate_and_duration_decide_the_third(arguments, size):
    spec = spec_from(parsed(*arguments))
    assert size == (spec.events, spec.duration_s)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "0"], "rate: got 0, allowed a number above 0"),
        (["--rate", "nan"], "rate: got nan, allowed a number above 0"),
        (["--rate", "5", "--events", "60", "--duration-s", "9"], "rate: got --events, --rate and --duration-s"),
        (["--duration-s", "inf"], "duration_s: got inf"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ConfError, match=message):
        spec_from(parsed(*arguments))


def test_a_start_that_is_no_time_is_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit):
        parsed("--start", "noon")
    assert "got 'noon', allowed an ISO 8601 time with zone such as 2026-01-05T09:00:00Z" in capsys.readouterr().err
