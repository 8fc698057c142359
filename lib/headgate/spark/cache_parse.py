"""Raw rows of cache events to rows that the entry cache's operator can take (entry-cache 2).

What a row needs for its kind is judged by the core. Here a value that cannot be read becomes one that is out of range,
so that the core refuses the row where it needs that value; rows without a place in the order are refused here.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.cache.schemas import ROWS
from headgate.conf import InputSettings
from headgate.core.cache.rows import Kind
from headgate.spark.parse import RAW_CHARACTERS, as_json, event_time_us, integer, is_nested, micros, no_name
from headgate.throttle.faults import SHOWN_CHARACTERS
from headgate.throttle.routing import BLANK_LINE

NAMES = ("kind", "topic", "cursor")
NUMBERS = ("ledger", "entry", "count")
PLAIN_KINDS = [kind.value for kind in Kind if kind is not Kind.CONF]
SIZES = r"^\s*\[\s*\d+\s*(,\s*\d+\s*)*\]\s*\z"


def parse_events(raw: DataFrame, settings: InputSettings) -> DataFrame:
    """Rows of sources.read_raw with `cache.schemas.COLUMNS` to ROWS, with sizes as lists or JSON texts, and `defect`.

    defect: why a row has no place in the order, null for others; file where the raw rows have it.
    """
    types = {field.name: field.dataType for field in raw.schema.fields}
    is_text = isinstance(types["raw"], T.StringType)
    file = ["file"] if "file" in types else []
    time = event_time_us(types["event_time"])
    numbers = {name: integer(name, types[name]) for name in NUMBERS}
    wrong_name = {name: _is_wrong_name(name, types) for name in NAMES}
    wrong_number = {name: F.col(name).isNotNull() & numbers[name].isNull() for name in NUMBERS}
    sizes, wrong_sizes = _sizes(types)
    is_odd = F.lit(False)
    for wrong in (*wrong_name.values(), *wrong_number.values(), wrong_sizes, ~F.col("kind").isin(*PLAIN_KINDS)):
        is_odd |= F.coalesce(wrong, F.lit(False))
    defect = _defect(settings, types, time)
    columns = {
        "event_time_us": time,
        "seq": integer("seq", types["seq"]),
        **{name: F.when(wrong, "").otherwise(F.col(name).cast("string")) for name, wrong in wrong_name.items()},
        **{name: F.when(wrong, -1).otherwise(numbers[name]) for name, wrong in wrong_number.items()},
        "sizes": sizes,
        "conf": _json_text("conf", types),
        "broker": F.col("broker").cast("string"),
        "raw": F.when(is_odd | defect.isNotNull(), _shown(F.col("raw") if is_text else as_json("raw"))),
        "source": F.col("source"),
        "offset": F.col("offset"),
    }
    return raw.select(*(columns[name].alias(name) for name in ROWS.names), defect.alias("defect"), *file)


def _shown(text: Column) -> Column:
    return F.make_valid_utf8(F.substring(text, 1, RAW_CHARACTERS))


def _sizes(types: dict[str, T.DataType]) -> tuple[Column, Column]:
    """Lists of whole numbers as they are, else JSON texts; and where they can be no sizes (null: there are none)."""
    kind = types["sizes"]
    if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.IntegralType)):
        text = _json_text("sizes", types)
        return text, ~text.rlike(SIZES)
    lists = F.col("sizes").cast("array<bigint>")
    has_null = F.array_contains(lists, F.lit(-1).cast("bigint")).isNull()
    return lists, lists.isNotNull() & ((F.size(lists) == 0) | has_null | (F.array_min(lists) < 0))


def _json_text(name: str, types: dict[str, T.DataType]) -> Column:
    """A value of a list, a map or a struct as JSON; text is taken for JSON, also that of a map's values."""
    if isinstance(types[name], T.MapType):
        entries = F.transform(
            F.map_entries(F.col(name).cast("map<string, string>")),
            lambda entry: F.concat(F.lit('"'), entry["key"], F.lit('":'), F.coalesce(entry["value"], F.lit("null"))),
        )
        return F.make_valid_utf8(F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}")))
    if isinstance(types[name], T.ArrayType | T.StructType):
        return F.make_valid_utf8(F.to_json(name))
    return F.col(name).cast("string")


def _is_wrong_name(name: str, types: dict[str, T.DataType]) -> Column:
    if isinstance(types[name], T.StructType | T.ArrayType | T.MapType | T.VariantType):
        return F.col(name).isNotNull()
    if isinstance(types["raw"], T.StringType):
        return F.coalesce(is_nested(name), F.lit(False))
    return ~F.is_valid_utf8(F.col(name).cast("string"))


def _defect(settings: InputSettings, types: dict[str, T.DataType], time: Column) -> Column:
    """What keeps a row from a place in the order of its broker's rows, as the reason of a dead letter."""
    first, until = settings.event_time_from, settings.event_time_until
    span = f"{first.isoformat()} up to {until.isoformat()} ([input] in headgate.toml)"
    in_span = (time >= micros(first)) & (time < micros(until))
    told = F.concat_ws(
        "; ",
        _told(time.isNull(), "event_time", "ISO 8601 with a zone, or whole microseconds since 1970"),
        _told(~in_span, "event_time", span),
        _told(integer("seq", types["seq"]).isNull(), "seq", "a whole number of 64 bits"),
        _told(no_name("broker", types), "broker", "a name"),
    )
    bad = F.when(F.col("defect").isNotNull(), F.col("defect")).when(told != "", told)
    return F.when(F.col("defect") == BLANK_LINE, BLANK_LINE).otherwise(F.concat(F.lit("bad_row: "), bad))


def _told(wrong: Column, name: str, allowed: str) -> Column:
    got = F.coalesce(F.substring(F.col(name).cast("string"), 1, SHOWN_CHARACTERS), F.lit("null"))
    return F.when(wrong, F.concat(F.lit(f"{name}: got "), F.make_valid_utf8(got), F.lit(f", allowed is {allowed}")))
