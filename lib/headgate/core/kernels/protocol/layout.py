"""Links the records of machines as they come out of the columns of a state."""

from headgate.core.kernels.compiled import borrowing
from headgate.core.kernels.protocol.links import add_named, add_producer, watch_id
from headgate.core.kernels.protocol.table import condition_of, queue_receipt
from headgate.core.kernels.protocol.types import (
    CONDITIONS,
    HOLDING,
    IDS,
    IDS_IN_USE,
    NAMES,
    PRODUCERS,
    QUEUE,
    Machines,
)


@borrowing
def link(m: Machines) -> None:
    """Link the records of all pools, which are in order: producers by id, ids by due time, producer and number."""
    producers, ids = m.used[PRODUCERS], m.used[IDS]
    m.used[PRODUCERS] = 0
    for p in range(producers):
        stored = m.producers[p]
        topic, is_open, phase = stored.topic, stored.is_open, stored.phase
        end_ms, reason = stored.end_ms, stored.reason
        c = stored.life  # of a connection whose life is its place
        producer = m.producers[add_producer(m, c, stored.id)]
        producer.topic, producer.is_open, producer.phase = topic, is_open, phase
        producer.end_ms, producer.reason = end_ms, reason
        m.connections[c].holds += phase == HOLDING
    for i in range(ids):
        watch_id(m, m.producers[m.ids[i].producer].life, i)
    m.used[IDS_IN_USE] = ids
    queued, names, conditions = m.used[QUEUE], m.used[NAMES], m.used[CONDITIONS]
    m.used[QUEUE] = m.used[NAMES] = m.used[CONDITIONS] = 0
    for i in range(queued):
        queue_receipt(m, m.queued[i].life, m.queued[i].request_id)
    for i in range(names):
        named = m.named[i]
        add_named(m, named.life, named.topic, named.name, named.producer)
    for i in range(conditions):
        stored = m.conditions[i]
        c, reason, marked, released = stored.life, stored.reason, stored.marked, stored.released
        begun, is_set = stored.begun, stored.is_set
        condition = condition_of(m, c, reason)
        condition.marked, condition.released, condition.begun, condition.is_set = marked, released, begun, is_set
        m.connections[c].holds += marked > released
