"""Raw rows to rows that the operator can take, or to a reason why not. Every rule for a traffic row stands here."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings

TOPIC = r"^(?:non-)?persistent://[^/]++/[^/]++/(?s:.)"
"""The local name may contain `/`."""
MAX_LONG = 2**63 - 1
KINDS = ("publish",)
ISO_WITH_ZONE = r"^\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?\s*(Z|[+-]\d{2}(:?\d{2})?)\s*\z"
ISO_WITHOUT_SECONDS = r"^(\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2})(\s*(?:Z|[+-]\d{2}(?::?\d{2})?)\s*)\z"
"""What Java's OffsetDateTime prints on a full minute."""
INTEGER = r"^\s*[+-]?\d+\s*\z"
SHOWN_CHARACTERS = 100
RAW_CHARACTERS = 2**14
"""The most of a row that a dead letter keeps: a batch of such rows has to fit into an Arrow column of 2 GiB."""
MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"

Check = tuple[Column, Column]
"""Whether a row is wrong, and what the reason then says."""


def parse(raw: DataFrame, settings: InputSettings) -> DataFrame:
    """Rows of sources.read_raw to the columns below.

    `bad` is null for a good row; else it is a JSON object of what a dead letter has: `reason` names every column at
    fault, `raw` is the row, `source` and `offset` are where it came from. event_time_us, seq, broker, topic, producer,
    connection, messages, bytes; bad; file where the raw rows have it.
    """
    types = {field.name: field.dataType for field in raw.schema.fields}
    is_text = isinstance(types["raw"], T.StringType)
    file = ["file"] if "file" in types else []
    frame = raw.select(
        _event_time_us(types["event_time"]).alias("event_time_us"),
        _integer("seq", types["seq"]).alias("seq"),
        *(F.col(name).cast("string").alias(name) for name in ("broker", "topic", "kind", "producer", "connection")),
        _integer("messages", types["messages"]).alias("messages"),
        _integer("bytes", types["bytes"]).alias("bytes"),
        *(F.col(name).alias(f"{name}_got") for name in ("event_time", "seq", "messages", "bytes")),
        *(F.col(name) for name in ("raw", "source", "offset", "defect", *file)),
    )
    checks = _checks(settings, types) if is_text else [*_checks(settings, types), *_checks_of_text()]
    is_good = F.col("defect").isNull()
    for wrong, _ in checks:
        is_good &= ~F.coalesce(wrong, F.lit(False))
    text = F.col("raw") if is_text else _as_json("raw")
    letter = F.struct(
        F.coalesce("defect", F.concat_ws("; ", *(F.when(wrong, told) for wrong, told in checks))).alias("reason"),
        F.substring(text, 1, RAW_CHARACTERS).alias("raw"),
        "source",
        "offset",
    )
    return frame.withColumn("bad", F.when(~is_good, F.to_json(letter))).select(
        "event_time_us", "seq", "broker", "topic", "producer", "connection", "messages", "bytes", "bad", *file
    )


def _checks(settings: InputSettings, types: dict[str, T.DataType]) -> list[Check]:
    """In the order of the columns, which is that of the reasons."""
    time, topic = F.col("event_time_us"), F.col("topic")
    span = f"{settings.event_time_from.isoformat()} up to {settings.event_time_until.isoformat()}"
    in_span = (time >= _micros(settings.event_time_from)) & (time < _micros(settings.event_time_until))
    allowed_time = "ISO 8601 with a zone, or whole microseconds since 1970"
    return [
        _fault(time.isNull(), "event_time", "event_time_got", allowed_time),
        _fault(~in_span, "event_time", "event_time_got", f"{span} ([input] in headgate.toml)"),
        _fault(F.col("seq").isNull(), "seq", "seq_got", "a whole number of 64 bits"),
        _fault(_no_name("broker", types), "broker", "broker", "a name"),
        _fault(topic.isNull() | ~topic.rlike(TOPIC), "topic", "topic", "persistent://tenant/namespace/topic"),
        _fault(F.col("kind").isNull() | ~F.col("kind").isin(*KINDS), "kind", "kind", " or ".join(KINDS)),
        _fault(_no_name("producer", types), "producer", "producer", "a name"),
        _fault(_no_name("connection", types), "connection", "connection", "a name"),
        *(
            _fault(
                F.col(name).isNull() | (F.col(name) < 0), name, f"{name}_got", f"a whole number from 0 to {MAX_LONG}"
            )
            for name in ("messages", "bytes")
        ),
    ]


def _checks_of_text() -> list[Check]:
    """What the lines of text files were looked at for as a whole."""
    names = ("broker", "topic", "producer", "connection")
    return [_fault(~F.is_valid_utf8(name), name, name, "UTF-8") for name in names]


def _event_time_us(kind: T.DataType) -> Column:
    time = F.col("event_time")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(time)
    if isinstance(kind, T.TimestampNTZType):
        return F.unix_micros(time.cast("timestamp"))
    if isinstance(kind, T.StringType):
        return (
            F.when(time.rlike(INTEGER), F.trim(time).try_cast("long"))
            .when(time.rlike(ISO_WITH_ZONE), _micros_of(time))
            .when(time.rlike(ISO_WITHOUT_SECONDS), _micros_of(F.regexp_replace(time, ISO_WITHOUT_SECONDS, "$1:00$2")))
        )
    return _integer("event_time", kind)


def _micros_of(time: Column) -> Column:
    return F.unix_micros(F.trim(time).try_cast("timestamp"))


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


def _no_name(name: str, types: dict[str, T.DataType]) -> Column:
    if isinstance(types[name], T.StructType | T.ArrayType | T.MapType | T.VariantType):
        return F.lit(True)
    wrong = F.col(name).isNull() | (F.trim(F.col(name)) == "")
    return wrong | _is_nested(name) if isinstance(types["raw"], T.StringType) else wrong


def _is_nested(name: str) -> Column:
    """Whether the line has an object or a list there, and no string that looks like one: only such lines are parsed
    once more. Lines of CSV are no JSON, and that parse gives null.
    """

    def found(kind: T.DataType) -> Column:
        return F.from_json("raw", T.StructType([T.StructField(name, kind)]))[name].isNotNull()

    value = F.col(name)
    return F.when(value.startswith("{"), found(T.MapType(T.StringType(), T.StringType()))).when(
        value.startswith("["), found(T.ArrayType(T.StringType()))
    )


def _fault(wrong: Column, name: str, got: str, allowed: str) -> Check:
    text = F.make_valid_utf8(F.substring(F.col(got).cast("string"), 1, SHOWN_CHARACTERS))
    quoted = F.concat(F.lit("'"), text, F.lit("'"))
    shown = F.when(text.isNull(), "null").when(F.trim(text) == "", quoted).otherwise(text)
    return wrong, F.concat(F.lit(f"{name}: got "), shown, F.lit(f", allowed is {allowed}"))


def _as_json(struct: str) -> Column:
    times = {"timestampFormat": f"{MICROSECONDS}XXX", "timestampNTZFormat": MICROSECONDS}
    return F.make_valid_utf8(F.to_json(struct, {"ignoreNullFields": "false"} | times))


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
