"""A router in step tables: inputs in few words, what machines are fed as tuples."""

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import Mark, Trip, Unmark
from headgate.core.protocol.broker.router import Router

BUCKETS = [[-5, 100]]


def router(*producers, topic="t", **more):
    """Producers 1, 2 ... on connections, as (connection, id); all of one topic."""
    made = Router(**more)
    for connection, id_ in producers:
        if not made.is_connected(connection):
            made.feed(connection, inputs.Connect(0, supports=True))
        made.feed(connection, inputs.Open(0, id_, topic))
    return made


def mark(at, producer, n, reason=0, *, trigger=True):
    return Mark(at, producer, [Trip(reason, n, BUCKETS)], trigger)


def unmark(at, producer, n, reason=0):
    return Unmark(at, producer, reason, n)


def short(routed):
    """What a machine is fed: connection, kind, time, producer, what says the reason and the ordinal."""
    connection, given = routed
    if isinstance(given, Mark):
        trips = [(int(trip.reason), trip.ordinal) for trip in given.trips]
        return (connection, "mark" if given.trigger else "copy", given.at_ms, given.producer, *trips)
    if isinstance(given, Unmark):
        return (connection, "unmark", given.at_ms, given.producer, (int(given.reason), given.ordinal))
    return (connection, type(given).__name__.lower(), given.at_ms)


def fed(router_, connection, given):
    return [short(routed) for routed in router_.feed(connection, given)]
