"""Sixteen threads at once: no deadlock, order kept, every future ends once, and no write in a window."""

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.client import PartitionedSettings, ProducerClosedError, RateLimitedProducer
from headgate.client.clock import MonotonicClock
from unit.client.doubles import SOON_S, ToldLibrary

SENDERS = 16
EACH = 40


class AnsweringLibrary(ToldLibrary):
    """Answers each write from one of four threads, in no order, now and then within the write."""

    def __init__(self, chance, partitions):
        super().__init__(partitions=partitions)
        self.chance = chance
        self.pool = ThreadPoolExecutor(4)

    def write(self, producer_id, payload, _options, completed):
        self.writes.append((producer_id, payload))
        if self.chance.random() < 0.2:
            completed(payload, None)
        else:
            self.pool.submit(completed, payload, None)

    def close(self, _timeout_s):
        self.pool.shutdown()


class Log:
    """Writes and receipts in the order in which they left, and the windows as they were answered."""

    def __init__(self, library):
        self.entries = []
        self._write = library.write
        library.write = self.write

    def write(self, producer_id, payload, options, completed):
        self.entries.append(("write", producer_id, clock.now_ms()))
        self._write(producer_id, payload, options, completed)

    def receipt(self, request_id):
        self.entries.append(("receipt", request_id, clock.now_ms()))


clock = MonotonicClock()


@pytest.fixture(autouse=True, scope="module")
def busy() -> Iterator[None]:
    """Threads take turns five hundred times as often as they do otherwise."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval_s)


@given(
    seed=st.integers(0, 2**32),
    partitions=st.integers(1, 4),
    pauses=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 5, 20, 40])), max_size=12),
    close_s=st.sampled_from([0, SOON_S, SOON_S]),
)
@settings(max_examples=examples(25))
def test_sixteen_threads_send_through_windows(seed, partitions, pauses, close_s):
    library = AnsweringLibrary(random.Random(seed), partitions)
    log = Log(library)
    chosen = PartitionedSettings.of({"partitions": partitions, "send_timeout_ms": 0})
    producer = RateLimitedProducer(library, chosen, receipts=log.receipt, clock=clock)
    ended, issued = [], {}

    def send_all(sender):
        for number in range(EACH):
            partition = sender % partitions if sender % 2 else None
            future = producer.send((sender, number), partition=partition)
            future.add_done_callback(lambda done, name=(sender, number): ended.append((name, done)))

    threads = [threading.Thread(target=send_all, args=(sender,)) for sender in range(SENDERS)]
    for thread in threads:
        thread.start()
    for request_id, (partition, pause_ms) in enumerate(pauses, 1):
        issued[request_id] = (partition, clock.now_ms() + pause_ms)
        producer.on_command(request_id, partition, 0, pause_ms)
    for thread in threads:
        thread.join(SOON_S)
    producer.close(close_s)

    assert Counter({(sender, number): 1 for sender in range(SENDERS) for number in range(EACH)}) == Counter(
        name for name, _ in ended
    )
    for name, done in ended:
        assert type(done.exception()) is ProducerClosedError if done.exception() else done.result() == name
    if close_s:
        assert not [name for name, done in ended if done.exception()]
    _assert_order(library.writes)
    _assert_no_write_in_a_window(log.entries, issued)


def _assert_order(writes):
    """Per partition, those of one sender as it sent them, and none twice."""
    assert len({payload for _, payload in writes}) == len(writes)
    last = {}
    for partition, (sender, number) in writes:
        assert last.get((partition, sender), -1) < number
        last[partition, sender] = number


def _assert_no_write_in_a_window(entries, issued):
    """From its receipt on nothing is written before its end: `issued` has the earliest that it can be."""
    ends = Counter()
    for kind, number, at_ms in entries:
        if kind == "write":
            assert ends[number] <= at_ms
        else:
            partition, end_ms = issued[number]
            ends[partition] = max(ends[partition], end_ms)
