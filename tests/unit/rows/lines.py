"""Lines of JSON and typed columns, good and bad, and what the parser makes of them."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headgate.rows.json_lines import HALF_CHARACTER
from headgate.rows.kinds import INPUT

AT_9 = 1_767_603_600_000_000  # 2026-01-05T09:00:00Z
TOPIC = "persistent://acme/shop/orders"
GOOD: dict[str, Any] = {
    "event_time": "2026-01-05T09:00:00Z",
    "seq": 1,
    "broker": "broker-1",
    "topic": TOPIC,
    "kind": "publish",
    "producer": "producer-1",
    "connection": "connection-1",
    "messages": 3,
    "bytes": 4,
}
VALUES = {"event_time_us": AT_9} | {name: GOOD[name] for name in GOOD if name != "event_time"}
VALUES |= dict.fromkeys(name for name in INPUT.names if name not in GOOD)
PUBLISHED_ALONE = dict.fromkeys(("topic", "producer", "connection", "messages", "bytes"))
USAGE = {"kind": "usage", "direction": "in", "from_us": AT_9 - 1}
DISPATCH = {"kind": "dispatch", "subscription": "sub-1", "producer": None, "connection": None}
DISPATCHED = DISPATCH | {"entries": 3, "caught_up": False, "filtered": False}
USAGED = {"kind": "publish", "direction": None, "from_us": None}
UNLOAD = {"kind": "unload", "bundle": "acme/shop/0x0_0x8", "duration_ms": 40}
UNLOADED = PUBLISHED_ALONE | UNLOAD
CONNECTION = {"kind": "connection", "connection": "connection-1"}
CONNECTED = PUBLISHED_ALONE | CONNECTION
SUBSCRIBE = {"kind": "subscribe", "client": "host-1", "consumer": "consumer-1", "consumer_id": 1}
SUBSCRIBED = PUBLISHED_ALONE | SUBSCRIBE | {"topic": TOPIC}
MOST, DAY_US = 2**63 - 1, 86_400_000_000

NO_TIME = "event_time: got {}, allowed is ISO 8601 with a zone, or whole microseconds since 1970"
OUT_OF_SPAN = (
    "event_time: got {}, allowed is 2000-01-01T00:00:00+00:00 up to 2100-01-01T00:00:00+00:00 "
    "([input] in headgate.toml)"
)
LOOKS_LIKE = "; it looks like {}, and numbers are microseconds"
NO_AMOUNT = "messages: got {}, allowed is a whole number from 0 to 9223372036854775807"
NO_SEQ = "seq: got {}, allowed is a whole number of 64 bits"
NO_NAME = "{}: got {}, allowed is a name"
NO_TOPIC = "topic: got {}, allowed is persistent://tenant/namespace/topic"
NO_KIND = "kind: got {}, allowed is publish, dispatch, subscribe, unload, connection or usage"
NO_ACTION = "action: got {}, allowed is open, close, writable, unwritable, start, finish or command"
NO_NUMBER = "{}: got {}, allowed is a whole number from 0 to 9223372036854775807"
NO_FLAG = "{}: got {}, allowed is true or false"
NO_ID = "consumer_id: got {}, allowed is a whole number from 0 to 9223372036854775807"
NO_DIRECTION = "direction: got {}, allowed is in or out"
NO_INTERVAL = (
    "from_us: got {}, allowed is whole microseconds since 1970, before event_time by a day at most, or equal to it "
    "where nothing came"
)
NO_JSON = "the line is not a JSON object"
MORE_JSON = "the line holds more than one JSON object"
NOT_UTF8_NAME = "broker: got a\ufffd, allowed is UTF-8"
NOT_UTF8 = "the line is not UTF-8; what cannot be read is shown as \ufffd"


def lacking(*missing: str, found: str = "") -> str:
    """found: the last column of a row that has all of GOOD."""
    names = ", ".join([*GOOD, *([found] if found else [])])
    return f"{'column' if len(missing) == 1 else 'columns'} missing: {', '.join(missing)}; found: {names}"


def line(**changes: Any) -> str:
    return json.dumps(GOOD | changes, ensure_ascii=False)


def time(text: Any) -> str:
    return line(event_time=text)


# What the line is about, the line, and the values that differ from VALUES or the reason.
TEXT: dict[str, tuple[str | bytes, dict[str, Any] | str]] = {
    "a good row": (line(), {}),
    "UTC": (time("2026-01-05T09:00:00Z"), {}),
    "a blank between date and time": (time("2026-01-05 09:00:00Z"), {}),
    "an offset": (time("2026-01-05T10:30:00+01:30"), {}),
    "an offset without a colon": (time("2026-01-05T10:30:00+0130"), {}),
    "an offset of hours": (time("2026-01-05T04:00:00-05"), {}),
    "a blank before the offset": (time("2026-01-05T04:00:00 -05:00"), {}),
    "no seconds": (time("2026-01-05T09:00Z"), {}),
    "no seconds, an offset": (time("2026-01-05T10:00+01:00"), {}),
    "one decimal": (time("2026-01-05T09:00:00.1Z"), {"event_time_us": AT_9 + 100_000}),
    "six decimals": (time("2026-01-05T09:00:00.123456Z"), {"event_time_us": AT_9 + 123_456}),
    "nanoseconds are cut": (time("2026-01-05T09:00:00.123456999Z"), {"event_time_us": AT_9 + 123_456}),
    "blanks around": (time(" 2026-01-05T09:00:00Z "), {}),
    "microseconds": (time(AT_9 + 1), {"event_time_us": AT_9 + 1}),
    "microseconds as text": (time(f"{AT_9}"), {}),
    "microseconds with a sign and blanks": (time(f" +{AT_9}\t"), {}),
    "the span begins": (time("2000-01-01T00:00:00Z"), {"event_time_us": 946_684_800_000_000}),
    "just before the span": (time("1999-12-31T23:59:59.999999Z"), OUT_OF_SPAN.format("1999-12-31T23:59:59.999999Z")),
    "the span's last microsecond": (
        time("2099-12-31T23:59:59.999999Z"),
        {"event_time_us": 4_102_444_799_999_999},
    ),
    "the span ends": (time("2100-01-01T00:00:00Z"), OUT_OF_SPAN.format("2100-01-01T00:00:00Z")),
    "the year 9999": (time("9999-12-31T23:59:59.999999Z"), OUT_OF_SPAN.format("9999-12-31T23:59:59.999999Z")),
    "the year 1": (time("0001-01-01T00:00:00Z"), OUT_OF_SPAN.format("0001-01-01T00:00:00Z")),
    "milliseconds": (time(AT_9 // 1000), OUT_OF_SPAN.format(AT_9 // 1000) + LOOKS_LIKE.format("milliseconds")),
    "seconds": (time(AT_9 // 10**6), OUT_OF_SPAN.format(AT_9 // 10**6) + LOOKS_LIKE.format("seconds")),
    "nanoseconds": (time(AT_9 * 1000), OUT_OF_SPAN.format(AT_9 * 1000) + LOOKS_LIKE.format("nanoseconds")),
    "a negative time": (time(-1), OUT_OF_SPAN.format(-1)),
    "no zone": (time("2026-01-05T09:00:00"), NO_TIME.format("2026-01-05T09:00:00")),
    "a zone's name": (time("2026-01-05T09:00:00 UTC"), NO_TIME.format("2026-01-05T09:00:00 UTC")),
    "no time of day": (time("2026-01-05"), NO_TIME.format("2026-01-05")),
    "a month 13": (time("2026-13-05T09:00:00Z"), NO_TIME.format("2026-13-05T09:00:00Z")),
    "February 30": (time("2026-02-30T09:00:00Z"), NO_TIME.format("2026-02-30T09:00:00Z")),
    "an hour 24": (time("2026-01-05T24:00:00Z"), NO_TIME.format("2026-01-05T24:00:00Z")),
    "a second 60": (time("2026-01-05T09:00:60Z"), NO_TIME.format("2026-01-05T09:00:60Z")),
    "an offset of 25 h": (time("2026-01-05T09:00:00+25:00"), NO_TIME.format("2026-01-05T09:00:00+25:00")),
    "a fraction of a microsecond": (time(AT_9 + 0.5), NO_TIME.format("1.7676036000000005E15")),
    "a time over 64 bits": (time(10**20), NO_TIME.format(10**20)),
    "no event_time": (time(None), NO_TIME.format("null")),
    "an empty event_time": (time(""), NO_TIME.format("''")),
    "a boolean time": (time(True), NO_TIME.format("true")),
    "an object as time": (time({"at": 1}), NO_TIME.format('{"at":1}')),
    "a number as text": (line(messages=" 5 "), {"messages": 5}),
    "nothing": (line(messages=0), {"messages": 0}),
    "the largest amount": (line(messages=MOST), {"messages": MOST}),
    "an amount over 64 bits": (line(messages=MOST + 1), NO_AMOUNT.format(MOST + 1)),
    "a negative amount": (line(messages=-1), NO_AMOUNT.format(-1)),
    "a whole float": (line(messages=5.0), NO_AMOUNT.format("5.0")),
    "a fraction": (line(messages=5.5), NO_AMOUNT.format("5.5")),
    "a boolean": (line(messages=True), NO_AMOUNT.format("true")),
    "NaN": (line(messages=float("nan")), NO_AMOUNT.format('"NaN"')),
    "null": (line(messages=None), NO_AMOUNT.format("null")),
    "an empty amount": (line(messages=""), NO_AMOUNT.format("''")),
    "a word": (line(messages="many"), NO_AMOUNT.format("many")),
    "digits of another script": (line(messages="٣"), NO_AMOUNT.format("٣")),
    "a list": (line(messages=[1]), NO_AMOUNT.format("[1]")),
    "a negative seq": (line(seq=-(2**63)), {"seq": -(2**63)}),
    "a seq over 64 bits": (line(seq=10**20), NO_SEQ.format(10**20)),
    "no seq": (line(seq=None), NO_SEQ.format("null")),
    "a topic without persistence": (line(topic=f"non-{TOPIC}"), {"topic": f"non-{TOPIC}"}),
    "a partition": (line(topic=f"{TOPIC}-partition-3"), {"topic": f"{TOPIC}-partition-3"}),
    "a topic in other letters": (line(topic="persistent://a/b/ü"), {"topic": "persistent://a/b/ü"}),
    "a short topic": (line(topic="acme/shop/orders"), NO_TOPIC.format("acme/shop/orders")),
    "a topic of two parts": (line(topic="persistent://acme/shop"), NO_TOPIC.format("persistent://acme/shop")),
    "a local name with a slash": (line(topic=f"{TOPIC}/new"), {"topic": f"{TOPIC}/new"}),
    "a topic with an emoji": (json.dumps(GOOD | {"topic": "persistent://a/b/😀"}), {"topic": "persistent://a/b/😀"}),
    "the first half of a character": (line(topic="persistent://a/b/c").replace("b/c", r"b/\ud83d"), HALF_CHARACTER),
    "the second half of a character": (line(topic="persistent://a/b/c").replace("b/c", r"b/\uDE00"), HALF_CHARACTER),
    "a second half after a backslash": (
        line(topic="persistent://a/b/c").replace("b/c", r"b/\\ud83d\ude00"),
        HALF_CHARACTER,
    ),
    "a backslash before what is no half": (
        line(topic=r"persistent://a/b/?\ud83d"),
        {"topic": r"persistent://a/b/?\ud83d"},
    ),
    "half of a character where nobody looks": (line(note="x").replace('"x"', r'"\ud800"'), {}),
    "a line break in a local name": (line(topic="persistent://a/b/\nc"), {"topic": "persistent://a/b/\nc"}),
    "a topic without tenant": (line(topic="persistent:///a/b"), NO_TOPIC.format("persistent:///a/b")),
    "a topic without name": (line(topic="persistent://a/b/"), NO_TOPIC.format("persistent://a/b/")),
    "another scheme": (line(topic="Persistent://a/b/c"), NO_TOPIC.format("Persistent://a/b/c")),
    "text before the scheme": (line(topic="x-persistent://a/b/c"), NO_TOPIC.format("x-persistent://a/b/c")),
    "no topic": (line(topic=None), NO_TOPIC.format("null")),
    "another kind": (line(kind="load"), NO_KIND.format("load")),
    "an unload": (line(**UNLOAD), UNLOADED),
    "an unload without a topic": (line(**UNLOAD, topic=None), UNLOADED),
    "an unload without its columns": (
        line(kind="unload"),
        lacking("bundle", "duration_ms"),
    ),
    "an unload that takes less than no time": (
        line(**UNLOAD | {"duration_ms": -1}),
        NO_NUMBER.format("duration_ms", -1),
    ),
    "a connection that opens": (
        line(**CONNECTION, action="open", io_thread=2),
        CONNECTED | {"action": "open", "io_thread": 2},
    ),
    "a connection that closes": (
        line(**CONNECTION, action="close", io_thread="x", command=[]),
        CONNECTED | {"action": "close"},
    ),
    "a publish that starts": (
        line(**CONNECTION, action="start", io_thread=2, bytes=9),
        CONNECTED | {"action": "start", "io_thread": 2, "bytes": 9},
    ),
    "a publish that starts without its columns": (
        line(**CONNECTION, action="start", bytes=None),
        f"{lacking('io_thread', found='action')}; {NO_NUMBER.format('bytes', 'null')}",
    ),
    "a command": (
        line(**CONNECTION, action="command", command="PING"),
        CONNECTED | {"action": "command", "command": "PING"},
    ),
    "a command without a name": (line(**CONNECTION, action="command"), lacking("command", found="action")),
    "a connection that does nothing": (line(**CONNECTION), lacking("action")),
    "a connection that does another thing": (line(**CONNECTION, action="OPEN"), NO_ACTION.format("OPEN")),
    "a connection without a name": (
        line(kind="connection", connection="", action="close"),
        NO_NAME.format("connection", "''"),
    ),
    "a subscribe": (line(**SUBSCRIBE, producer=None, connection=None, messages=None), SUBSCRIBED),
    "a subscribe with what others have": (line(**SUBSCRIBE, subscription=["s"], bytes=-1), SUBSCRIBED),
    "a subscribe without its columns": (
        line(kind="subscribe"),
        lacking("client", "consumer", "consumer_id"),
    ),
    "a subscribe of a blank client": (line(**SUBSCRIBE | {"client": ""}), NO_NAME.format("client", "''")),
    "a subscribe of an odd id": (line(**SUBSCRIBE | {"consumer_id": 1.5}), NO_ID.format("1.5")),
    "a subscribe of a negative id": (line(**SUBSCRIBE | {"consumer_id": -1}), NO_ID.format("-1")),
    "a publish with a consumer": (line(client=7, consumer={}, consumer_id="x"), {}),
    "a dispatch": (line(**DISPATCH), DISPATCHED),
    "a dispatch with what publishes have": (line(kind="dispatch", subscription="sub-1"), DISPATCHED),
    "a dispatch with an object for a producer": (line(**DISPATCH | {"producer": {"id": 7}}), DISPATCHED),
    "a dispatch of entries that was caught up and filtered": (
        line(**DISPATCH, entries=2, caught_up=True, filtered="true"),
        DISPATCHED | {"entries": 2, "caught_up": True, "filtered": True},
    ),
    "a dispatch of odd entries": (line(**DISPATCH, entries="some"), NO_NUMBER.format("entries", "some")),
    "a dispatch that may be caught up": (line(**DISPATCH, caught_up="maybe"), NO_FLAG.format("caught_up", "maybe")),
    "a dispatch that is filtered once": (line(**DISPATCH, filtered=1), NO_FLAG.format("filtered", 1)),
    "a publish with what dispatches have": (line(entries="x", caught_up="x", filtered="x"), {}),
    "a dispatch without a subscription": (line(kind="dispatch"), lacking("subscription")),
    "a dispatch of a blank subscription": (
        line(**DISPATCH | {"subscription": " "}),
        NO_NAME.format("subscription", "' '"),
    ),
    "a dispatch of a list": (
        line(**DISPATCH | {"subscription": ["s"]}),
        NO_NAME.format("subscription", '["s"]'),
    ),
    "a dispatch of a negative amount": (line(**DISPATCH | {"messages": -1}), NO_AMOUNT.format(-1)),
    "a publish with a subscription": (line(subscription="sub-1"), {}),
    "a publish with an odd subscription": (line(subscription={"id": 7}), {}),
    "usage of more than a day": (line(**USAGE | {"from_us": AT_9 - DAY_US - 1}), NO_INTERVAL.format(AT_9 - DAY_US - 1)),
    "usage of no time": (line(**USAGE | {"from_us": AT_9}), NO_INTERVAL.format(AT_9)),
    "usage of no time, bytes alone": (line(**USAGE | {"from_us": AT_9, "messages": 0}), NO_INTERVAL.format(AT_9)),
    "usage that ends before it begins": (
        line(**USAGE | {"from_us": AT_9 + 1, "messages": 0, "bytes": 0}),
        NO_INTERVAL.format(AT_9 + 1),
    ),
    "usage from before 1970": (line(**USAGE | {"from_us": -1}), NO_INTERVAL.format(-1)),
    "usage from a time": (
        line(**USAGE | {"from_us": "2026-01-05T08:59:59Z"}),
        NO_INTERVAL.format("2026-01-05T08:59:59Z"),
    ),
    "usage that ends at no time": (line(**USAGE, event_time="soon"), NO_TIME.format("soon")),
    "usage without its columns": (line(kind="usage"), lacking("direction", "from_us")),
    "usage without amounts": (
        line(**USAGE, messages=None, bytes=-1),
        f"{NO_AMOUNT.format('null')}; {NO_NUMBER.format('bytes', -1)}",
    ),
    "usage in another direction": (line(**USAGE | {"direction": "IN"}), NO_DIRECTION.format("IN")),
    "usage without a topic": (line(**USAGE, topic=None), NO_TOPIC.format("null")),
    "usage of an empty producer": (line(**USAGE, producer=""), NO_NAME.format("producer", "''")),
    "usage of a list of connections": (line(**USAGE, connection=["c"]), NO_NAME.format("connection", '["c"]')),
    "a publish with what usage has": (line(direction="up", from_us=-1), {}),
    "a kind in capitals": (line(kind="PUBLISH"), NO_KIND.format("PUBLISH")),
    "no kind": (line(kind=None), NO_KIND.format("null")),
    "no broker": (line(broker=None), NO_NAME.format("broker", "null")),
    "a blank broker": (line(broker="  "), NO_NAME.format("broker", "'  '")),
    "an empty producer": (line(producer=""), NO_NAME.format("producer", "''")),
    "an empty connection": (line(connection=""), NO_NAME.format("connection", "''")),
    "a number for a name": (line(broker=7), {"broker": "7"}),
    "a boolean for a name": (line(producer=True), {"producer": "true"}),
    "an object for a name": (line(broker={"id": 7}), NO_NAME.format("broker", '{"id":7}')),
    "an empty object for a name": (line(producer={}), NO_NAME.format("producer", "{}")),
    "a list for a name": (line(connection=[{"id": 7}, "b"]), NO_NAME.format("connection", '[{"id":7},"b"]')),
    "an empty list for a name": (line(broker=[]), NO_NAME.format("broker", "[]")),
    "names in braces": (line(broker="{x}", producer="{"), {"broker": "{x}", "producer": "{"}),
    "names in brackets": (line(producer="[x]", connection="["), {"producer": "[x]", "connection": "["}),
    "text of an object for a name": (line(broker='{"id": 7}'), {"broker": '{"id": 7}'}),
    "text of a list for a name": (line(connection="[7]"), {"connection": "[7]"}),
    "two mistakes": (line(messages=-1, kind=None), f"{NO_KIND.format('null')}; {NO_AMOUNT.format(-1)}"),
    "a value that is longer than is shown": (line(messages="m" * 150), NO_AMOUNT.format("m" * 100)),
    "more columns than are read": (line(region="eu", tags={"a": [1, {"b": 2}]}), {}),
    "two objects inside": (line(tags=[{"a": 1}, {"b": 2}]), {}),
    "a key twice: the last counts": (line()[:-1] + ', "messages": 9}', {"messages": 9}),
    "blanks at the end": (line() + " \t ", {}),
    "an empty object": (
        "{}",
        "columns missing: event_time, seq, broker, topic, kind, producer, connection, messages, bytes; found: none",
    ),
    "a column of another name": (
        line().replace('"bytes"', '"size"').replace('"seq"', '"no"'),
        "columns missing: seq, bytes; found: no, size",
    ),
    "a cut line": (line()[:40], NO_JSON),
    "no JSON": ("event_time=2026", NO_JSON),
    "a JSON list": (f"[{line()}]", NO_JSON),
    "a JSON number": ("5", NO_JSON),
    "JSON null": ("null", NO_JSON),
    "a comma too many": (line()[:-1] + ",}", NO_JSON),
    "text after the object": (line() + " and so on", MORE_JSON),
    "two objects on a line": (line() + line(), MORE_JSON),
    "two objects with a comma": (line() + "," + line(), MORE_JSON),
    "bytes that are not UTF-8": (line(producer="?").encode().replace(b"?", b"\xff"), NOT_UTF8),
    "an unpaired surrogate": (line().replace("producer-1", "\\ud800"), HALF_CHARACTER),
    # Usage comes behind the rows of other kinds.
    "usage": (line(**USAGE), USAGED),
    "usage of dispatches": (line(**USAGE | {"direction": "out"}), USAGED | DISPATCHED | {"subscription": "usage"}),
    "usage of nobody": (
        line(**USAGE, producer=None, connection=None),
        USAGED | {"producer": "usage", "connection": TOPIC},
    ),
    "usage of a subscription": (
        line(**USAGE | {"direction": "out", "subscription": "sub-1"}),
        USAGED | DISPATCHED | {"subscription": "sub-1"},
    ),
}

TYPES = {"event_time": pa.timestamp("us", "UTC")} | dict.fromkeys(("seq", "messages", "bytes"), pa.int64())
TYPED = GOOD | {"event_time": datetime(2026, 1, 5, 9, tzinfo=UTC)}

# What the column is about, its name, its Arrow type, and by value what becomes of it.
COLUMN: dict[str, tuple[str, pa.DataType, list[tuple[Any, Any]]]] = {
    "32 bits": ("messages", pa.int32(), [(5, 5), (-1, NO_AMOUNT.format(-1)), (None, NO_AMOUNT.format("null"))]),
    "64 bits without sign": ("messages", pa.uint64(), [(5, 5), (2**64 - 1, NO_AMOUNT.format(2**64 - 1))]),
    "doubles": (
        "messages",
        pa.float64(),
        [
            (5.0, 5),
            (5.5, NO_AMOUNT.format("5.5")),
            (float("nan"), NO_AMOUNT.format("NaN")),
            (float("inf"), NO_AMOUNT.format("Infinity")),
            (1e300, NO_AMOUNT.format("1.0E300")),
            (-1.0, NO_AMOUNT.format("-1.0")),
        ],
    ),
    "floats": ("messages", pa.float32(), [(5.0, 5), (0.5, NO_AMOUNT.format("0.5"))]),
    "decimals": (
        "messages",
        pa.decimal128(38, 2),
        [
            (Decimal("5.00"), 5),
            (Decimal("5.50"), NO_AMOUNT.format("5.50")),
            (Decimal(10) ** 30, NO_AMOUNT.format(f"{10**30}.00")),
        ],
    ),
    "booleans": ("messages", pa.bool_(), [(True, NO_AMOUNT.format("true"))]),
    "numbers as text": ("messages", pa.string(), [("5", 5), ("many", NO_AMOUNT.format("many"))]),
    "nulls alone": ("messages", pa.null(), [(None, NO_AMOUNT.format("null"))]),
    "times": (
        "event_time",
        pa.timestamp("us", "UTC"),
        [
            (datetime(2026, 1, 5, 9, 0, 0, 1, UTC), AT_9 + 1),
            (datetime(9999, 12, 31, tzinfo=UTC), OUT_OF_SPAN.format("9999-12-31 00:00:00")),
            (None, NO_TIME.format("null")),
        ],
    ),
    "times without a zone are UTC": ("event_time", pa.timestamp("us"), [(datetime(2026, 1, 5, 9), AT_9)]),  # noqa: DTZ001
    "milliseconds": ("event_time", pa.timestamp("ms", "UTC"), [(datetime(2026, 1, 5, 9, tzinfo=UTC), AT_9)]),
    "longs are microseconds": ("event_time", pa.int64(), [(AT_9, AT_9), (5, OUT_OF_SPAN.format(5))]),
    "times as text": ("event_time", pa.string(), [("2026-01-05T09:00:00Z", AT_9), ("now", NO_TIME.format("now"))]),
    "days": ("event_time", pa.date32(), [(date(2026, 1, 5), NO_TIME.format("2026-01-05"))]),
    "names": ("broker", pa.string(), [("b", "b"), ("", NO_NAME.format("broker", "''"))]),
    "names as bytes": (
        "broker",
        pa.binary(),
        [(b"b", "b"), (b"a\xff", NOT_UTF8_NAME)],
    ),
    "large names": ("broker", pa.large_string(), [("b", "b"), ("", NO_NAME.format("broker", "''"))]),
    "views of names": ("broker", pa.string_view(), [("b", "b"), ("", NO_NAME.format("broker", "''"))]),
    "names as large bytes": ("broker", pa.large_binary(), [(b"b", "b"), (b"a\xff", NOT_UTF8_NAME)]),
    "names as views of bytes": ("broker", pa.binary_view(), [(b"b", "b"), (b"a\xff", NOT_UTF8_NAME)]),
    "categories of names": (
        "broker",
        pa.dictionary(pa.int8(), pa.large_string()),
        [("b", "b"), ("", NO_NAME.format("broker", "''")), ("b", "b"), (None, NO_NAME.format("broker", "null"))],
    ),
    "categories of numbers": ("seq", pa.dictionary(pa.int8(), pa.int64()), [(5, 5), (None, NO_SEQ.format("null"))]),
    "categories of numbers as text": ("seq", pa.dictionary(pa.int8(), pa.string()), [("5", 5)]),
    "large numbers as text": ("seq", pa.large_string(), [("5", 5), ("x", NO_SEQ.format("x"))]),
    "views of numbers as text": ("seq", pa.string_view(), [("5", 5), ("x", NO_SEQ.format("x"))]),
    "categories of times as text": (
        "event_time",
        pa.dictionary(pa.int8(), pa.string()),
        [("2026-01-05T09:00:00Z", AT_9), ("now", NO_TIME.format("now"))],
    ),
    "views of times as text": ("event_time", pa.string_view(), [("2026-01-05T09:00:00Z", AT_9)]),
    "names as numbers": ("broker", pa.int64(), [(7, "7")]),
    "names in braces": ("broker", pa.string(), [("{x}", "{x}"), ('{"id": 7}', '{"id": 7}'), ("[x]", "[x]")]),
    "subscriptions of publishes are not looked at": (
        "subscription",
        pa.binary(),
        [(None, None), (b"s", None), (b"a\xff", None)],
    ),
    "structs for subscriptions of publishes": ("subscription", pa.struct({"id": pa.int64()}), [({"id": 7}, None)]),
    "structs for names": (
        "broker",
        pa.struct({"id": pa.int64()}),
        [({"id": 7}, NO_NAME.format("broker", "{7}")), (None, NO_NAME.format("broker", "null"))],
    ),
    "lists for names": ("producer", pa.list_(pa.string()), [(["a"], NO_NAME.format("producer", "[a]"))]),
    "maps for names": (
        "connection",
        pa.map_(pa.string(), pa.int64()),
        [([("id", 7)], NO_NAME.format("connection", "{id -> 7}"))],
    ),
}

# Likewise, of types and values that Spark does not have, or that files of other makers hold alone.
ARROW_COLUMN: dict[str, tuple[str, pa.DataType, list[tuple[Any, Any]]]] = {
    "days that Python has none for": (
        "event_time",
        pa.date32(),
        [
            (date(2026, 1, 5), NO_TIME.format("2026-01-05")),
            (2**31 - 1, NO_TIME.format("<value out of range: 2147483647>")),
            (-(10**6), NO_TIME.format("-0768-02-04")),
        ],
    ),
    "times of a day": ("event_time", pa.time64("us"), [(MOST, NO_TIME.format(f"<value out of range: {MOST}>"))]),
    "durations": (
        "event_time",
        pa.duration("s"),
        [(timedelta(days=1), NO_TIME.format("1 day, 0:00:00")), (MOST, NO_TIME.format(MOST))],
    ),
    "lists of days": (
        "event_time",
        pa.list_view(pa.date32()),
        [([date(2026, 1, 5), 2**31 - 1], NO_TIME.format("[2026-01-05, <value out of range: 2147483647>]"))],
    ),
}
