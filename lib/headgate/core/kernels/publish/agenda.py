"""Heap of due work in the order (due time, registration of its owner) (rate-limiters 3.1)."""

from typing import Any

from numpy import int64

from headgate.core.kernels.columns import Ints, Records
from headgate.core.kernels.compiled import inner
from headgate.core.kernels.publish.types import DUES


@inner
def _is_before(due_ns: int64, owner: int64, other: Any) -> Any:
    return due_ns < other.due_ns or (due_ns == other.due_ns and owner < other.owner)


@inner
def push(agenda: Records, used: Ints, due_ns: int64, owner: int64) -> None:
    i = used[DUES]
    used[DUES] += 1
    while i > 0:
        parent = (i - 1) // 2
        if not _is_before(due_ns, owner, agenda[parent]):
            break
        agenda[i] = agenda[parent]
        i = parent
    agenda[i].due_ns, agenda[i].owner = due_ns, owner


@inner
def pop(agenda: Records, used: Ints) -> None:
    used[DUES] -= 1
    size = used[DUES]
    due_ns, owner = agenda[size].due_ns, agenda[size].owner
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _is_before(agenda[right].due_ns, agenda[right].owner, agenda[child]):
            child = right
        if not _is_before(agenda[child].due_ns, agenda[child].owner, agenda[size]):
            break
        agenda[i] = agenda[child]
        i = child
    agenda[i].due_ns, agenda[i].owner = due_ns, owner
