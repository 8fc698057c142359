"""`headgate replay`, jobs/replay.py: the same rows on both engines, in any order; two confs; what is refused."""

import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.cli import main
from headgate.replay.schemas import TABLES
from headgate.tables.query import query
from headgate.trace import TraceSpec, write_trace
from integration.runs import GROUPS, TOPIC_LIMIT, settings, write_conf
from unit.jobs import main_of

SPEC = TraceSpec(
    events=1_500,
    duration_s=8.0,
    brokers=2,
    tenants=3,
    namespaces_per_tenant=1,
    topics=9,
    bursts=3,
    swing_period_s=8.0,
    files=3,
    bad_share=0.02,
    dispatch_share=0.1,
)
SETTINGS = "[operator]\ngroup_limits = 'shared'\nsend_timeout_ms = 3000\n"
RESULTS = [name for name in TABLES if name != "dead_letters"]


@pytest.fixture(scope="module")
def replay():
    """The command, without Spark."""
    return lambda *arguments: main(["replay", *map(str, arguments)])


@pytest.fixture(scope="module")
def replay_on_spark():
    """The job's main, in this process."""
    return lambda *arguments: main_of("replay")([str(argument) for argument in arguments])


def rows_of(output: Path, table: str) -> list[dict]:
    found = query(f"SELECT * FROM {table}", {table: DeltaTable(output / table)}).to_pylist()
    return sorted(found, key=repr)


def confs_in(folder: Path) -> list[Path]:
    wider = json.loads(json.dumps(GROUPS))
    wider["resourcegroups"]["gold"]["publishRateInMsgs"] = 400
    return [
        write_conf(folder / name, SETTINGS, broker=TOPIC_LIMIT, groups=groups)
        for name, groups in (("narrow", GROUPS), ("wide", wider))
    ]


def other_way_round(trace: Path, folder: Path) -> Path:
    """The same rows in one file, in any order."""
    lines = [line for file in sorted(trace.glob("*.json")) for line in file.read_text().splitlines()]
    random.Random(7).shuffle(lines)
    folder.mkdir()
    (folder / "all.json").write_text("\n".join(lines) + "\n")
    return folder


def test_two_confs_side_by_side_whatever_the_engine_and_the_order_of_rows(
    replay, replay_on_spark, spark: SparkSession, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    made = write_trace(SPEC, tmp_path / "trace", "json")
    confs = [part for folder in confs_in(tmp_path) for part in ("--conf-dir", folder)]
    given = ("--format", "json", *confs)
    assert replay("--input", tmp_path / "trace", "--output", tmp_path / "one", *given) == 0
    told = capsys.readouterr().out
    shuffled = other_way_round(tmp_path / "trace", tmp_path / "shuffled")
    with settings(spark, spark__sql__shuffle__partitions=8, spark__sql__execution__arrow__maxRecordsPerBatch=100):
        assert replay_on_spark("--input", shuffled, "--output", tmp_path / "eight", *given) == 0
    for table in RESULTS:
        assert rows_of(tmp_path / "one", table) == rows_of(tmp_path / "eight", table)

    groups = rows_of(tmp_path / "one", "replay_groups")
    assert {"narrow", "wide"} == {row["conf"] for row in groups}
    bad = len(rows_of(tmp_path / "one", "dead_letters"))
    (left_out,) = {int(count) for count in re.findall(r"(\d+) rows of other kinds are left out", told)}
    assert 0 < bad
    assert 0 < left_out
    for conf in ("narrow", "wide"):
        of_conf = [row for row in groups if row["conf"] == conf]
        assert made.rows == sum(row["offered_publishes"] for row in of_conf) + bad + left_out
        for row in of_conf:
            assert row["offered_msgs"] == row["admitted_msgs"] + row["failed_msgs"] + row["waiting_msgs"]
    failed = {row["conf"]: row["failed_msgs"] for row in groups if row["group"] == "gold"}
    assert failed["wide"] < failed["narrow"]

    report = (tmp_path / "one" / "report.html").read_text()
    assert report == (tmp_path / "eight" / "report.html").read_text()
    assert "group gold: 60 \N{RIGHTWARDS ARROW} 400 msg/s" in report
    assert "http" not in re.sub(r"data:image/[^\"]*", "", report)
    assert re.search(r"gold +narrow +60 msg/s", told)
    assert f"Report: {tmp_path}/one/report.html" in told


def test_a_broker_limit_makes_one_key_of_all_and_the_screen_says_so(replay, tmp_path: Path, capsys) -> None:
    write_trace(SPEC, tmp_path / "trace", "parquet")
    broker = {"brokerPublisherThrottlingMaxMessageRate": 90}
    conf = write_conf(tmp_path / "tied", SETTINGS, broker=broker, groups=GROUPS)
    folders = ("--input", tmp_path / "trace", "--format", "parquet", "--output", tmp_path / "out", "--conf-dir", conf)
    assert replay(*folders, "--traffic", "admitted") == 0
    groups = rows_of(tmp_path / "out", "replay_groups")
    assert 0 < sum(row["throttled_by_broker"] for row in groups)
    assert {0} == {row["failed_msgs"] + row["delayed_msgs"] for row in groups}
    assert "ties all groups and brokers together" in capsys.readouterr().out


def test_a_damaged_file_is_told_of_and_the_rest_is_replayed(
    replay, replay_on_spark, spark: SparkSession, tmp_path: Path
) -> None:
    write_trace(replace(SPEC, bad_share=0.0), tmp_path / "trace", "parquet")
    shutil.copytree(tmp_path / "trace", tmp_path / "rest")
    damaged = sorted((tmp_path / "trace").iterdir())[1]
    damaged.write_bytes(b"no Parquet, and longer than its magic number")
    (tmp_path / "rest" / damaged.name).unlink()
    conf = write_conf(tmp_path / "conf", SETTINGS, groups=GROUPS)
    for run, name, out in ((replay, "rest", "rest"), (replay, "trace", "local"), (replay_on_spark, "trace", "spark")):
        folders = ("--input", tmp_path / name, "--output", tmp_path / f"{out}-out", "--conf-dir", conf)
        assert run(*folders, "--format", "parquet") == 0
    for out in ("local", "spark"):
        for table in RESULTS:
            assert rows_of(tmp_path / "rest-out", table) == rows_of(tmp_path / f"{out}-out", table)
        (letter,) = rows_of(tmp_path / f"{out}-out", "dead_letters")
        assert damaged.name == Path(letter["source"]).name
        assert letter["reason"].startswith("the file cannot be read to its end; rows that are not read are lost: ")


def test_all_mistakes_of_all_folders_are_told_at_once(replay, tmp_path: Path, capsys) -> None:
    first = write_conf(tmp_path / "a", "[input]\nformatt = 'json'\n")
    second = write_conf(tmp_path / "b", broker={"numIOThreads": "0"})
    again = write_conf(tmp_path / "more" / "a")
    named = ("--conf-dir", first, "--conf-dir", second, "--conf-dir", again, "--conf-dir", tmp_path / "nowhere")
    assert replay("--input", tmp_path, *named) == 2
    told = capsys.readouterr().err
    assert told.startswith("headgate: 4 mistakes in the configuration:\n")
    assert re.search(r"a/headgate.toml line 2: input.formatt", told)
    assert re.search(r"b/broker.conf line 1: numIOThreads", told)
    assert re.search(r"more/a: got the name a a second time", told)
    assert re.search(r"nowhere: got no directory", told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--output", "full"), r"--output: full is there and not empty"),
        (("--output", "new", "--delay-ms", "9000"), r"conf: --delay-ms: got 9000; allowed: an integer from 0 to 2000"),
        (("--output", "trace/out"), r"--output: got trace/out, which is in the --input trace"),
        (("--output", "new", "--input", "nowhere"), r"--input: nothing is at nowhere"),
        (
            ("--output", "new", "--input", "BAD"),
            r"--input: .*/bad has no publish that can be replayed \(1 bad rows, 0 of other kinds\)",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, told, replay, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("trace", "full", "bad"):
        Path(folder).mkdir()
        Path(folder, "a.json").write_text("{}\n")
    write_conf(Path("conf"), SETTINGS, groups=GROUPS)
    options = ("--input", tmp_path / "trace", "--format", "json", "--conf-dir", "conf")
    if "trace/out" in arguments:
        options = ("--input", "trace", *options[2:])
    assert replay(*options, *(tmp_path / "bad" if one == "BAD" else one for one in arguments)) == 2
    assert re.search(told, capsys.readouterr().err)
    assert not Path("new").exists()
