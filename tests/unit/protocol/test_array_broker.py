"""Single operations on arrays emit what readable machines emit, whatever fields hold (throttle-protocol 15)."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.adapters.protocol_broker import INPUTS, BrokerAdapter
from headgate.conformance.kernel_protocol_broker import ArrayBroker
from headgate.core.numbers import MAX, MIN
from unit.core.protocol.broker import WAIT
from unit.core.protocol.broker_traces import KEYS

quick = settings(max_examples=examples(25))
LARGE = {WAIT: MAX, "idle_extension_ms": MAX, "violation_slack_ms": MAX}
SETTINGS = st.one_of(KEYS, KEYS, st.just(LARGE), st.just(LARGE | {"extension_step_ms": MAX, WAIT: 50}))
KINDS = (*INPUTS, "mark", "mark", "mark", "mark", "unmark", "receipt", "receipt", "publish", "quote", "advance")
ODD = (None, True, "1", 1.0, -1, MAX, MAX - 1, MAX + 1, MIN, MIN - 1, 2**70, [])
NO_TIMES = (None, True, "1", 1.0, -1, MAX + 1, [])
REASONS = (0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 99)


def operations(draw, length):
    """Ops as vectors have them; few fields are odd, times near zero or near the largest."""
    at, made = draw.choice((0, 0, 0, MAX - 300)), []
    for conn in ("a", "b"):
        made.append({"op": "connect", "at": at, "conn": conn, "supports": draw.random() < 0.8})
        made += [{"op": "open", "at": at, "conn": conn, "producer": id_, "topic": f"t{id_}"} for id_ in (2, 0, 1)]
    for _ in range(length):
        at = min(MAX, max(0, at + draw.choice((0, 0, 0, 1, 5, 10, 30, 60, -9))))
        made.append(_operation(draw, at))
    return made


def _operation(draw, at):
    op = {
        "op": draw.choice(KINDS),
        "at": at,
        "conn": draw.choice("aaab"),
        "producer": draw.choice((0, 0, 1, 2, 3)),
        "topic": draw.choice(("t0", "t1", None)),
        "supports": draw.choice((True, False)),
        "reason": draw.choice(REASONS),
        "n": draw.randrange(1, 9),
        "req": draw.randrange(9),
        "buckets": _buckets(draw),
        "trips": [
            {"reason": reason, "n": draw.randrange(1, 9), "buckets": _buckets(draw)}
            for reason in draw.sample((0, 1), draw.choice((1, 1, 2)))
        ],
    }
    if draw.random() < 0.1:
        field = draw.choice(("at", "producer", "topic", "supports", "reason", "n", "req"))
        op[field] = draw.choice(NO_TIMES if field == "at" else ODD)
    if draw.random() < 0.05:
        op["trips"][0][draw.choice(("reason", "n", "buckets"))] = draw.choice(ODD)
    if draw.random() < 0.02:
        op["trips"] = draw.choice((None, [], op["trips"] * 2, op["trips"] * 3))
    if op["op"] == "close" and draw.random() < 0.7:
        op["op"] = "probe"
    return op


def _buckets(draw):
    pairs = [[draw.randrange(-60, 12), 1000], [draw.randrange(-9, 3), 10], [MIN, MAX], [MIN, 1], [-5, MAX], [MAX, 1]]
    pairs = draw.sample(pairs, len(pairs)) if draw.random() < 0.1 else pairs[:2]
    if draw.random() < 0.03:
        pairs[0] = draw.choice(([1], [1, 0], [None, 1], [2**63, 1], "ab", [True, 1], [1, 2**63]))
    return pairs[: draw.choice((1, 1, 1, 2, 2, 2, 2, 0 if draw.random() < 0.1 else 1, 3 if draw.random() < 0.1 else 1))]


def replayed(adapter, ops):
    return [adapter.perform(op["op"], {name: value for name, value in op.items() if name != "op"}) for op in ops]


@quick
@given(st.integers(0, 2**32), st.integers(1, 60), SETTINGS)
def test_operations_with_whatever_they_hold(seed, length, keys):
    ops = operations(Random(seed), length)
    ends = [{"op": "probe", "at": ops[-1]["at"], "conn": conn} for conn in "ab"] + [{"op": "metrics"}]
    readable, arrays = BrokerAdapter(keys), ArrayBroker(keys)
    for op in [*ops, *ends, {"op": "advance", "at": MAX if keys.get("idle_extension_ms") == MAX else 400}, *ends]:
        assert replayed(readable, [op]) == replayed(arrays, [op]), op


LARGEST = [
    # a million commands each, the most that one row can bring
    pytest.param(*case, marks=pytest.mark.long if case in {(MIN, MAX, 1), (MIN, MAX, 3)} else ())
    for case in product([MIN, -(10**12), 0, MAX], [0, 1, 10**12, MAX], [1, 3, 10**9, MAX])
]


@pytest.mark.parametrize(("balance", "passed_ms", "rate"), LARGEST)
def test_pauses_of_the_largest_numbers(balance, rate, passed_ms):
    opened = [{"op": "connect", "supports": True}, {"op": "open", "producer": 0, "topic": "t"}]
    marked = {"op": "mark", "producer": 0, "trips": [{"reason": 0, "n": 1, "buckets": [[-10, 1]]}]}
    quoted = {"op": "quote", "producer": 0, "reason": 0, "buckets": [[balance, rate]]}
    ops = [{"at": 0, "conn": "a"} | op for op in (*opened, marked, quoted)]
    ops += [{"op": op, "at": passed_ms, "conn": "a"} for op in ("publish", "probe")]
    keys = {WAIT: MAX, "idle_extension_ms": MAX}

    assert replayed(BrokerAdapter(keys), ops) == replayed(ArrayBroker(keys), ops)


@pytest.mark.parametrize(("doubles", "commands"), [(True, [1, 2, 4, 8]), (False, list(range(1, 11)))])
def test_a_burst_extends_by_doubling_where_it_is_to(doubles, commands):
    ops = [
        {"op": "connect", "at": 0, "conn": "a", "supports": True},
        {"op": "open", "at": 0, "conn": "a", "producer": 1, "topic": "t"},
    ]
    for n in range(1, 11):
        trip = {"reason": 0, "n": n, "buckets": [[10 - 10 * n, 1000]]}
        ops.append({"op": "mark", "at": 1, "conn": "a", "producer": 1, "trips": [trip]})
    for adapter in (ArrayBroker, BrokerAdapter):
        emitted = replayed(adapter({"doubling_extensions": doubles}), ops)[2:]
        assert [n for n, out in enumerate(emitted[:10], 1) if out] == commands
