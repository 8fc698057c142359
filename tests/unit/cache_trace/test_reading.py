"""Public traces as they lie on disk: every layout, and what is wrong with a file."""

import gzip

import pyarrow as pa
import pytest

from headgate.cache_trace import Layout, read_requests
from headgate.cache_trace import reading as module
from headgate.errors import ConfError, InputError
from unit.cache_trace import requests
from unit.cache_trace.requests import BINARY, CSV, ORACLE_GENERAL, REQUESTS, VSCSI

LAYOUTS = {
    "oracleGeneral": (ORACLE_GENERAL, requests.oracle_general),
    "vscsi 1": (VSCSI, requests.vscsi_1),
    "vscsi 2": (VSCSI, requests.vscsi_2),
    "csv": (CSV, requests.csv),
    "binary": (BINARY, requests.binary),
}


def read(path, layout):
    """Tuples of time in seconds, id, size."""
    made = []
    for chunk in read_requests(path, layout):
        count = len(chunk.ids)
        times = [None] * count if chunk.times_us is None else [int(time) / 1_000_000 for time in chunk.times_us]
        sizes = [None] * count if chunk.sizes_bytes is None else [int(size) for size in chunk.sizes_bytes]
        made += zip(times, [int(id_) for id_ in chunk.ids], sizes, strict=True)
    return made


def file(folder, content, name="trace"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", LAYOUTS)
def test_requests_are_the_same_in_every_layout(tmp_path, name):
    layout, written = LAYOUTS[name]
    assert REQUESTS == read(file(tmp_path, written(REQUESTS)), layout)


@pytest.mark.parametrize("name", LAYOUTS)
def test_chunks_may_end_within_a_request(tmp_path, name, monkeypatch):
    layout, written = LAYOUTS[name]
    many = requests.popular(500, 50)
    monkeypatch.setattr(module, "CHUNK_BYTES", 101)
    assert many == read(file(tmp_path, written(many)), layout)


def test_files_are_unpacked_by_the_end_of_their_name(tmp_path):
    plain = requests.oracle_general(REQUESTS)
    packed = {"trace.zst": pa.compress(plain, "zstd", asbytes=True), "trace.gz": gzip.compress(plain)}
    for name, content in packed.items():
        assert REQUESTS == read(file(tmp_path, content, name), ORACLE_GENERAL)


def test_txt_has_an_id_a_line_and_nothing_else(tmp_path):
    assert [(None, 5, None), (None, 7, None)] == read(file(tmp_path, b"5\n7\n"), Layout("txt"))


def test_ids_that_are_text_are_numbers_that_tell_them_apart(tmp_path):
    path = file(tmp_path, b'id\n"a,b"\nc\n"a,b"\n')
    layout = Layout("csv", id_column=1, has_header=True, ids_are_numbers=False)
    first, second, third = (id_ for _, id_, _ in read(path, layout))
    assert first == third != second


@pytest.mark.parametrize(("unit", "time", "us"), [("s", "1.5", 1_500_000), ("ms", "7", 7_000), ("ns", "2999", 2)])
def test_times_have_the_unit_that_is_said(tmp_path, unit, time, us):
    layout = Layout("csv", time_column=1, id_column=2, time_unit=unit)
    (chunk,) = read_requests(file(tmp_path, f"{time},1\n".encode()), layout)
    assert [us] == chunk.times_us.tolist()


@pytest.mark.parametrize(
    ("layout", "content", "says"),
    [
        (ORACLE_GENERAL, requests.oracle_general(REQUESTS)[:-1], "record 4: got 23 bytes, needed 24"),
        (ORACLE_GENERAL, b"", "got an empty file"),
        (VSCSI, requests.oracle_general(REQUESTS), "got records of no version of vscsi"),
        (CSV, b"get,1,512,7\nget,1,512\n", "Expected 4 columns, got 3"),
        (CSV, b"get,1,512,x\n", "invalid value 'x'"),
        (CSV, b"get,1,512,7\nget,1,512,\n", "row 2: column 4 is empty"),
        (CSV, b"get,1,-5,7\n", "row 1: got a size of -5"),
        (CSV, b"get,-1,5,7\n", "row 1: got a time of -1.0, allowed 0 to"),
        (CSV, b"get,1,5,7\nget,1e16,5,7\n", "row 2: got a time of 1e.16, allowed 0 to"),
        (Layout("csv", id_column=5), b"1,2\n", "got fewer than 5 columns"),
        (Layout("txt"), b"5\n1 2\n", "invalid value '1 2'"),
    ],
)
def test_what_is_not_of_the_layout_is_told_with_its_place(tmp_path, layout, content, says):
    with pytest.raises(InputError, match=says):
        read(file(tmp_path, content), layout)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        read(tmp_path / "nowhere", ORACLE_GENERAL)


def test_a_packed_file_that_is_cut_off_is_told(tmp_path):
    packed = gzip.compress(requests.oracle_general(requests.popular(5000, 500)))
    with pytest.raises(InputError, match=r"trace\.gz"):
        read(file(tmp_path, packed[: len(packed) // 2], "trace.gz"), ORACLE_GENERAL)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"format": "xml"}, "format: got 'xml'"),
        ({"format": "csv"}, "id-column: got 0, needed"),
        ({"format": "csv", "id_column": 1, "size_column": -1}, "size-column: got -1"),
        (
            {"format": "csv", "id_column": 3, "size_column": 3},
            "id-column, size-column: got 3 for each; allowed a column",
        ),
        (
            {"format": "csv", "id_column": 2, "time_column": 2, "ids_are_numbers": False},
            "id-column, time-column: got 2 for each; allowed a column",
        ),
        (
            {"format": "binary", "id_column": 1, "time_column": 1, "size_column": 1, "record": "<I"},
            "id-column, time-column, size-column: got 1 for each; allowed a column",
        ),
        ({"format": "csv", "id_column": 1, "time_unit": "h"}, "time-unit: got 'h'"),
        ({"format": "csv", "id_column": 1, "delimiter": ""}, "delimiter: got ''"),
        ({"format": "oracleGeneral", "id_column": 2}, "id-column: got 2; a trace of format oracleGeneral has its own"),
        ({"format": "vscsi", "ids_are_numbers": False}, "ids: got text"),
        ({"format": "vscsi", "record": "<I"}, "record: got '<I'; needed with binary alone"),
        ({"format": "binary", "id_column": 1}, "record: got ''"),
        ({"format": "binary", "id_column": 1, "record": "<Ix"}, "record: got '<Ix'"),
        ({"format": "binary", "id_column": 3, "record": "<II"}, "id-column: got 3, allowed up to 2"),
        ({"format": "binary", "id_column": 1, "record": "<d"}, "id-column: got field 1 of <d, a real number"),
    ],
)
def test_a_layout_that_contradicts_itself_is_refused(given, says):
    with pytest.raises(ConfError, match=says):
        Layout(**given)


def test_all_mistakes_of_a_layout_are_told_at_once():
    with pytest.raises(ConfError) as error:
        Layout("csv", time_unit="h", delimiter="ab")
    assert len(error.value.mistakes) == 3
