"""Public traces as they lie on disk: every layout, and what is wrong with a file."""

import gzip
import struct

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


@pytest.mark.parametrize(
    ("unit", "time", "us"),
    [
        ("s", "1.5", 1_500_000),
        ("s", "1.001", 1_001_000),
        ("s", "1.0000005", 1_000_000),
        ("s", "1.00000050000000000001", 1_000_001),
        ("s", "1e3", 1_000_000_000),
        ("s", "9007199254.740993", 9_007_199_254_740_993),
        ("s", "9223372036", 9_223_372_036_000_000),
        ("ms", "7", 7_000),
        ("ms", "0.0015", 2),
        ("us", "9007199254740993", 9_007_199_254_740_993),
        ("us", "9007199254740993.4", 9_007_199_254_740_993),
        ("ns", "2999", 3),
        ("ns", "2500", 2),
        ("ns", "2500.0", 2),
        ("ns", "2500.1", 3),
        ("ns", "9223372036854775000", 9_223_372_036_854_775),
    ],
)
def test_times_have_the_unit_that_is_said(tmp_path, unit, time, us):
    layout = Layout("csv", time_column=1, id_column=2, time_unit=unit)
    (chunk,) = read_requests(file(tmp_path, f"{time},1\n".encode()), layout)
    assert [us] == chunk.times_us.tolist()


def test_a_chunk_may_mix_whole_times_and_decimals(tmp_path):
    layout = Layout("csv", time_column=1, id_column=2, time_unit="us")
    (chunk,) = read_requests(file(tmp_path, b"9007199254740993,1\n 9007199254740993.0,1\n9007199254740995,1\n"), layout)
    assert [9007199254740993, 9007199254740993, 9007199254740995] == chunk.times_us.tolist()


@pytest.mark.parametrize("letter", "fd")
def test_times_that_are_binary_numbers_are_those_of_the_nearest_microsecond(tmp_path, letter):
    layout = Layout("binary", record=f"<{letter}I", time_column=1, id_column=2)
    (chunk,) = read_requests(file(tmp_path, struct.pack(f"<{letter}I", 1.001, 1)), layout)
    assert [1_001_000] == chunk.times_us.tolist()


SIZES = [0, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1]


def test_sizes_beyond_64_bits_are_large_ones_of_either_form(tmp_path):
    as_binary = b"".join(struct.pack("<IQ", 1, size) for size in SIZES)
    as_csv = "".join(f"1, {size}\n" for size in SIZES).encode()
    layouts = [Layout("binary", record="<IQ", id_column=1, size_column=2), Layout("csv", id_column=1, size_column=2)]
    for layout, content in zip(layouts, (as_binary, as_csv), strict=True):
        assert [0, *[(1 << 63) - 1] * 4] == [size for _, _, size in read(file(tmp_path, content), layout)]
    huge = file(tmp_path, b"1,00" + b"9" * 100 + b"\n1,0000000000000000000000000512\n")
    assert [(1 << 63) - 1, 512] == [size for _, _, size in read(huge, layouts[1])]


@pytest.mark.parametrize("bad", ["get,1,512,x", "get,y,512,7", "get,1,z,7", "get,1,512"])
@pytest.mark.parametrize("row", [2, 3, 57, 100])
@pytest.mark.parametrize("chunk_bytes", [150, 1 << 24])
def test_the_first_bad_row_is_told_wherever_it_stands(tmp_path, monkeypatch, bad, row, chunk_bytes):
    monkeypatch.setattr(module, "CHUNK_BYTES", chunk_bytes)
    lines = ["kind,time,size,id", *["get,1,512,7"] * 99]
    lines[row - 1] = bad
    path = file(tmp_path, "".join(f"{line}\n" for line in [*lines, bad, bad]).encode())
    layout = Layout("csv", time_column=2, id_column=4, size_column=3, has_header=True)
    with pytest.raises(InputError, match=f", row {row}[,:]"):
        read(path, layout)


def test_a_text_that_is_no_utf_8_is_an_id_and_is_shown_where_it_is_none(tmp_path):
    path = file(tmp_path, b"\xff\n\xfe\n\xff\n")
    first, second, third = (id_ for _, id_, _ in read(path, Layout("txt", ids_are_numbers=False)))
    assert first == third != second
    with pytest.raises(InputError, match="row 1, column 1: got an id of '\N{REPLACEMENT CHARACTER}'"):
        read(path, Layout("txt"))


@pytest.mark.parametrize(
    ("layout", "content", "says"),
    [
        (ORACLE_GENERAL, requests.oracle_general(REQUESTS)[:-1], "record 4: got 23 bytes, needed 24"),
        (ORACLE_GENERAL, b"", "got an empty file"),
        (VSCSI, requests.oracle_general(REQUESTS), "got records of no version of vscsi"),
        (CSV, b"get,1,512,7\nget,1,512\n", "row 2: got 3 columns, allowed 4, as in row 1"),
        (CSV, b"get,1,512,7\nget,1,512,7,8\n", "row 2: got 5 columns, allowed 4, as in row 1"),
        (CSV, b"get,1,512,x\n", "row 1, column 4: got an id of 'x', allowed 0 to 18446744073709551615, or text"),
        (CSV, b"get,1,512,-1\n", "row 1, column 4: got an id of '-1', allowed 0 to"),
        (CSV, b"get,1,512,7\nget,1,512,\n", "row 2, column 4 is empty"),
        (CSV, b"get,1,-5,7\n", "row 1, column 3: got a size of '-5', allowed 0 bytes and more"),
        (CSV, b"get,1,5.5,7\n", "row 1, column 3: got a size of '5.5', allowed 0 bytes and more"),
        (CSV, b"get,1,-9223372036854775809,7\n", "row 1, column 3: got a size of '-9223372036854775809'"),
        (CSV, b"get,-1,5,7\n", "row 1, column 2: got a time of '-1', allowed 0 to"),
        (CSV, b"get,1,5,7\nget,1e16,5,7\n", "row 2, column 2: got a time of '1e16', allowed 0 to 9223372036 s"),
        (CSV, b"get,1.5,5,7\nget,nan,5,7\n", "row 2, column 2: got a time of 'nan', allowed 0 to"),
        (CSV, b"get,1.5,5,7\nget,1e-60,5,7\n", "row 2, column 2: got a time of '1e-60', .* with up to 50 decimals"),
        (CSV, b"get,1,5," + b"x" * 200 + b"\n", f"got an id of '{'x' * 80}...', allowed"),
        (Layout("csv", id_column=5), b"1,2\n", "row 1: got fewer than 5 columns"),
        (Layout("txt"), b"5\n1 2\n", "row 2, column 1: got an id of '1 2'"),
        (BINARY, requests.binary([(1, 2, 3), (-1, 2, 3)]), "row 2, column 5: got a time of -1.0, allowed 0 to"),
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
