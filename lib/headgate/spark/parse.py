"""Raw rows to rows that the operator can take, or to a reason why not. Every rule for a traffic row stands here."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings

MAX_LONG = 2**63 - 1
KINDS = ("publish",)
TOPIC = r"^(non-)?persistent://[^/]+/[^/]+/[^/]+$"
ISO_WITH_ZONE = r"^\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?\s*(Z|[+-]\d{2}(:?\d{2})?)\s*$"
INTEGER = r"^\s*[+-]?\d+\s*$"
SHOWN_CHARACTERS = 100


def parse(raw: DataFrame, settings: InputSettings) -> DataFrame:
    """Rows of sources.read_raw to the columns below. `reason` is null for a good row; for a bad one it names every column at fault.

    event_time_us, seq, broker, topic, namespace (tenant/namespace), topic_hash (>= 0, of the topic's name), producer, connection,
    messages, bytes; reason, raw (of bad rows), source, offset.
    """
    types = {field.name: field.dataType for field in raw.schema.fields}
    amount = f"a whole number from 0 to {MAX_LONG}"
    frame = raw.select(
        _event_time_us(types["event_time"]).alias("event_time_us"),
        _integer("seq", types["seq"]).alias("seq"),
        *(F.col(name).cast("string").alias(name) for name in ("broker", "topic", "kind", "producer", "connection")),
        _integer("messages", types["messages"]).alias("messages"),
        _integer("bytes", types["bytes"]).alias("bytes"),
        *(F.col(name).alias(f"{name}_got") for name in ("event_time", "seq", "messages", "bytes")),
        *(F.col(name) for name in ("raw", "source", "offset", "defect")),
    )
    from_us, until_us = _micros(settings.event_time_from), _micros(settings.event_time_until)
    time, in_span = (
        F.col("event_time_us"),
        f"{settings.event_time_from.isoformat()} up to {settings.event_time_until.isoformat()}",
    )
    checks = [
        _fault(time.isNull(), "event_time", "event_time_got", "ISO 8601 with a zone, or whole microseconds since 1970"),
        _fault(
            (time < from_us) | (time >= until_us),
            "event_time",
            "event_time_got",
            in_span + " ([input] in headgate.toml)",
        ),
        _fault(F.col("seq").isNull(), "seq", "seq_got", "a whole number of 64 bits"),
        _fault(_blank("broker"), "broker", "broker", "a name"),
        _fault(
            F.col("topic").isNull() | ~F.col("topic").rlike(TOPIC),
            "topic",
            "topic",
            "persistent://tenant/namespace/topic",
        ),
        _fault(F.col("kind").isNull() | ~F.col("kind").isin(*KINDS), "kind", "kind", " or ".join(KINDS)),
        _fault(_blank("producer"), "producer", "producer", "a name"),
        _fault(_blank("connection"), "connection", "connection", "a name"),
        _fault(F.col("messages").isNull() | (F.col("messages") < 0), "messages", "messages_got", amount),
        _fault(F.col("bytes").isNull() | (F.col("bytes") < 0), "bytes", "bytes_got", amount),
    ]
    is_good = F.col("defect").isNull()
    for wrong, _ in checks:
        is_good &= ~F.coalesce(wrong, F.lit(False))  # noqa: FBT003
    reason = F.when(~is_good, F.coalesce("defect", F.concat_ws("; ", *(F.when(wrong, text) for wrong, text in checks))))
    is_text = isinstance(types["raw"], T.StringType)
    text = F.col("raw") if is_text else F.to_json("raw", {"ignoreNullFields": "false"})
    keeps_source = is_text  # lines are counted by file; elsewhere only bad rows need to say where they are from
    bad = F.col("reason").isNotNull()
    return frame.withColumn("reason", reason).select(
        "event_time_us",
        "seq",
        "broker",
        "topic",
        F.substring_index(F.substring_index("topic", "://", -1), "/", 2).alias("namespace"),
        F.xxhash64("topic").bitwiseAND(F.lit(2**31 - 1)).alias("topic_hash"),
        "producer",
        "connection",
        "messages",
        "bytes",
        "reason",
        F.when(bad, text).alias("raw"),
        (F.col("source") if keeps_source else F.when(bad, F.col("source"))).alias("source"),
        F.col("offset").cast("long").alias("offset"),
    )


def _event_time_us(kind: T.DataType) -> Column:
    time = F.col("event_time")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(time)
    if isinstance(kind, T.TimestampNTZType):
        return F.unix_micros(time.cast("timestamp"))
    if isinstance(kind, T.StringType):
        return F.when(time.rlike(INTEGER), F.trim(time).try_cast("long")).when(
            time.rlike(ISO_WITH_ZONE), F.unix_micros(F.trim(time).try_cast("timestamp"))
        )
    return _integer("event_time", kind)


def _integer(name: str, kind: T.DataType) -> Column:
    """The column as a long, null where it is not a whole number of 64 bits. No other type counts as a number."""
    value = F.col(name)
    if isinstance(kind, T.StringType):
        return F.when(value.rlike(INTEGER), F.trim(value).try_cast("long"))
    if isinstance(kind, T.LongType | T.IntegerType | T.ShortType | T.ByteType):
        return value.cast("long")
    if isinstance(kind, T.DecimalType | T.DoubleType | T.FloatType):
        return F.when(value == F.floor(value), value.try_cast("long"))
    return F.lit(None).cast("long")


def _blank(name: str) -> Column:
    return F.col(name).isNull() | (F.trim(F.col(name)) == "")


def _fault(wrong: Column, name: str, got: str, allowed: str) -> tuple[Column, Column]:
    shown = F.coalesce(F.substring(F.col(got).cast("string"), 1, SHOWN_CHARACTERS), F.lit("null"))
    return wrong, F.concat(F.lit(f"{name}: got "), shown, F.lit(f", allowed is {allowed}"))


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
