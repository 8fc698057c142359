"""Invariants I1 and I2 of rate-limiters 14, for every kind of object."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.core.traces import ALL_TRACES, pip322_traces, quick, run

KINDS = sorted(ALL_TRACES)
INSTANTS = {
    ("token_bucket", "refill_due"),
    ("clock", "observe"),
    ("clock", "update"),
    ("publish_limiter", "releases"),
    ("publish_limiter", "next_drain"),
    ("classic_window", "next_renewal"),
    ("unload_limiter", "unload"),
}


def stored_and_loaded(core):
    return type(core).from_state(json.loads(json.dumps(core.state(), allow_nan=False)))


def shifted_trace(trace, by_ns):
    config, ops = trace
    created = {"created_ns": config["created_ns"] + by_ns} if "created_ns" in config else {}
    return {**config, **created}, [{**operation, "at_ns": operation["at_ns"] + by_ns} for operation in ops]


def shifted_result(kind, operation, result, by_ns):
    if (kind, operation["op"]) not in INSTANTS or result is None or isinstance(result, dict):
        return result
    if operation["op"] == "releases":
        return [[at_ns + by_ns, *rest] for at_ns, *rest in result]
    if operation["op"] == "unload":
        return [result[0] + by_ns, result[1] + by_ns, result[2]]
    return result + by_ns


@pytest.mark.parametrize("kind", KINDS)
def test_i1_state_stored_and_loaded_between_any_two_operations_changes_no_result(kind):
    @quick
    @given(ALL_TRACES[kind])
    def holds(trace):
        assert run(kind, trace) == run(kind, trace, between=stored_and_loaded)

    holds()


@quick
@given(pip322_traces)
def test_i1_holds_for_the_profile_pip322(trace):
    assert run("token_bucket", trace) == run("token_bucket", trace, between=stored_and_loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_i1_state_is_a_copy_that_later_operations_do_not_change(kind):
    @quick
    @given(ALL_TRACES[kind])
    def holds(trace):
        kept = []

        def keep(core):
            state = core.state()
            kept.append((state, json.dumps(state)))
            return core

        run(kind, trace, between=keep)

        assert [text for _, text in kept] == [json.dumps(state) for state, _ in kept]

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_i2_a_shift_of_all_times_shifts_returned_instants_and_changes_nothing_else(kind):
    @quick
    @given(ALL_TRACES[kind], st.sampled_from([1, -(10**11), 10**15, 123_456_789]))
    def holds(trace, by_ns):
        expected = [
            shifted_result(kind, operation, result, by_ns)
            for operation, result in zip(trace[1], run(kind, trace), strict=True)
        ]

        assert expected == run(kind, shifted_trace(trace, by_ns))

    holds()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"token_bucket", "clock", "throttle_tracker"}])
def test_advance_between_operations_changes_no_result(kind):
    """At any time not after the next operation: section 3.1."""

    @quick
    @given(ALL_TRACES[kind], st.data())
    def holds(trace, data):
        config, ops = trace
        advanced, high_ns = [], config["created_ns"]
        for operation in ops:
            next_ns = max(high_ns, operation["at_ns"])
            advanced.append({"op": "advance", "at_ns": data.draw(st.integers(high_ns, next_ns))})
            advanced.append(operation)
            high_ns = next_ns

        assert run(kind, trace) == run(kind, (config, advanced))[1::2]

    holds()
