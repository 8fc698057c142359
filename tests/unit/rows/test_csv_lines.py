"""Lines of CSV: those without quotes are cut at their commas, which says the same as a reader of CSV does."""

import csv
import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.rows.csv_lines import CsvFile

FIELDS = st.text(st.sampled_from('ab ,"\t\u00e9\ufeff'), max_size=4)
ROWS = st.lists(FIELDS, min_size=1, max_size=4)


def written(row, quoting):
    out = io.StringIO()
    csv.writer(out, quoting=quoting, lineterminator="").writerow(row)
    return out.getvalue()


def read(header, *lines, names=("x", "y")):
    file = CsvFile(names)
    assert file.begin(header)
    columns, defects = file.read(pa.array(lines, pa.string()))
    return [defects.get(at) or tuple(columns[name][at].as_py() for name in names) for at in range(len(lines))]


@given(st.lists(ROWS, min_size=1, max_size=5), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_quoted_or_not_a_line_has_the_fields_that_were_written(rows, quoting):
    lines = [written(row, quoting) for row in rows]
    wrong = "the line has {} fields, the header of its file has 2"
    expected = [tuple(field or None for field in row) if len(row) == 2 else wrong.format(len(row)) for row in rows]
    got = read("x,y", *lines)
    for line, wanted, found in zip(lines, expected, got, strict=True):
        assert wanted == found or line.startswith("\ufeff")


@given(st.lists(st.text(st.sampled_from('a,"'), max_size=6).filter(bool), min_size=1, max_size=5))
def test_what_a_line_says_does_not_depend_on_its_neighbours(lines):
    assert [one for line in lines for one in read("x,y", line)] == read("x,y", *lines)


def test_a_header_names_columns_in_any_order_among_others_and_a_name_twice_is_its_last():
    assert [("2", "3")] == read(' other ,"y",x,y', "0,1,2,3")


def test_a_file_without_a_header_has_bad_lines_alone():
    file = CsvFile(("x", "y"))
    assert not file.begin("1,2")
    columns, defects = file.read(pa.array(["1,2", "3,4"]))
    assert {0, 1} == set(defects)
    assert ["the file does not begin with a header that names columns of x, y"] == sorted(set(defects.values()))
    assert [None, None] == columns["x"].to_pylist()


def test_an_open_quote_and_a_field_that_is_too_long_are_defects_of_their_lines_alone():
    long = "a" * 200_000
    assert ["the line is not CSV: unexpected end of data", ("1", "2")] == read("x,y", '"1,2', "1,2")
    (reason, good) = read("x,y", f"{long},1", "1,2")
    assert "the line is not CSV: field larger than field limit (131072)" == reason
    assert ("1", "2") == good
