"""Array form of the token bucket: the operations of rate-limiters 2.3 on bucket `i` of an array, and batches of one.

The readable form is `headgate.core.token_bucket.TokenBucket`; `pack` and `unpack` exchange state with it, and tests
hold the two equal. An array has one record a bucket, because a batch over many buckets waits for memory: a record is
one or two cache lines, a column each would be ten. `buckets["balance"]` is the column of all balances, a view.

Arguments are checked by the caller: tokens >= 0, rates and periods >= 1, `i` within the array, equal sizes in a batch.
Instants are ns of event time, any int64, and may step back.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import int64, uint64
from numpy.typing import NDArray

from headgate.core.kernels.compiled import borrowing, inner
from headgate.core.kernels.int128 import credit, distance, earn, sat_add, wait_ns
from headgate.core.numbers import MIN
from headgate.core.token_bucket import TokenBucket

Buckets = NDArray[np.void]

# Derived: due_ns is the last instant without a refill, one_ns the whole ns per token. floor is -max_debt, or MIN for no
# bound. Those that an event inside the resolution needs stand first and share a cache line.
BUCKET = np.dtype(
    [
        ("balance", np.int64),
        ("due_ns", np.int64),
        ("floor", np.int64),
        ("last_ns", np.int64),
        ("remainder_ns", np.int64),
        ("one_ns", np.int64),
        ("rate", np.int64),
        ("period_ns", np.int64),
        ("capacity", np.int64),
        ("resolution_ns", np.int64),
        ("dynamic", np.int64),
    ]
)
_BLOCK = 256
# Sums over a block stay inside 64 bits where costs, instants (until the year 2116) and all else are below these.
_LARGE_COST = 2**50
_LATE = 2**62
_LARGE = 2**60


def pack(buckets: Sequence[TokenBucket]) -> Buckets:
    """An array of the state and parameters of `buckets`, in order."""
    packed = np.zeros(len(buckets), BUCKET)
    for record, bucket in zip(packed, buckets, strict=True):
        for name in ("balance", "last_ns", "remainder_ns", "rate", "period_ns", "capacity", "resolution_ns", "dynamic"):
            record[name] = getattr(bucket, name)
        record["floor"] = MIN if bucket.max_debt is None else -bucket.max_debt
    for i in range(len(packed)):
        reset_gate(packed, i)
    return packed


def unpack(buckets: Buckets, i: int) -> TokenBucket:
    """A readable bucket with the state and parameters of bucket `i`, a copy."""
    record: dict[str, Any] = dict(zip(BUCKET.names or (), buckets[i].tolist(), strict=True))
    floor = record["floor"]
    record["max_debt"] = None if floor == MIN else -floor
    record["dynamic"] = record["dynamic"] != 0
    return TokenBucket.from_state({name: record[name] for name in TokenBucket.__slots__})


@inner
def set_due(bucket: Any) -> None:
    """Last instant at which nothing is refilled: `last_ns + gate` of rate-limiters 2.2."""
    gate_ns = bucket.resolution_ns
    if bucket.one_ns > gate_ns:
        gate_ns = max(int64(0), bucket.one_ns - bucket.remainder_ns - 1)
    bucket.due_ns = sat_add(bucket.last_ns, gate_ns)


@inner
def _rate_divides_period(bucket: Any) -> Any:
    return bucket.one_ns * bucket.rate == bucket.period_ns


@inner
def _refill(bucket: Any, now_ns: int64) -> None:
    """The refill of rate-limiters 2.2 and its capped credit, for now_ns > due_ns."""
    elapsed_ns = distance(bucket.last_ns, now_ns) + uint64(bucket.remainder_ns)
    if _rate_divides_period(bucket):  # the usual case, in one division and without a product
        one_ns = uint64(bucket.one_ns)
        new = elapsed_ns // one_ns
        bucket.remainder_ns = int64(elapsed_ns - new * one_ns)
    else:
        new, bucket.remainder_ns = earn(elapsed_ns, bucket.rate, bucket.period_ns)
    bucket.last_ns = now_ns
    if new > 0:
        bucket.balance = credit(bucket.balance, new, bucket.capacity)
    set_due(bucket)


@inner
def spend(balance: int64, n: int64, floor: int64) -> int64:
    """sat(max(balance - n, floor)) of rate-limiters 2.2, without a difference that could wrap."""
    if balance <= floor or uint64(n) >= distance(floor, balance):
        return floor
    return balance - n


@borrowing
def draw(bucket: Any, n: int64, now_ns: int64) -> int64:
    """Refill a bucket, take `n` tokens and return the balance (rate-limiters 2.2)."""
    if now_ns > bucket.due_ns:
        _refill(bucket, now_ns)
    left = spend(bucket.balance, n, bucket.floor)
    bucket.balance = left
    return left


@inner
def set_gate(bucket: Any) -> None:
    """Derive what follows from the parameters and the state of a bucket. Rate 0 stands for none."""
    bucket.one_ns = bucket.period_ns // bucket.rate if bucket.rate > 0 else int64(0)
    set_due(bucket)


@borrowing
def reset_gate(buckets: Buckets, i: int) -> None:
    """Derive what follows from the parameters and the state of bucket `i`, after they were written directly."""
    set_gate(buckets[i])


@borrowing
def take(buckets: Buckets, i: int, n: int, now_ns: int) -> int:
    """Refill, then take `n` tokens, possibly into debt, and return the balance."""
    return draw(buckets[i], n, now_ns)


@borrowing
def consume(buckets: Buckets, i: int, n: int) -> None:
    """Take `n` tokens without a refill."""
    buckets[i].balance = spend(buckets[i].balance, n, buckets[i].floor)


@borrowing
def consume_check(buckets: Buckets, i: int, n: int, now_ns: int) -> bool:
    """Take `n` tokens and tell whether any are left."""
    return draw(buckets[i], n, now_ns) > 0


@borrowing
def balance_at(buckets: Buckets, i: int, now_ns: int) -> int:
    """Tokens at `now_ns`, negative in debt. A read is a refill."""
    return draw(buckets[i], int64(0), now_ns)


@borrowing
def contains(buckets: Buckets, i: int, now_ns: int) -> bool:
    """Whether the balance at `now_ns` is above 0."""
    return draw(buckets[i], int64(0), now_ns) > 0


@inner
def target_of(bucket: Any) -> int64:
    """The balance at which a pause ends (rate-limiters 2.4)."""
    return max(int64(1), bucket.capacity // 100)


@inner
def pause_of(bucket: Any, now_ns: int64, need: int64) -> int64:
    """Time until a balance of `need` tokens is expected, 0 when it is there."""
    balance = draw(bucket, int64(0), now_ns)
    if balance >= need:
        return int64(0)
    return wait_ns(distance(balance, need), bucket.period_ns, bucket.rate)


@borrowing
def target(buckets: Buckets, i: int) -> int:
    """`target_of` bucket `i`."""
    return target_of(buckets[i])


@borrowing
def pause_ns(buckets: Buckets, i: int, now_ns: int, need: int) -> int64:
    """`pause_of` bucket `i`."""
    return pause_of(buckets[i], now_ns, need)


@borrowing
def refund(buckets: Buckets, i: int, n: int) -> None:
    """Give back `n` tokens, up to the capacity or to the balance where that is higher. No refill."""
    bucket = buckets[i]
    bucket.balance = credit(bucket.balance, uint64(n), max(bucket.balance, bucket.capacity))


@borrowing
def refill_due_ns(buckets: Buckets, i: int) -> int:
    """The first instant at which a refill can happen; MAX stands for never."""
    return sat_add(buckets[i].due_ns, int64(1))


@borrowing
def set_rate(buckets: Buckets, i: int, rate: int, period_ns: int) -> None:
    """Change rate, capacity and period of a bucket that the caller knows to be dynamic (rate-limiters 2.5)."""
    bucket = buckets[i]
    bucket.rate = rate
    bucket.capacity = rate
    bucket.period_ns = period_ns
    reset_gate(buckets, i)


@borrowing
def consume_check_many(
    buckets: Buckets, index: NDArray[np.int64], n: NDArray[np.int64], now_ns: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    """`out[e] = consume_check(index[e], n[e], now_ns[e])` for each event e, in order."""
    for e in range(now_ns.size):
        out[e] = draw(buckets[index[e]], n[e], now_ns[e]) > 0


@borrowing
def consume_check_one(
    buckets: Buckets, i: int, n: NDArray[np.int64], now_ns: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    """`out[e] = consume_check(i, n[e], now_ns[e])` for each event e, in order."""
    bucket = buckets[i]
    for start in range(0, now_ns.size, _BLOCK):
        stop = min(start + _BLOCK, now_ns.size)
        _consume_check_block(bucket, n[start:stop], now_ns[start:stop], out[start:stop])


@inner
def _consume_check_block(bucket: Any, n: Any, now_ns: Any, out: Any) -> None:
    """A block of events: all at once where they are alike, else one after another, unchecked where that is exact."""
    latest_ns, cost, bits_of_instants, bits_of_costs = now_ns[0], int64(0), int64(0), int64(0)
    for e in range(now_ns.size):
        latest_ns = max(latest_ns, now_ns[e])
        bits_of_instants |= now_ns[e]
        bits_of_costs |= n[e]
        cost += n[e]
    tame = _is_tame(bucket, bits_of_instants, bits_of_costs)
    least = min(bucket.balance, bucket.capacity) - cost
    if tame and latest_ns <= bucket.due_ns and (bucket.balance <= 0 or cost < bucket.balance):
        bucket.balance = max(bucket.balance - cost, bucket.floor)
        left = bucket.balance > 0
        for e in range(out.size):
            out[e] = left
    elif tame and _rate_divides_period(bucket) and least >= bucket.floor:
        _consume_check_tame(bucket, n, now_ns, out)
    else:
        for e in range(now_ns.size):
            out[e] = draw(bucket, n[e], now_ns[e]) > 0


@inner
def _is_tame(bucket: Any, bits_of_instants: int64, bits_of_costs: int64) -> Any:
    """Whether plain sums of 64 bits are exact over a block."""
    return (
        0 <= (bits_of_instants | bucket.last_ns) < _LATE
        and bits_of_costs < _LARGE_COST
        and (bucket.capacity | bucket.one_ns | bucket.remainder_ns | bucket.resolution_ns) < _LARGE
        and -_LARGE < bucket.balance < _LARGE
    )


@inner
def _consume_check_tame(bucket: Any, n: Any, now_ns: Any, out: Any) -> None:
    """Events one after another, above the floor, at a rate that divides the period.

    Tokens are counted from a fixed start, so that no division waits for the one before.
    """
    balance, due_ns, last_ns = bucket.balance, bucket.due_ns, bucket.last_ns
    one_ns, resolution_ns, capacity = bucket.one_ns, bucket.resolution_ns, bucket.capacity
    elapsed_ns, earned = bucket.remainder_ns, int64(0)
    start_ns = last_ns - elapsed_ns
    for e in range(now_ns.size):
        if now_ns[e] > due_ns:
            last_ns = now_ns[e]
            elapsed_ns = last_ns - start_ns
            total = int64(uint64(elapsed_ns) // uint64(one_ns))
            if total > earned:
                balance = min(balance + total - earned, capacity)
                earned = total
            gate_ns = resolution_ns
            if one_ns > resolution_ns:
                gate_ns = one_ns - (elapsed_ns - total * one_ns) - 1
            due_ns = last_ns + gate_ns
        balance -= n[e]
        out[e] = balance > 0
    bucket.balance, bucket.due_ns, bucket.last_ns = balance, due_ns, last_ns
    bucket.remainder_ns = elapsed_ns - earned * one_ns
