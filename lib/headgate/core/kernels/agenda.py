"""Heap of due work in the order (due time, registration of its owner) (rate-limiters 3.1)."""

from numpy import int64

from headgate.core.kernels import kernel
from headgate.core.kernels.domain_types import Agenda


@kernel
def push(agenda: Agenda, due_ns: int64, owner: int64) -> None:
    i = agenda.size[0]
    agenda.size[0] += 1
    while i > 0:
        parent = (i - 1) // 2
        if agenda.due_ns[parent] < due_ns or (agenda.due_ns[parent] == due_ns and agenda.owner[parent] <= owner):
            break
        agenda.due_ns[i], agenda.owner[i] = agenda.due_ns[parent], agenda.owner[parent]
        i = parent
    agenda.due_ns[i], agenda.owner[i] = due_ns, owner


@kernel
def pop(agenda: Agenda) -> None:
    agenda.size[0] -= 1
    size = agenda.size[0]
    due_ns, owner = agenda.due_ns[size], agenda.owner[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            agenda.due_ns[right] < agenda.due_ns[child]
            or (agenda.due_ns[right] == agenda.due_ns[child] and agenda.owner[right] < agenda.owner[child])
        ):
            child = right
        if due_ns < agenda.due_ns[child] or (due_ns == agenda.due_ns[child] and owner <= agenda.owner[child]):
            break
        agenda.due_ns[i], agenda.owner[i] = agenda.due_ns[child], agenda.owner[child]
        i = child
    agenda.due_ns[i], agenda.owner[i] = due_ns, owner
