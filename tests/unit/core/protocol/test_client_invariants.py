"""Invariants 9 to 16 of throttle-protocol 18 over random inputs, and equality with the rules run ms by ms."""

from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.client.client_outputs import Done, Failed, Probe, Receipt, Rejected, Write
from headgate.core.protocol.client.partitioned import PartitionedProducer
from headgate.core.protocol.client.send_errors import SendError
from headgate.core.protocol.settings import ClientSettings, PartitionedSettings
from unit.core.protocol.client_steps import frame, machine_of, row, said
from unit.core.protocol.client_traces import configs, quick, thorough, traces
from unit.core.protocol.naive_client import NaiveClient

REFUSALS = {SendError.CLOSED, SendError.QUEUE_FULL}


class Played(NamedTuple):
    """An input, what it emitted, and the probes of the open producers after it."""

    name: str
    arguments: tuple
    outputs: list
    now_ms: int
    probes: dict


def fresh(config):
    return ClientMachine(ClientSettings.of(config))


def played(config, trace):
    """The trace on a machine. Before a send of an id that was used, the ms is completed: timers fire apart from it."""
    machine, used, journal = fresh(config), set(), []
    for at_ms, name, *arguments in trace:
        if name == "send" and tuple(arguments) in used:
            journal.append(_perform(machine, at_ms, "advance", ()))
        if name == "send":
            used.add(tuple(arguments))
        journal.append(_perform(machine, at_ms, name, tuple(arguments)))
    return journal


def _perform(machine, at_ms, name, arguments):
    outputs = getattr(machine, name)(*arguments, at_ms)
    probes = [machine.probe(producer, machine.now_ms)[0] for producer in (1, 2)]
    open_ones = {probe.producer_id: probe for probe in probes if isinstance(probe, Probe)}
    return Played(name, arguments, outputs, machine.now_ms, open_ones)


def is_refused(step):
    """Whether a send was refused: that comes last, after timers."""
    last = step.outputs[-1] if step.outputs else None
    if isinstance(last, Failed) and (last.producer_id, last.message_id) == step.arguments:
        return last.error in REFUSALS or (last.detail is not None and last.detail.immediate)
    return isinstance(last, Rejected)


def lives(journal):
    """The writes and the ends of every accepted message; every output belongs to one of them."""
    live, accepted = {}, []
    for step in journal:
        outputs = step.outputs
        if step.name == "send" and is_refused(step):
            outputs = outputs[:-1]
        elif step.name == "send":
            assert step.arguments not in live
            live[step.arguments] = ([], [])
            accepted.append(live[step.arguments])
        for output in outputs:
            if isinstance(output, Write | Done | Failed):
                key = output.producer_id, output.message_id
                writes, ends = live[key] if isinstance(output, Write) else live.pop(key)
                (writes if isinstance(output, Write) else ends).append(output)
    return accepted


@thorough
@given(configs, traces)
def test_the_machine_is_the_rules_run_ms_by_ms(config, trace):
    machine, naive = fresh(config), NaiveClient(config)
    for at_ms, name, *arguments in trace:
        expected = naive.perform(name, *arguments, at_ms=at_ms)
        assert expected == said(getattr(machine, name)(*arguments, at_ms))
        for producer in (1, 2):
            assert naive.probe(producer) == said(machine.probe(producer, at_ms))


@quick
@given(configs, traces)
def test_what_is_due_next_is_when_the_next_timer_emits(config, trace):
    machine = fresh(config)
    for at_ms, name, *arguments in trace:
        getattr(machine, name)(*arguments, at_ms)
    while (due_ms := machine.next_due_ms()) is not None:
        if due_ms > machine.now_ms:
            assert [] == machine.advance(due_ms - 1)
        emitted = machine.advance(due_ms)
        assert emitted
        assert {due_ms} == {output.at_ms for output in emitted}


@quick
@given(configs, traces)
def test_outputs_do_not_depend_on_how_often_the_clock_is_told(config, trace):
    told, untold = fresh(config), fresh(config)
    for at_ms, name, *arguments in trace:
        expected = getattr(untold, name)(*arguments, at_ms)
        before = told.advance(at_ms - 1) if at_ms > told.now_ms else []

        assert expected == before + getattr(told, name)(*arguments, at_ms)
    assert untold.metrics() == told.metrics()


@quick
@given(configs, traces)
def test_i9_first_writes_happen_in_the_order_of_the_accepted_sends(config, trace):
    unwritten = {1: [], 2: []}
    for step in played(config, trace):
        if step.name == "send" and not is_refused(step):
            unwritten[step.arguments[0]].append(step.arguments[1])
        for output in step.outputs:
            if isinstance(output, Write) and output.message_id in unwritten[output.producer_id]:
                assert output.message_id == unwritten[output.producer_id].pop(0)
            elif isinstance(output, Failed) and output.message_id in unwritten[output.producer_id]:
                unwritten[output.producer_id].remove(output.message_id)


@quick
@given(configs, traces)
def test_i10_a_message_ends_at_most_once_and_is_not_written_afterwards(config, trace):
    for writes, ends in lives(played(config, trace)):
        assert len(ends) <= 1
        assert all(write.at_ms <= end.at_ms for write in writes for end in ends)
        assert writes or not any(isinstance(end, Done) for end in ends)


@quick
@given(configs, traces)
def test_i11_no_write_happens_inside_the_window(config, trace):
    windows = {}
    for step in played(config, trace):
        for write in (output for output in step.outputs if isinstance(output, Write)):
            assert write.at_ms >= windows.get(write.producer_id, 0)
        windows = {producer: probe.window.end_ms for producer, probe in step.probes.items() if probe.window}


@quick
@given(configs, traces)
def test_i12_theta_never_decreases_and_grows_by_at_most_1_per_ms(config, trace):
    theta, now_ms = Counter(), 0
    for step in played(config, trace):
        for producer, probe in step.probes.items():
            assert 0 <= probe.theta_ms - theta[producer] <= step.now_ms - now_ms
            theta[producer] = probe.theta_ms
        now_ms = step.now_ms


@quick
@given(configs, traces)
def test_i12_a_timeout_is_blamed_on_the_throttle_beyond_the_percentage_and_there_alone(config, trace):
    timeout_ms, percent = config["send_timeout_ms"], config["throttled_percent"]
    failures = [output for step in played(config, trace) for output in step.outputs if isinstance(output, Failed)]
    for failed in failures:
        detail = failed.detail
        assert (detail is not None) is (failed.error in {SendError.THROTTLED, SendError.TIMEOUT})
        if detail is not None and not detail.immediate:
            assert 0 <= detail.throttled_ms <= detail.timeout_ms == timeout_ms
            assert (failed.error is SendError.THROTTLED) is (100 * detail.throttled_ms > percent * timeout_ms)


rows = st.lists(st.tuples(st.integers(1, 100), st.integers(0, 200), st.sampled_from([0, 1, 2, 7])), max_size=6)


@quick
@given(rows.flatmap(lambda some: st.tuples(st.permutations(some), st.permutations(some * 2))))
def test_i13_the_window_does_not_depend_on_order_and_multiplicity_of_rows(orders):
    """Rows are (pause, issued at, reason), and each is known by its request id."""
    ids = {content: number for number, content in enumerate(sorted(set(orders[0])), 1)}
    probes = []
    for order in orders:
        machine = machine_of()
        for pause_ms, issued_at_ms, reason in order:
            request_id = ids[pause_ms, issued_at_ms, reason]
            machine.throttle(row(request_id, 1, pause_ms, issued_at_ms, reason), 150)
        probes.append(machine.probe(1, 150))

    assert probes[0] == probes[1]


@quick
@given(configs, traces)
def test_i14_every_command_is_receipted_last_while_the_link_is_up_and_the_client_enabled(config, trace):
    link_up = True
    for step in played(config, trace):
        link_up = step.name == "reconnect" or (link_up and step.name != "disconnect")
        receipts = [output for output in step.outputs if isinstance(output, Receipt)]
        if step.name != "throttle":
            assert [] == receipts
            continue
        [command] = step.arguments
        is_answered = link_up and config["enabled"] and command.request_id >= 1 and command.pause_ms >= 0

        assert receipts == ([Receipt(step.now_ms, command.request_id)] if is_answered else [])
        assert receipts == [] or step.outputs[-1] is receipts[-1]


@quick
@given(configs, traces)
def test_i15_without_a_send_timeout_only_nack_close_and_a_full_queue_fail_messages(config, trace):
    journal = played({**config, "send_timeout_ms": 0}, trace)
    errors = {output.error for step in journal for output in step.outputs if isinstance(output, Failed)}

    assert errors <= {SendError.REJECTED, SendError.CLOSED, SendError.QUEUE_FULL}


throttles = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([0, 5, 10, 40]), st.booleans()), max_size=60
)


@quick
@given(throttles, st.sampled_from([0, 0, 7]))
def test_i16_a_message_goes_to_a_throttled_partition_only_when_all_are_throttled(moves, slice_ms):
    producer = PartitionedProducer(PartitionedSettings.of({"partitions": 4, "slice_ms": slice_ms}))
    now_ms = 0
    for number, (step_ms, partition, pause_ms, is_closed) in enumerate(moves):
        now_ms += step_ms
        if pause_ms:
            producer.client.throttle(frame(number + 1, partition, pause_ms), now_ms)
        elif is_closed:
            producer.client.close(partition, now_ms)
        throttled = producer.throttled(now_ms)
        emitted = producer.send(f"m{number}", now_ms)
        [taken] = {output.producer_id for output in emitted if output.message_id == f"m{number}"} or {None}

        assert (taken is None) is (len(throttled) == 4)
        assert taken not in throttled


@quick
@given(st.integers(1, 9), st.integers(0, 8), st.integers(0, 60))
def test_i16_without_throttling_counts_of_partitions_differ_by_at_most_one(partitions, cursor, sends):
    producer = PartitionedProducer(PartitionedSettings.of({"partitions": partitions, "cursor": cursor % partitions}))
    written = Counter(producer.send(f"m{number}", number)[0].producer_id for number in range(sends))
    counts = [written[partition] for partition in range(partitions)]

    assert max(counts) - min(counts) <= 1
