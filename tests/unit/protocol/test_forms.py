"""Both forms tell the same: decisions, counts, dead letters and state (throttle-protocol 7, 15)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.protocol.settings import BrokerSettings
from headgate.protocol import array_form
from headgate.protocol.array_form import run_arrays
from headgate.protocol.plain import read
from unit.core.protocol.broker import WAIT
from unit.core.protocol.broker_traces import KEYS
from unit.protocol import runs, traffic
from unit.protocol.runs import BOTH, OBEDIENT, RULES, batch, run, trip
from unit.protocol.test_split import batches_of, both, time_of

quick = settings(max_examples=examples(80))
SILENT = st.sampled_from([0, 0, 1, 99, 300])
cuts_of = st.lists(st.integers(0, 99), max_size=6)


def picture(state):
    """Each connection as plain data, whatever places its parts have."""
    return {name: _plain(*read(state, place)) for place, name in enumerate(state.connection.to_pylist())}


def _plain(numbers, numbering, connection):
    """Without the zeros of what never was, and in an order."""
    if connection is None:
        return numbers
    told = connection | {"conditions": sorted(row for row in connection["conditions"] if any(row[1:]))}
    for producer in told["producers"]:
        producer["ordinals"] = [row for row in producer["ordinals"] if any(row[1:])]
    counts = [row for row in numbering["counts"] if any(row[2:])]
    conditions = sorted(row for row in numbering["conditions"] if any(row[1:]))
    return numbers, told, sorted(numbering["ids"], key=str), counts, conditions


def assert_equal(batches, rules):
    batches = list(batches)
    expected, actual = run(batches, rules), run(batches, rules, form=run_arrays)
    assert expected[:4] == actual[:4]
    assert picture(expected.state) == picture(actual.state)
    assert sorted(expected.state.due_ms.tolist()) == sorted(actual.state.due_ms.tolist())
    assert expected.state.kept == actual.state.kept
    return actual


@quick
@given(both, cuts_of, st.sampled_from([BOTH, RULES, OBEDIENT]), KEYS, SILENT)
def test_inputs_and_marks_in_any_batches(rows, cuts, rules, keys, silent_ms):
    inputs = [] if rules is OBEDIENT else rows[0]
    marks = [] if rules is RULES else rows[1]
    whole = sorted([*inputs, *marks], key=time_of)
    if whole:
        assert_equal(batches_of(whole, cuts), replace(rules, settings=BrokerSettings.of(keys), silent_ms=silent_ms))


@pytest.mark.parametrize("seed", range(4))
def test_traffic_of_many_connections(seed):
    rows = traffic.inputs(seed, 20, 1000, 3000)
    keys = {"freeze_deadlines": seed % 2 == 0, WAIT: (100, 30)[seed // 2]}
    rules = replace(RULES, settings=BrokerSettings.of(keys))
    assert_equal(batches_of(rows, [300, 400, 800]), rules)


def test_pools_grow_with_what_time_brings(monkeypatch):
    """A limiter that holds for long makes a command every ms, whose receipts nobody sends in time, or are queued."""
    monkeypatch.setattr(array_form, "_SPARE", 8)
    named = [{"producer_id": id_, "topic": runs.TOPIC, "producer": f"p{id_}"} for id_ in range(3)]
    opened = [runs.given("connect", 0, supports_throttle=True), *(runs.given("open", 0, **name) for name in named)]
    marked = [runs.given("mark", 1, producer_id=id_, trips=[trip(0, 1, (-1, 1000))]) for id_ in range(3)]
    rules = replace(RULES, settings=BrokerSettings(receipt_wait_ms=400, idle_extension_ms=1))
    told = assert_equal([batch([*opened, *marked], finish_ms=1), batch(finish_ms=700)], rules)
    marks = [runs.mark_row(0, producer=f"p{id_}") for id_ in range(3)]
    marks.append(runs.mark_row(5, type_="ConnectionOutboundBufferFull"))
    obeyed = assert_equal([batch((), marks, finish_ms=700)], replace(OBEDIENT, settings=rules.settings))

    assert len(told.decisions) > 900
    assert len(obeyed.state.machines["queued"]["request_id"]) > 100


@pytest.mark.parametrize("seed", range(2))
def test_marks_of_obedient_clients(seed):
    assert_equal(batches_of(traffic.marks(seed, 20, 800, 3000), [300, 400, 900]), OBEDIENT)
