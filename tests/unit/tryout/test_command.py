"""What `headgate try` refuses, all of it at once, and what it loads before it has something to run."""

import argparse
import gzip
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from headgate import places, stores
from headgate.cli import main
from headgate.cluster.schemas import COUNTERS
from headgate.errors import HeadgateError, InputError, TransientError
from headgate.places import RUNNING, TRIED, check_new, claimed
from headgate.report.sql import query
from headgate.rows.headers import check_headers
from headgate.rows.listing import format_of
from headgate.stores import AT_FIRST, PATIENT, file_system
from headgate.tryout import inputs
from headgate.tryout.command import run
from headgate.tryout.inputs import check_patience
from unit.local_runs import ACME, START_US, publishes, write_conf, write_trace

HEAVY = {"numba", "numpy", "pandas", "pyarrow", "deltalake", "matplotlib", "rich", "pyspark"}


def options(**given):
    defaults = dict.fromkeys(("path", "conf_dir", "format", "output"))
    defaults |= {"traffic": "offered", "watch": False, "strict": False}
    defaults |= {"recommend": None, "max_waiting_percent": None, "max_wait_ms": None}
    return argparse.Namespace(**(defaults | given))


def test_all_mistakes_of_a_call_are_told_at_once(tmp_path):
    write_conf(tmp_path / "a", broker_=1, maxPublishRatePerTopicInMessages="many")
    write_conf(tmp_path / "b", "[operator]\nslotz = 1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    folders = [str(tmp_path / name) for name in ("a", "b", "b/../a", "none")]
    with pytest.raises(HeadgateError) as refused:
        run(options(path=str(tmp_path / "gone"), conf_dir=folders, output=str(tmp_path / "full")))
    for part in (
        "'many'",
        "slotz",
        "the name a a second time",
        "none: got no directory",
        "gone",
        "full is there and not empty",
    ):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("files", "given", "part"),
    [
        ([], {}, "got a folder without files"),
        ([".hidden/part.json", "_delta.json"], {}, "got a folder without files"),
        (["a.json", "b.csv"], {}, "got .csv, .json"),
        (["a.txt"], {}, "got .txt"),
        (["a.json"], {"watch": True, "output": "new"}, "give one of them"),
    ],
)
def test_input_that_cannot_be_taken_is_refused_in_words(tmp_path, files, given, part):
    trace = tmp_path / "trace"
    trace.mkdir()
    for name in files:
        (trace / name).parent.mkdir(exist_ok=True)
        (trace / name).touch()
    with pytest.raises(HeadgateError, match=part):
        run(options(path=str(trace), conf_dir=[str(write_conf(tmp_path / "conf"))], **given))


def test_a_table_without_a_file_or_with_hidden_ones_alone_is_input(tmp_path, capsys):
    conf = str(write_conf(tmp_path / "conf"))
    table = pa.Table.from_pylist(list(publishes()))
    write_deltalake(tmp_path / "empty", table.schema.empty_table())
    write_deltalake(tmp_path / "by_day", table.append_column("_day", pa.repeat("x", len(table))), partition_by="_day")
    assert main(["try", str(tmp_path / "by_day"), "--conf-dir", conf]) == 0
    assert main(["try", str(tmp_path / "empty"), "--conf-dir", conf]) == 2
    assert "no row" in capsys.readouterr().out


def test_the_format_is_that_of_the_names(tmp_path):
    for names, expected in ((["a.jsonl", "b.ndjson.gz"], "json"), (["a.parquet"], "parquet"), (["x.CSV"], "csv")):
        folder = tmp_path / expected
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        assert format_of(str(folder)) == expected
    assert format_of("-") == "json"
    assert format_of(str(tmp_path / "parquet" / "*.parquet")) == "parquet"


def test_a_trace_too_large_for_one_process_is_told_with_the_command_to_use(tmp_path, monkeypatch):
    trace = tmp_path / "t.json"
    monkeypatch.setitem(inputs.MOST_MIB, "json", 1)
    trace.write_bytes(bytes(2**20))
    check_patience(str(trace), "json", "s3a://b/t")
    trace.write_bytes(bytes(2**20 + 1))
    with pytest.raises(InputError, match=r"spark-submit.sh jobs/throttle.py --input s3a://b/t --format json"):
        check_patience(str(trace), "json", "s3a://b/t")


def test_a_stop_before_anything_is_there_is_no_traceback(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.tryout.command.run", interrupted)
    assert main(["try"]) == 130
    assert capsys.readouterr().err == "headgate: stopped\n"


def test_an_output_belongs_to_one_run(tmp_path):
    output = tmp_path / "new" / "deep"
    with claimed(str(output)):
        for taken in (output, output / ".running"):
            with pytest.raises(InputError, match="another run writes there"), claimed(str(taken)):
                pass
    assert not output.exists()
    with claimed(str(output)):
        (output / "one" / "marks" / "_delta_log").mkdir(parents=True)
        assert [places.tried(str(folder)) for folder in (output, output / "one")] == [RUNNING] * 2
    assert [places.tried(str(folder)) for folder in (output, output / "one", tmp_path / "new")] == [TRIED, TRIED, ""]
    with pytest.raises(InputError, match=r"--output: /proc/x cannot be written"), claimed("/proc/x"):
        pass


def test_what_stdin_cannot_be_and_an_output_without_a_name_are_refused():
    with pytest.raises(HeadgateError, match=r"--format: got parquet with PATH -") as refused:
        run(options(path="-", format="parquet", output="", conf_dir=["conf"]))
    assert "--output: got ''" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"max_wait_ms": 5}, ["--max-wait-ms: needs --recommend DIR"]),
        (
            {"recommend": "", "max_waiting_percent": 100.0, "max_wait_ms": 30_000},
            [
                "--recommend: got ''; give a new or an empty folder",
                "--max-waiting-percent: got 100; allowed: from 0 to below 100",
                "--max-wait-ms: got 30000; allowed: from 0 to below 30000 (operator.send_timeout_ms)",
            ],
        ),
        (
            {"recommend": "new", "watch": True, "output": "out", "traffic": "admitted"},
            [
                "--watch: runs again",
                "--output: keeps the tables of one run",
                "--traffic: got admitted with --recommend",
            ],
        ),
    ],
)
def test_what_does_not_go_with_a_recommendation_is_refused_in_words(tmp_path, given, parts):
    (tmp_path / "t.json").touch()
    folder = str(write_conf(tmp_path / "conf"))
    with pytest.raises(HeadgateError) as refused:
        run(options(path=str(tmp_path / "t.json"), conf_dir=[folder], **given))
    for part in parts:
        assert part in str(refused.value)


def test_tables_in_what_is_read_are_refused(tmp_path):
    read, folder = tmp_path / "in", str(write_conf(tmp_path / "conf"))
    read.mkdir()
    (read / "t.json").touch()
    with pytest.raises(HeadgateError, match=f"--output: got {read}/x, which is in the PATH {read}, "):
        run(options(path=str(read), conf_dir=[folder], output=f"{read}/x"))


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_recommendation_is_for_one_conf_folder_and_goes_elsewhere(tmp_path, scheme):
    (tmp_path / "t.json").touch()
    one, other = (str(write_conf(tmp_path / name)) for name in ("one", "other"))
    with pytest.raises(HeadgateError) as refused:
        run(options(path=str(tmp_path / "t.json"), conf_dir=[one, other], recommend=f"{scheme}{one}/new"))
    assert "--conf-dir: got 2 with --recommend" in str(refused.value)
    assert "inside the conf folder" in str(refused.value)


def test_a_recommendation_waits_for_a_full_disk_as_an_output_does(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "LEAST_FREE_BYTES", 1 << 62)
    (tmp_path / "t.json").touch()
    folder = str(write_conf(tmp_path / "conf"))
    with pytest.raises(TransientError, match=r"^--recommend: .* MiB free; "):
        run(options(path=str(tmp_path / "t.json"), conf_dir=[folder], recommend=str(tmp_path / "new")))


def test_a_refused_output_is_not_made(tmp_path):
    check_new(str(tmp_path / "new" / "deep"))
    assert not (tmp_path / "new").exists()


def test_neither_help_nor_a_mistake_loads_what_runs_the_rules(tmp_path):
    folder = str(write_conf(tmp_path / "conf", maxPublishRatePerTopicInMessages="many"))
    calls = [["--help"], ["try", "--help"], ["try", "--conf-dir", folder, "nothing-there"]]
    program = (
        f"import sys\nfrom headgate.cli import main\nfor arguments in {calls!r}:\n"
        "    try:\n        status = main(arguments)\n    except SystemExit as error:\n        status = error.code\n"
        f"    print('loaded', status, sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert told == ["loaded 0 []", "loaded 0 []", "loaded 2 []"], done.stderr


def test_a_reader_who_has_enough_ends_it_without_a_word(tmp_path):
    folder = write_conf(tmp_path / "conf")
    command = f"{sys.executable} -m headgate try {tmp_path}/t.json --conf-dir {folder} | head -0"
    (tmp_path / "t.json").write_text("")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if not line.startswith("try: compil")]
    assert (done.stdout, told) == ("", [])


def test_tables_are_whole_where_the_reader_of_the_screen_has_enough(tmp_path):
    file, folder = write_trace(tmp_path / "t.json", publishes()), write_conf(tmp_path / "conf")
    command = f"{sys.executable} -m headgate try {file} --conf-dir {folder} --output {tmp_path}/out | true"
    subprocess.run(command, shell=True, capture_output=True, check=False)
    assert places.tried(str(tmp_path / "out")) == TRIED


def tried(tmp_path, name, text, *more, **broker):
    """The status of headgate try over one file."""
    (tmp_path / name).write_text(text)
    return main(["try", str(tmp_path / name), "--conf-dir", str(write_conf(tmp_path / "conf", **broker)), *more])


@pytest.mark.usefixtures("no_store")
def test_a_trace_on_a_store_that_is_away_is_given_up_on_soon(capsys, monkeypatch):
    waited = []

    def watched(place, patience=PATIENT):
        waited.append(patience)
        return file_system(place, patience)

    monkeypatch.setattr(stores, "file_system", watched)
    assert main(["try", "s3a://b/t.json"]) == 1
    assert waited == [AT_FIRST]
    assert capsys.readouterr().err.startswith("headgate: PATH: s3a://b/t.json cannot be reached: ")


def test_a_trace_may_be_an_address_of_this_machine(tmp_path, capsys):
    file = write_trace(tmp_path / "t.json", publishes())
    assert main(["try", f"file://{file}", "--conf-dir", str(write_conf(tmp_path / "conf"))]) == 0
    assert "Throttled tenants" in capsys.readouterr().out


def test_an_empty_trace_is_named_and_is_no_success(tmp_path, capsys):
    assert tried(tmp_path, "t.json", "") == 2
    assert capsys.readouterr().out.endswith(f"Nothing was tried: there is no row in {tmp_path}/t.json.\n")


def test_an_empty_file_among_others_is_named(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    write_trace(tmp_path / "in" / "a.json", publishes())
    (tmp_path / "in" / "b.json").touch()
    assert main(["try", str(tmp_path / "in"), "--conf-dir", str(write_conf(tmp_path / "conf"))]) == 0
    assert f"\nEmpty: {tmp_path}/in/b.json\n" in capsys.readouterr().out


HEADER = "event_time,seq,broker,topic,kind,producer,connection,messages,"
ROW = "2026-01-05T09:00:00Z,{},b,persistent://a/b/c,publish,p,c,1,{}\n"


def test_rows_that_are_all_bad_are_no_success_and_told_by_reason_with_an_example(tmp_path, capsys):
    text = HEADER + "size\n" + ROW.format(1, 5) + ROW.format(2, 5) + ROW.format("x", 5) + "short\n"
    assert tried(tmp_path, "t.csv", text) == 2
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Rows that could not be used: 4; what else is said here is of the others. Most of them for")
    assert lines[start + 1 : start + 7] == [
        "  2 x column missing: bytes; found: size",
        f"      as in {ROW.format(1, 5).strip()}",
        "  1 x column missing: bytes; found: size; seq: allowed is a whole number of 64 bits",
        f"      as in {ROW.format('x', 5).strip()}",
        "  1 x the line has 1 fields, the header of its file has 9",
        "      as in short",
    ]
    assert lines[-1] == "Nothing was tried: none of the rows could be used."


def test_some_bad_rows_are_told_with_the_query_for_all_of_them(tmp_path, capsys):
    text = HEADER + "bytes\n" + ROW.format(1, 5) + ROW.format(2, "many") + ROW.format(3, 5)
    assert tried(tmp_path, "t.csv", text, "--output", str(tmp_path / "out")) == 0
    out = capsys.readouterr().out
    assert "\nTOO LITTLE: 33.3% of the rows could not be used." in out
    assert "  1 x bytes: allowed is a whole number from 0 to 9223372036854775807" in out
    (query,) = (line for line in out.splitlines() if line.startswith("  all of them: headgate sql "))
    assert main(shlex.split(query)[4:]) == 0, query
    assert "got many" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.csv": "event_time,no,broker,kind\n"}, r"a.csv: column missing: seq; found: event_time, no, broker, kind"),
        (
            {"a.csv.gz": "event_time,no,broker,kind\n"},
            r"a.csv.gz: column missing: seq; found: event_time, no, broker, kind",
        ),
        ({"a.csv": "\n\ufefftime,broker\n"}, r"columns missing: event_time, seq, kind; found: time, broker"),
        ({"a.csv": "event_time,no,broker,kind\n", "b.csv": HEADER + "bytes\n"}, None),
        ({"a.csv": ""}, None),
    ],
)
def test_a_header_with_which_no_row_can_be_used_is_refused_at_once(tmp_path, files, said):
    for name, text in files.items():
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    if said is None:
        check_headers(f"{tmp_path}/*.csv*", "csv", "PATH")
    else:
        with pytest.raises(InputError, match=rf"PATH: .*{said}; every row would be a dead letter"):
            check_headers(f"{tmp_path}/*.csv*", "csv", "PATH")


def test_the_columns_of_parquet_files_are_looked_at_as_well(tmp_path):
    pq.write_table(pa.table({"Event_Time": [1], "SEQ": [1], "broker": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"column missing: kind; found: event_time, seq, broker; "):
        check_headers(str(tmp_path), "parquet", "--input")


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_a_delta_table_is_not_read_file_by_file(tmp_path, format_):
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(InputError, match=f"^PATH: s3a://b/t is a Delta table.* as {format_}, .*; give --format"):
        check_headers(str(tmp_path), format_, "PATH", "s3a://b/t")


UNKNOWN = {"publishThrottlingRatePerTopicInMsgs": 5}


def test_warnings_are_told_before_and_after_the_results_and_beside_mistakes(tmp_path, capsys):
    said = "publishThrottlingRatePerTopicInMsgs: headgate does not read this key; if "
    assert tried(tmp_path, "t.csv", HEADER + "bytes\n" + ROW.format(1, 5), **UNKNOWN) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [said in line for line in (lines[0], *lines[1:-1], lines[-1])] == [True, *[False] * (len(lines) - 2), True]
    assert tried(tmp_path, "t.csv", "", maxPublishRatePerTopicInMessages="many", **UNKNOWN) == 2
    assert said in capsys.readouterr().err


def test_strict_makes_warnings_mistakes(tmp_path, capsys):
    assert tried(tmp_path, "t.csv", HEADER + "bytes\n" + ROW.format(1, 5), "--strict", **UNKNOWN) == 2
    assert capsys.readouterr().err.startswith("headgate: 1 mistake in the configuration:\n")


def test_an_output_without_space_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("headgate.places.LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(InputError, match=r"MiB free; allowed: at least 1,099,511,627,776 MiB"):
        check_new(str(tmp_path / "new"))


def test_the_command_does_not_load_pandas_which_pyarrow_would(tmp_path):
    (tmp_path / "t.json").write_text("")
    arguments = ["headgate", "try", str(tmp_path / "t.json"), "--conf-dir", str(write_conf(tmp_path / "conf"))]
    program = f"import sys\nsys.argv = {arguments!r}\nfrom headgate.cli import main\nmain()\n"
    program += "print([name for name in sys.modules if name.startswith('pandas.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_counters_of_a_collector_are_tried_as_admitted_traffic(tmp_path, capfd):
    """Columns that traffic does not have are ignored, looks without traffic are no rows."""
    count = {"kind": "usage", "broker": "b1", "collector": "c", "throttled": None, "topic": ACME, "direction": "in"}
    rows = [count | {"seq": 1, "event_time": START_US, "from_us": START_US, "messages": 0, "bytes": 0}]
    for seq in range(2, 6):
        until_us = START_US + (seq - 1) * 5_000_000
        interval = {"seq": seq, "event_time": until_us, "at_us": until_us, "from_us": until_us - 5_000_000}
        rows += [count | interval | {"messages": 300, "bytes": 3000, "messages_total": 300 * seq}]
        rows += [rows[-1] | {"direction": "out", "messages": 5}]
    table = tmp_path / "counters"
    write_deltalake(table, pa.Table.from_pylist(rows, COUNTERS))
    conf = write_conf(tmp_path / "conf", "[operator]\nkernel = 'python'\n", maxPublishRatePerTopicInMessages=40)
    output = str(tmp_path / "out")
    given = {"path": str(table), "conf_dir": [str(conf)], "output": output, "traffic": "admitted"}
    assert run(options(**given)) == 0
    assert "acme" in capfd.readouterr().out
    usage = query(output, "SELECT sum(messages) AS messages, sum(publishes) AS publishes FROM topic_usage")
    assert [{"messages": 1200, "publishes": 200}] == usage.to_pylist()
    counted = query(output, "SELECT sum(rows) AS rows, sum(dead_letters) AS dead_letters FROM batches")
    assert [{"rows": 220, "dead_letters": 0}] == counted.to_pylist()
