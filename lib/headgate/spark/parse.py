"""Raw rows to rows that the operator can take, or to what is wrong with them.

Every rule for a traffic row stands here, its words in throttle.faults.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings
from headgate.spark.csv_lines import COLUMNS
from headgate.throttle.faults import (
    CONNECTION,
    FLAGS,
    KINDS,
    NAMES,
    NUMBERS,
    OF_ACTION,
    OF_KIND,
    OPTIONAL,
    PLAIN_NAMES,
    PUBLISH,
    SHOWN_CHARACTERS,
)

TOPIC = r"^(?:non-)?persistent://[^/]++/[^/]++/(?s:.)"
"""The local name may contain `/`."""
ISO_WITH_ZONE = r"^\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?\s*(Z|[+-]\d{2}(:?\d{2})?)\s*\z"
ISO_WITHOUT_SECONDS = r"^(\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2})(\s*(?:Z|[+-]\d{2}(?::?\d{2})?)\s*)\z"
"""What Java's OffsetDateTime prints on a full minute."""
INTEGER = r"^\s*[+-]?\d+\s*\z"
RAW_CHARACTERS = 2**14
"""The most of a row that a dead letter keeps: a batch of such rows has to fit into an Arrow column of 2 GiB."""
OF_SOME_KINDS = tuple(name for name in (*NAMES, *NUMBERS, *FLAGS) if name != "broker")
"""Columns that not every kind has."""
MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


def parse(raw: DataFrame, settings: InputSettings) -> DataFrame:
    """Rows of sources.read_raw to the columns below.

    `bad` is null for a good row; else it is a JSON object, of which throttle.faults makes the dead letter: what is
    wrong, what the columns were, `raw` (the row), `source` and `offset` (where it came from). event_time_us, seq,
    broker, kind, those of one or several kinds (faults.OF_KIND, OF_ACTION); bad; file where the raw rows have it. What
    stands in columns of other kinds than the row's is not looked at, and null; what may be missing has its default.
    """
    types = {field.name: field.dataType for field in raw.schema.fields}
    is_text = isinstance(types["raw"], T.StringType)
    file = ["file"] if "file" in types else []
    frame = raw.select(
        event_time_us(types["event_time"]).alias("event_time_us"),
        integer("seq", types["seq"]).alias("seq"),
        F.col("kind").cast("string").alias("kind"),
        *(F.col(name).cast("string").alias(name) for name in NAMES),
        *(integer(name, types[name]).alias(name) for name in NUMBERS),
        *(_truth(name, types[name]).alias(name) for name in FLAGS),
        *(F.col(name).alias(f"{name}_got") for name in ("event_time", "seq", *NUMBERS, *FLAGS)),
        *(F.col(name) for name in ("raw", "source", "offset", "defect", *file)),
    )
    faults = F.lit(0).cast("long")
    for position, wrong in enumerate(_conditions(settings, types)):
        faults += F.when(wrong, 1 << position).otherwise(0)
    frame = frame.withColumn("faults", faults)
    text = F.col("raw") if is_text else as_json("raw")
    letter = F.struct(
        "faults",
        "defect",
        F.substring(text, 1, RAW_CHARACTERS).alias("raw"),
        "source",
        "offset",
        F.struct(*(_got(name, frame) for name in COLUMNS)).alias("got"),
    )
    is_bad = F.col("defect").isNotNull() | (F.col("faults") != 0)
    bad = F.when(is_bad, F.make_valid_utf8(F.to_json(letter)))
    return frame.withColumn("bad", bad).select(
        *("event_time_us", "seq", "broker", "kind"),
        *(F.when(_counts(name), _or_default(name)).alias(name) for name in OF_SOME_KINDS),
        *("bad", *file),
    )


def _conditions(settings: InputSettings, types: dict[str, T.DataType]) -> list[Column]:
    """Whether each fault of `faults_of` holds; null counts as no. Lines of text were looked at for UTF-8 as a whole."""
    time, topic = F.col("event_time_us"), F.col("topic")
    in_span = (time >= micros(settings.event_time_from)) & (time < micros(settings.event_time_until))
    conditions = [
        time.isNull(),
        ~in_span,
        F.col("seq").isNull(),
        no_name("broker", types),
        _counts("topic") & (topic.isNull() | ~topic.rlike(TOPIC)),
        F.col("kind").isNull() | ~F.col("kind").isin(*KINDS),
        *(_counts(name) & no_name(name, types) for name in PLAIN_NAMES),
        _counts("action") & (F.col("action").isNull() | ~F.col("action").isin(*OF_ACTION)),
        *(_counts(name) & (_is_missing(name) | (F.col(name) < 0)) for name in NUMBERS),
        *(_counts(name) & _is_missing(name) for name in FLAGS),
    ]
    is_text = isinstance(types["raw"], T.StringType)
    return conditions if is_text else [*conditions, *(_counts(name) & ~F.is_valid_utf8(name) for name in NAMES)]


def _counts(name: str) -> Column:
    """Whether the column is one of those of the row's kind; a row of no kind is looked at as a publish."""
    if name not in OF_SOME_KINDS:
        return F.lit(True)
    kinds = [kind for kind, names in OF_KIND.items() if name in names]
    if PUBLISH in kinds:
        others = [kind for kind in KINDS if kind not in kinds]
        counts = F.coalesce(~F.col("kind").isin(*others), F.lit(True))
    else:
        counts = F.coalesce(F.col("kind").isin(*kinds), F.lit(False))
    actions = [action for action, names in OF_ACTION.items() if name in names]
    if not actions:
        return counts
    tells = (F.col("kind") == CONNECTION) & F.col("action").isin(*actions)
    return counts | F.coalesce(tells, F.lit(False))


def _is_missing(name: str) -> Column:
    """Whether there is no value where one has to be: of an optional column, where something else was got."""
    missing = F.col(name).isNull()
    return missing & F.col(f"{name}_got").isNotNull() if name in OPTIONAL else missing


def _or_default(name: str) -> Column:
    """The column, with what null means where it is optional."""
    if name in FLAGS:
        return F.coalesce(name, F.lit(False))
    return F.coalesce(name, "messages") if name == "entries" else F.col(name)


def event_time_us(kind: T.DataType) -> Column:
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
    return integer("event_time", kind)


def _micros_of(time: Column) -> Column:
    return F.unix_micros(F.trim(time).try_cast("timestamp"))


def integer(name: str, kind: T.DataType) -> Column:
    """The column as a long, null where it is not a whole number of 64 bits. No other type counts as a number."""
    value = F.col(name)
    if isinstance(kind, T.StringType):
        return F.when(value.rlike(INTEGER), F.trim(value).try_cast("long"))
    if isinstance(kind, T.LongType | T.IntegerType | T.ShortType | T.ByteType):
        return value.cast("long")
    if isinstance(kind, T.DecimalType | T.DoubleType | T.FloatType):
        return F.when(value == F.floor(value), value.try_cast("long"))
    return F.lit(None).cast("long")


def _truth(name: str, kind: T.DataType) -> Column:
    """The column as a boolean, null where it is neither true nor false."""
    value = F.col(name)
    if isinstance(kind, T.BooleanType):
        return value
    if isinstance(kind, T.StringType):
        text = F.trim(value)
        return F.when(text == "true", F.lit(True)).when(text == "false", F.lit(False))
    return F.lit(None).cast("boolean")


def no_name(name: str, types: dict[str, T.DataType]) -> Column:
    if isinstance(types[name], T.StructType | T.ArrayType | T.MapType | T.VariantType):
        return F.lit(True)
    wrong = F.col(name).isNull() | (F.trim(F.col(name)) == "")
    return wrong | is_nested(name) if isinstance(types["raw"], T.StringType) else wrong


def is_nested(name: str) -> Column:
    """Whether the line has an object or a list there, and no string that looks like one: only such lines are parsed
    once more. Lines of CSV are no JSON, and that parse gives null.
    """

    def found(kind: T.DataType) -> Column:
        return F.from_json("raw", T.StructType([T.StructField(name, kind)]))[name].isNotNull()

    value = F.col(name)
    return F.when(value.startswith("{"), found(T.MapType(T.StringType(), T.StringType()))).when(
        value.startswith("["), found(T.ArrayType(T.StringType()))
    )


def _got(name: str, frame: DataFrame) -> Column:
    """The start of what the column was, as text."""
    got = f"{name}_got" if f"{name}_got" in frame.columns else name
    return F.substring(F.col(got).cast("string"), 1, SHOWN_CHARACTERS).alias(name)


def as_json(struct: str) -> Column:
    times = {"timestampFormat": f"{MICROSECONDS}XXX", "timestampNTZFormat": MICROSECONDS}
    return F.make_valid_utf8(F.to_json(struct, {"ignoreNullFields": "false"} | times))


def micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
