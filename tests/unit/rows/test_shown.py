"""Values as dead letters show them: as Java and Spark write them."""

import pyarrow as pa
import pytest

from headgate.rows.shown import double_text, row_as_json, shown, value_as_json


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.1, pa.float32(), "0.1"),
        (0.1, pa.float64(), "0.1"),
        (5.0, pa.float64(), "5.0"),
        (-0.0, pa.float64(), "-0.0"),
        (1e300, pa.float64(), "1.0E300"),
        (1.25e-9, pa.float64(), "1.25E-9"),
        (float("nan"), pa.float64(), "NaN"),
        (float("-inf"), pa.float64(), "-Infinity"),
        (True, pa.bool_(), "true"),
        (None, pa.int64(), None),
    ],
)
def test_a_value_is_shown_as_spark_casts_it(value, kind, text):
    assert shown(pa.scalar(value, kind)) == text


@pytest.mark.parametrize(("number", "text"), [(9_999_999.0, "9999999.0"), (1e7, "1.0E7"), (0.001, "0.001")])
def test_a_double_has_an_exponent_where_java_gives_it_one(number, text):
    assert double_text(number) == text


def test_a_row_shows_columns_that_are_null_and_a_value_leaves_them_out_and_letters_stay_as_they_are():
    kind = pa.struct([("topic", pa.string()), ("size", pa.int64())])
    row = pa.scalar({"topic": "Äpfel", "size": None}, kind)

    assert row_as_json(row) == '{"topic":"Äpfel","size":null}'
    assert value_as_json(row) == '{"topic":"Äpfel"}'
