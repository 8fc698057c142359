"""What tests of the wire draw: messages that are right, and bytes that are not."""

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from headgate.core.numbers import MAX
from headgate.core.protocol.reasons import TOLD, Reason
from headgate.wire.messages import ThrottleProducer

numbers = st.one_of(st.integers(0, 300), st.integers(0, MAX), st.sampled_from([MAX, 2**32, 2**35 - 1]))
throttle_producers = st.builds(
    ThrottleProducer, numbers, numbers, st.sampled_from([*sorted(TOLD), Reason.Unspecified]), numbers
)

# Tags and values that mean something, so that drawn bytes get beyond their first byte.
PIECES = [bytes.fromhex(piece) for piece in (
    *("0801", "1002", "2000", "2004", "2007", "28bc05", "881801", "881800", "08ac02"),  # fields of the protocol
    *("08ffffffffffffffff7f", "08ffffffffffffffffff01", "28ffffffffffffffffff7f"),  # 2^63-1, 2^64-1, 2^70-1
    *("0a03414243", "0d01000000", "090000000000000000", "7a00", "fa01020801"),  # other wire types, other fields
    *("0b0c", "0001", "0e", "0f", "08ffffffffffffffffffff01", "0a7f41", "888080808000"),  # none of a message
)]  # fmt: skip

WHOLE = bytes.fromhex("08011002200128bc05")


def mutated_messages(seed: int, count: int) -> Iterator[bytes]:
    """Messages of pieces, half of them around a whole command, most with a few bytes changed, cut or put in."""
    chance = random.Random(seed)
    for _ in range(count):
        before, after = (b"".join(chance.choices(PIECES, k=chance.randrange(4))) for _ in range(2))
        message = bytearray(before + chance.choice((b"", WHOLE)) + after)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
            at = chance.randrange(len(message) + 1)
            message[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        yield bytes(message)
