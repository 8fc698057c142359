"""Time of an object that several events reach: it never runs backwards (rate-limiters 3.1)."""

from headgate.core.numbers import int64


def enter(now_ns: int, high_ns: int) -> int:
    """The instant at which an operation at `now_ns` acts: the highest seen, so a late one is never an error.

    Raises InvalidArgument only where `now_ns` is no integer of 64 bits.
    """
    return max(int64(now_ns, "now_ns"), high_ns)
