"""Invariants 1 to 8 of throttle-protocol 18, on random inputs: late, repeated, out of order."""

import json

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import CloseProducer, Open, Publish, Receipt
from unit.core.protocol.broker import WAIT, metrics, opened, perform
from unit.core.protocol.broker_oracle import Oracle
from unit.core.protocol.broker_traces import (
    KEYS,
    LIMITERS,
    PRODUCERS,
    START,
    WITHOUT_CLOSES,
    made,
    on_time,
    thorough,
    traces,
)


def fresh(keys, *, supports=True):
    return opened(producers=PRODUCERS, supports=supports, at=START, **keys)


def played(connection, events):
    return [output for event in events for output in perform(connection, event)]


def after(events):
    """A time at which all windows that they opened ended or were extended."""
    return max(event.at_ms for event in events) + 200


def whole(events):
    """The inputs, and the time after them."""
    return [*events, after(events)]


def phases(connection):
    return {id_: one["state"] for id_, one in connection.view()["producers"].items()}


@thorough
@given(KEYS, st.booleans() | st.just(True), traces())
def test_outputs_states_and_counters_are_those_of_the_oracle(keys, supports, trace):
    connection, oracle = fresh(keys, supports=supports), Oracle(keys, supports=supports, at=START)
    for id_ in PRODUCERS:
        oracle.perform(Open(START, id_, f"t{id_}"))
    for event in whole(made(trace, keys)):
        assert perform(connection, event) == oracle.perform(event), event
        assert connection.view() == {
            "reads": oracle.reads(),
            "holds": sorted(oracle.holds),
            "queued": oracle.queue,
            "producers": {
                str(id_): {"state": one.state, "end": one.end, "held": one.held, "open": sorted(one.ids)}
                for id_, one in oracle.producers.items()
            },
        }

    assert metrics(connection).values() == {key: count for key, count in oracle.counts.items() if count}


@thorough
@given(KEYS, st.booleans(), traces())
def test_1_reads_are_off_exactly_while_a_producer_holds_or_a_condition_is_active(keys, supports, trace):
    connection, marked, cleared, reads = fresh(keys, supports=supports), {}, {}, "on"
    for event in made(trace, keys):
        for output in perform(connection, event):
            if output[0] in ("pause", "resume"):
                assert reads == ("on" if output[0] == "pause" else "off")
                reads = "off" if output[0] == "pause" else "on"
        if isinstance(event, inputs.ConditionSet):
            marked[event.reason] = max(event.ordinal, marked.get(event.reason, 0))
        if isinstance(event, inputs.ConditionClear):
            cleared[event.reason] = max(event.ordinal, cleared.get(event.reason, 0))
        is_held = any(n > cleared.get(reason, 0) for reason, n in marked.items()) or "P" in phases(connection).values()

        assert (reads, connection.view()["reads"]) == (("off", "off") if is_held else ("on", "on"))


@thorough
@given(KEYS, traces())
def test_2_no_id_stays_open_longer_than_the_wait(keys, trace):
    connection, age, wait = fresh(keys), {}, keys[WAIT]
    for event in made(trace, keys):
        for now in range(connection.now_ms, event.at_ms):
            connection.advance(now)
            view = connection.view()
            for id_ in {id_ for one in view["producers"].values() for id_ in one["open"]}:
                age[id_] = age.get(id_, 0) + (view["reads"] == "on" or not keys["freeze_deadlines"])
                assert age[id_] <= wait
        connection.feed(event)


@thorough
@given(KEYS, traces())
def test_3_a_connection_that_is_not_cooperative_gets_no_command(keys, trace):
    for connection in (fresh(keys, supports=False), fresh(keys | {WAIT: 0})):
        assert not [output for output in played(connection, whole(made(trace, keys))) if output[0] == "command"]


@thorough
@given(
    KEYS.map(lambda keys: keys | {WAIT: 30, "hard_floor_pause_ms": 0}),
    traces(LIMITERS),
    st.lists(st.integers(0, 30), min_size=1, max_size=7),
)
def test_4_if_every_command_is_answered_and_obeyed_reads_never_go_off(keys, trace, answer_ms):
    connection, events, answers, outputs = fresh(keys), on_time(trace, keys), [], []
    while events and connection.now_ms < START + 3000:
        due = connection.next_due_ms()
        soonest = min([events[0].at_ms, *(at for at, _ in answers), *([] if due is None else [due])])
        if answers and min(answers)[0] == soonest:
            at, id_ = min(answers)
            answers.remove((at, id_))
            emitted = perform(connection, Receipt(at, id_))
        elif events[0].at_ms == soonest:
            emitted = perform(connection, events.pop(0))
        else:
            emitted = perform(connection, soonest)
        outputs += emitted
        answers += [(out[1] + answer_ms[out[2] % len(answer_ms)], out[2]) for out in emitted if out[0] == "command"]

    assert {output[0] for output in outputs} <= {"command"}


@thorough
@given(KEYS, traces())
def test_5_request_ids_count_commands_and_an_announced_end_only_grows(keys, trace):
    connection, end = fresh(keys), {}
    commands = [output for output in played(connection, whole(made(trace, keys))) if output[0] == "command"]

    assert [request_id for _, _, request_id, *_ in commands] == list(range(1, len(commands) + 1))
    for _, at, _, producer, _, pause_ms, kind in commands:
        if kind == "extend":
            assert at + pause_ms > end[producer]
        if kind != "notice":
            end[producer] = at + pause_ms


@thorough
@given(KEYS, traces(WITHOUT_CLOSES), st.data())
def test_6_repeating_what_was_accepted_changes_no_output(keys, trace, data):
    events, issued, connection, repeatable = made(trace, keys), 0, fresh(keys), []
    for place, event in enumerate(events):
        emitted = perform(connection, event)
        issued_before, issued = issued, issued + sum(output[0] == "command" for output in emitted)
        commands_before_it = issued if isinstance(event, Receipt) else issued_before
        is_known = not isinstance(event, Receipt) or event.request_id <= commands_before_it
        if is_known and not isinstance(event, Publish | inputs.Quote):
            repeatable.append((place, event))
    if not repeatable:
        return
    place, event = data.draw(st.sampled_from(repeatable))
    later = data.draw(st.integers(place, len(events) - 1))

    repeated = [*events[: later + 1], event, *events[later + 1 :]]

    assert played(fresh(keys), whole(repeated)) == played(fresh(keys), whole(events))


@thorough
@given(KEYS, traces(), st.lists(st.integers(0, 400), max_size=12))
def test_7_outputs_do_not_depend_on_how_inputs_are_cut_into_batches(keys, trace, batches):
    events = on_time(trace, keys)
    connection, kept, outputs = fresh(keys), list(events), []
    for watermark in sorted({*(min(START + 4 * batch, after(events)) for batch in batches), after(events)}):
        due = [event for event in kept if event.at_ms <= watermark]
        kept = kept[len(due) :]
        outputs += played(connection, [*due, watermark])
        connection = Connection.from_state(json.loads(json.dumps(connection.state())), metrics(connection))

    undivided = fresh(keys)
    assert outputs == played(undivided, whole(events))
    assert (connection.state(), metrics(connection).values()) == (undivided.state(), metrics(undivided).values())


@thorough
@given(KEYS, st.booleans(), traces())
def test_8_a_hold_of_a_producer_ends_by_unmark_or_close_and_by_nothing_else(keys, supports, trace):
    connection = fresh(keys, supports=supports)
    for event in made(trace, keys):
        connection.feed(inputs.Probe(event.at_ms))
        before = phases(connection)
        connection.feed(event)
        after = phases(connection)
        let_go = {id_ for id_, phase in before.items() if phase == "P" and after.get(id_) != "P"}

        assert let_go <= ({str(event.producer)} if isinstance(event, inputs.Unmark | CloseProducer) else set())
