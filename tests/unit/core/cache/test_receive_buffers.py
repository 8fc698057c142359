"""How much memory entries pin: chunks by time and size, and the guess that follows what buffers held (section 11)."""

import pytest

from headgate.core.cache.receive_buffers import TABLE, BufferSizes, ReceiveBuffer
from unit.core.cache.traces import Rows, cache_of

SMALLEST, FIRST, LARGEST = 64, 2048, 65_536
WINDOW_US = 1000


def buffer():
    return ReceiveBuffer(BufferSizes(SMALLEST, FIRST, LARGEST), WINDOW_US)


def guess(buffer):
    return TABLE[buffer.index]


def test_the_table_goes_by_16_to_512_and_doubles_from_there_to_a_gibibyte():
    assert TABLE[:3] == (16, 32, 48)
    assert TABLE[30:34] == (496, 512, 1024, 2048)
    assert TABLE[-1] == 1 << 30


STEPS = [
    # time, size; bytes pinned and the guess afterwards
    (0, 100, 2048, 2048),
    (1000, 1948, 2048, 2048),  # the window is still open, and it fits exactly
    (1000, 1, 2048 + 32_768, 32_768),  # it does not: the buffer was full, the guess grows by four places
    (2001, 40_000, 34_816 + 40_000, 32_768),  # the window has passed with 1 byte: one small buffer changes nothing yet
    (4000, 10, 74_816 + 65_536, 65_536),  # 40,000 were received; four places more are past the largest
    (6000, 10, 140_352 + 65_536, 65_536),
    (8000, 10, 205_888 + 32_768, 32_768),  # two small ones: a place less
]


def test_entries_share_a_buffer_while_it_is_open_and_has_room():
    source = buffer()
    for at_us, size, pinned, guessed in STEPS:
        source.receive(size, at_us)

        assert (pinned, guessed) == (source.pinned_bytes, guess(source))


def test_a_buffer_is_gone_with_its_last_entry_and_counts_as_received():
    source = buffer()
    chunks = [source.receive(1024, 0), source.receive(1024, 0)]

    source.release(chunks[0])
    assert (2048, 2048) == (source.pinned_bytes, guess(source))
    source.release(chunks[1])
    assert (0, 32_768) == (source.pinned_bytes, guess(source))


def test_the_guess_stays_between_the_smallest_and_the_largest():
    source = buffer()
    for at_us in range(0, 200_000, 2000):
        source.receive(1, at_us)

    assert SMALLEST == guess(source)


COPIES = [
    ({"batchReadCopies": True}, 2, 200),
    ({"batchReadCopies": True}, 1, 2048),
    ({"batchReadCopies": False}, 2, 2048),
    ({"pulsar": {"managedLedgerCacheCopyEntries": True}}, 1, 100),
]


@pytest.mark.parametrize(("keys", "count", "pinned"), COPIES)
def test_an_entry_that_was_copied_pins_its_own_size(keys, count, pinned):
    cache, row = cache_of(maxBytes=10_000, **keys), Rows()
    cache.feed(row(0, "open", cursor="c", at=(0, 0)))

    cache.feed(row(0, "read", cursor="c", at=(0, 0), count=count))

    assert pinned == cache.pinned_bytes()
