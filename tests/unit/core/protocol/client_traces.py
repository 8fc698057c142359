"""Random inputs of a client: duplicated, out of order, late, over links that break."""

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.protocol.client.commands import ThrottleCommand

quick = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
thorough = settings(quick, max_examples=examples(150))

configs = st.fixed_dictionaries(
    {
        "producers": st.just({"1": "t1", "2": "t2"}),
        "send_timeout_ms": st.sampled_from([0, 60, 60, 200]),
        "throttled_percent": st.sampled_from([0, 50, 80, 100]),
        "fail_mode": st.sampled_from(["expired_only", "head_all"]),
        "zero_pause": st.sampled_from(["open_notice", "ignore"]),
        "drain_delay_ms": st.sampled_from([0, 0, 7]),
        "max_pending": st.sampled_from([0, 0, 3]),
        "clock_skew_ms": st.sampled_from([0, 5]),
        "notice_ttl_ms": st.sampled_from([20, 5000]),
        "enabled": st.sampled_from([True] * 9 + [False]),
    }
)
producers = st.sampled_from([1, 1, 1, 2, 2, 9])
messages = st.integers(0, 15).map(lambda number: f"m{number}")
frames = st.builds(
    ThrottleCommand,
    st.integers(0, 12),
    producers,
    st.sampled_from([0, 1, 2, 4, 7, None]),
    st.sampled_from([0, 0, 5, 30, 30, 60, 100, -1]),
)
ages_ms = st.one_of(st.none(), st.sampled_from([0, 15, 30, 60, -10]))
operations = st.one_of(
    st.tuples(st.just("throttle"), frames, ages_ms),
    st.tuples(st.just("throttle"), frames, ages_ms),
    st.tuples(st.just("send"), producers, messages),
    st.tuples(st.just("send"), producers, messages),
    st.tuples(st.just("send"), producers, messages),
    st.tuples(st.just("ack"), producers, messages),
    st.tuples(st.just("ack"), producers, messages),
    st.tuples(st.just("nack"), producers, messages),
    st.tuples(st.just("advance")),
    st.tuples(st.just("disconnect")),
    st.tuples(st.just("reconnect")),
    st.tuples(st.just("reconnect")),
    st.tuples(st.just("close"), st.sampled_from([1, 9])) | st.tuples(st.just("advance")),
)
steps_ms = st.sampled_from([0, 0, 0, 1, 1, 3, 5, 10, 30, 60, -10])


def _timed(moves):
    """Inputs (at_ms, name, *arguments)."""
    at_ms, inputs = 20, []
    for step_ms, (name, *arguments) in moves:
        at_ms = max(0, at_ms + step_ms)
        inputs.append((at_ms, name, *([_issued(*arguments, at_ms)] if name == "throttle" else arguments)))
    return inputs


def _issued(command, age_ms, at_ms):
    """A command with an age is a row, issued that long ago, at 0 at the earliest."""
    return command if age_ms is None else replace(command, issued_at_ms=max(0, at_ms - age_ms))


traces = st.lists(st.tuples(steps_ms, operations), min_size=10, max_size=50).map(_timed)
