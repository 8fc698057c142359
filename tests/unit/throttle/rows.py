"""Rows of every kind as tests give them, and as the parser gives them."""

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.rows.traffic import Parsed
from headgate.throttle.schemas import TRAFFIC

START_US = 1_760_000_000_000_000
SECOND_US = 1_000_000
BROKER = "broker-1"
TOPICS = [f"persistent://acme/ns{i % 2}/topic-{i}" for i in range(4)]


def event(at_us, topic=TOPICS[3], *, messages=1, bytes_=0, seq=0, producer="p", broker=BROKER):
    """A publish at `at_us` after START_US; its connection is named after the producer."""
    return {
        "event_time_us": START_US + at_us,
        "seq": seq,
        "broker": broker,
        "topic": topic,
        "producer": producer,
        "connection": f"connection-{producer[-1]}",
        "messages": messages,
        "bytes": bytes_,
    }


def dispatch(at_us, topic=TOPICS[0], *, messages=1, bytes_=0, seq=0, subscription="s", broker=BROKER, **more):
    """A dispatch at `at_us` after START_US; more: entries, caught_up, filtered."""
    return {
        "event_time_us": START_US + at_us,
        "seq": seq,
        "broker": broker,
        "topic": topic,
        "subscription": subscription,
        "messages": messages,
        "bytes": bytes_,
        "entries": messages,
        "caught_up": False,
        "filtered": False,
    } | more


def subscribe(at_us, topic=TOPICS[0], *, client="host", consumer="c", consumer_id=1, seq=0, broker=BROKER):
    """A subscribe at `at_us` after START_US."""
    return {
        "event_time_us": START_US + at_us,
        "seq": seq,
        "broker": broker,
        "topic": topic,
        "client": client,
        "consumer": consumer,
        "consumer_id": consumer_id,
    }


def unload(at_us, bundle="acme/ns0/0x00000000_0x80000000", *, duration_ms=1000, seq=0, broker=BROKER):
    """An unload at `at_us` after START_US."""
    return {
        "event_time_us": START_US + at_us,
        "seq": seq,
        "broker": broker,
        "bundle": bundle,
        "duration_ms": duration_ms,
    }


def acts(at_us, action, connection="connection-0", *, seq=0, broker=BROKER, **more):
    """What a connection did at `at_us` after START_US; more: io_thread, bytes, command."""
    return {
        "event_time_us": START_US + at_us,
        "seq": seq,
        "broker": broker,
        "connection": connection,
        "action": action,
        "io_thread": None,
        "bytes": None,
        "command": None,
    } | more


def parsed(rows, letters=()):
    """Rows of all kinds as the parser gives them, and dead letters."""
    columns = pa.unify_schemas([*TRAFFIC.values(), pa.schema([("kind", pa.string())])])
    table = pa.Table.from_pylist([{"kind": kind_of(row)} | row for row in rows], columns)
    return Parsed(table, pa.Table.from_pylist(list(letters), DEAD_LETTERS))


def kind_of(row):
    """By the column that a kind has alone."""
    own = {
        "producer": "publish",
        "subscription": "dispatch",
        "consumer": "subscribe",
        "bundle": "unload",
        "action": "connection",
    }
    return next((kind for name, kind in own.items() if row.get(name) is not None), None)


def bad_row(raw, reason="no reason", *, source="file", offset=None):
    """The dead letter of a row that the parser refused."""
    return {"reason": reason, "raw": raw, "source": source, "offset": offset}
