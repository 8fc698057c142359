"""Traffic of many connections at random: what clients do, and marks of their producers."""

import random

from unit.protocol.runs import given, mark_row, trip

PRODUCERS = 3
CONDITIONS = (2, 3, 4, 5, 6)
TYPES = ("TopicPublishRate", "TopicPublishRate", "ResourceGroupPublishRate", "BrokerPublishRate")


def topic_of(producer):
    return f"persistent://acme/ns/t{producer}"


def opened(connection, at_ms, supports):
    """A connection with its producers."""
    yield given("connect", at_ms, connection, supports_throttle=supports)
    for producer in range(PRODUCERS):
        named = {"producer_id": producer, "topic": topic_of(producer), "producer": f"p{producer}"}
        yield given("open", at_ms, connection, **named)


def inputs(seed, connections, rows, span_ms):
    """Rows of inputs in order. Receipts answer most commands that there may be, some late, some twice."""
    draw, made, ordinals = random.Random(seed), [], {}
    for number in range(connections):
        made += opened(f"broker-1/c{number}", 0, number % 7 > 0)
    for number in range(rows):
        connection, at_ms = f"broker-1/c{draw.randrange(connections)}", draw.randrange(span_ms)
        producer = draw.randrange(PRODUCERS)
        kind = draw.choice(("mark", "mark", "receipt", "receipt", "receipt", "publish", "unmark", "quote", "condition"))
        row = {"producer_id": producer, "event_id": f"{number:08}"}
        if kind == "mark":
            ordinals[connection, producer] = ordinals.get((connection, producer), 0) + 1
            row["trips"] = [trip(draw.choice((0, 1)), ordinals[connection, producer], (-draw.randrange(50), 100))]
        elif kind == "receipt":
            row["request_id"] = draw.randrange(1, 12)
        elif kind in {"unmark", "quote"}:
            row |= {"reason": draw.choice((0, 1)), "ordinal": max(1, ordinals.get((connection, producer), 0))}
            row["buckets"] = [{"balance": draw.randrange(-20, 5), "rate": 100}]
        elif kind == "condition":
            kind = draw.choice(("condition_set", "condition_clear"))
            row |= {"reason": draw.choice(CONDITIONS), "ordinal": draw.randrange(1, 9)}
        made.append(given(kind, at_ms, connection, **row))
    return sorted(made, key=lambda row: row["at_ms"])


def marks(seed, connections, rows, span_ms):
    """Rows of marks in order: marks of limiters, each released later."""
    draw, made = random.Random(seed), []
    for number in range(rows):
        producer, type_ = draw.randrange(PRODUCERS), draw.choice(TYPES)
        at_ns, held_ns = draw.randrange(span_ms * 10**6), draw.randrange(1, 10**9)
        what = {"type_": type_, "topic": topic_of(producer), "producer": f"p{producer}", "seq": number}
        connection = {"connection": f"c{draw.randrange(connections)}"}
        made += [
            mark_row(at_ns, **what, balance=-draw.randrange(50), per_s=100) | connection,
            mark_row(at_ns + held_ns, "unmark", **what) | connection,
        ]
    return sorted(made, key=lambda row: row["at_ns"])
