"""`headgate sweep`, jobs/cache_sweep.py: each broker as its own cache says, in any order of rows; what is refused."""

import json
import multiprocessing
import os
import random
import signal
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headgate.cli import main
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.sampling import sampled
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.compiled import kernel
from headgate.report.sweep import command as sweep_command
from headgate.report.sweep.screen import SweepScreen
from headgate.sizing.combinations import for_sample
from headgate.spark import cache_sweep
from headgate.spark.job import STOPPED, status_of_whole
from headgate.tables.query import query
from unit.jobs import main_of

BYTES = 256 * 1024
GRID = 'sizes_mib = [0.25]\npolicies = ["pip430", "lru", "belady"]\n'
BROKERS = {f"broker/{seed}": list(islice(generate("mixed", seed), 4000)) for seed in (1, 2)}
BAD = [
    '{"event_time": "never", "seq": 1, "broker": "broker/1", "kind": "add", "topic": "t"}',
    '{"seq": 1',
    '{"event_time": 5, "seq": 900000, "broker": "broker/1", "kind": "publish", "topic": "t0000"}',
]


@pytest.fixture(scope="module")
def sweep():
    """The command, without Spark."""
    return lambda *arguments: main(["sweep", *map(str, arguments)])


@pytest.fixture(scope="module")
def sweep_on_spark():
    """The job's main, in this process."""
    return lambda *arguments: main_of("cache_sweep")([str(argument) for argument in arguments])


def line(broker: str, row: Row) -> str:
    at = datetime.fromtimestamp(row.t_us / 1e6, UTC).isoformat(timespec="microseconds")
    values = {name: value for name, value in row._asdict().items() if value is not None and name != "t_us"}
    return json.dumps({"event_time": at, "broker": broker, **values})


def conf_in(folder: Path) -> list[object]:
    (folder / "broker.conf").write_text(f"headgate.cache.maxBytes={BYTES}\n")
    (folder / "grid.toml").write_text(GRID)
    return ["--conf-dir", folder, "--grid", folder / "grid.toml"]


def rows_of(output: Path, table: str) -> list[dict]:
    return query(f"SELECT * FROM {table}", {table: DeltaTable(output / table)}).to_pylist()


def misses(policy: str, rows: list[Row], every: int = 1) -> int:
    settings = CacheSettings.of({"headgate.cache.policy": policy, "headgate.cache.maxBytes": BYTES})
    cache, cut = Cache(for_sample(settings, every)), list(sampled(rows, every))
    if policy == "belady":
        cache.foresee(cut)
    for row in cut:
        cache.feed(row)
    return cache.totals()["misses"] * every


@pytest.mark.parametrize("every", [1, 10])
def test_every_combination_is_what_its_cache_says_of_each_broker(every: int, sweep, tmp_path: Path, capsys) -> None:
    """Rows in any order in two files, three of them bad, and one that would change the conf."""
    lines = [line(broker, row) for broker, rows in BROKERS.items() for row in rows] + BAD
    lines.append(
        '{"event_time": 7, "seq": 1, "broker": "broker/1", "kind": "conf", "conf": {"managedLedgerCacheSizeMB": 1}}'
    )
    random.Random(7).shuffle(lines)
    (tmp_path / "trace").mkdir()
    for number in (0, 1):
        (tmp_path / "trace" / f"{number}.json").write_text("\n".join(lines[number::2]) + "\n")
    output = tmp_path / "out"
    status = sweep("--input", tmp_path / "trace", "--output", output, "--sample", every, *conf_in(tmp_path))
    told = capsys.readouterr()
    assert status == 0, told.err

    found = {(row["policy"], row["broker"]): row["misses"] for row in rows_of(output, "cache_sweep")}
    wanted = {
        (policy, broker): misses(policy, rows, every)
        for policy in ("pip430", "lru", "belady")
        for broker, rows in BROKERS.items()
    }
    together = {
        (policy, None): sum(wanted[policy, broker] for broker in BROKERS) for policy in ("pip430", "lru", "belady")
    }
    assert found == wanted | together
    letters = sorted((row["reason"], row["raw"]) for row in rows_of(output, "dead_letters"))
    assert [raw for _, raw in letters] == [BAD[0], BAD[1], BAD[2]]
    assert [why.split(",")[0] for why, _ in letters] == [
        "bad_row: event_time: got never",
        "bad_row: the line is not a JSON object",
        "unknown_kind: got 'publish'",
    ]
    named = {(row["source"].rpartition("/")[2], row["offset"]) for row in rows_of(output, "dead_letters")}
    assert named == {(f"{at % 2}.json", at // 2 + 1) for at in map(lines.index, BAD)}
    assert "1 row of kind conf is left out" in told.out
    assert "6 of 6 runs" in told.out
    assert (output / "report.html").read_text().count("<img") == 5
    assert not (output / "trace").exists()


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["local", "spark"])
def sweep_of_made_up_traffic(request: pytest.FixtureRequest, sweep):
    if not request.param:
        return sweep
    request.getfixturevalue("spark")
    return request.getfixturevalue("sweep_on_spark")


def test_parquet_and_made_up_traffic_give_the_same_on_both_engines(
    sweep, sweep_of_made_up_traffic, tmp_path: Path, capsys
) -> None:
    """What the generator makes is read back from Parquet with times as whole microseconds.

    A file among them that was cut off is left out, and told of.
    """
    names = ("seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes")
    rows = list(generate("replay", 1))
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    table = pa.table({"event_time": [row.t_us for row in rows], "broker": ["replay-1"] * len(rows), **columns})
    (tmp_path / "trace").mkdir()
    pq.write_table(table, tmp_path / "trace" / "part-00000.parquet")
    whole = (tmp_path / "trace" / "part-00000.parquet").read_bytes()
    (tmp_path / "trace" / "part-99999.parquet").write_bytes(whole[:-100])
    conf = conf_in(tmp_path)
    (tmp_path / "grid.toml").write_text('sizes_mib = [0.25]\npolicies = ["pip430"]\n')
    given = ("--input", tmp_path / "trace", "--format", "parquet")
    assert sweep(*given, "--output", tmp_path / "a", "--sample", 20, *conf) == 0
    assert sweep_of_made_up_traffic("--family", "replay", "--output", tmp_path / "b", "--sample", 20, *conf) == 0
    read, made = ([{**row, "cpu_s": 0} for row in rows_of(tmp_path / one, "cache_sweep")] for one in "ab")
    assert made == read
    assert len(read) == 2
    (letter,) = rows_of(tmp_path / "a", "dead_letters")
    assert letter["source"].endswith("/part-99999.parquet")
    assert letter["reason"].startswith("the file cannot be read to its end; rows that are not read are lost: ")
    assert "part-99999.parquet cannot be read to its end and is left out" in capsys.readouterr().out


def test_compiling_is_told_before_the_first_run(sweep, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sweep_command, "load_rules", lambda _: kernel(eval("lambda x: x + 1"))(3))
    event = {"event_time": 5, "seq": 0, "broker": "b", "kind": "open", "topic": "t", "cursor": "c"}
    (tmp_path / "trace.json").write_text(json.dumps(event) + "\n")
    given = ("--input", tmp_path / "trace.json", "--output", tmp_path / "out")
    assert sweep(*given, *conf_in(tmp_path)) == 0
    told = capsys.readouterr().out
    assert (
        -1 < told.find("sweep: compiling the rules") < told.find("sweep: compiled the rules") < told.find(" runs in ")
    )


def test_a_stop_breaks_a_sweep_off_with_its_processes(sweep, tmp_path: Path, capsys, monkeypatch) -> None:
    """While runs are under way."""
    monkeypatch.setattr(SweepScreen, "ended", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    before, output = signal.getsignal(signal.SIGINT), tmp_path / "out"
    assert sweep("--family", "replay", "--output", output, *conf_in(tmp_path)) == 3
    assert "sweep: stopped before its end: what it has written is no whole result" in capsys.readouterr().err
    assert not (output / "trace").exists()
    assert not (output / "report.html").exists()
    assert not multiprocessing.active_children()
    assert before == signal.getsignal(signal.SIGINT)


def test_a_stop_breaks_a_sweep_off_and_leaves_no_trace(
    sweep_on_spark, spark: SparkSession, tmp_path: Path, capsys, monkeypatch
) -> None:
    """While its runs are under way; the session goes on."""
    looked = cache_sweep._tasks_ended

    def stop(*arguments: object) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return looked(*arguments)

    monkeypatch.setattr(cache_sweep, "_tasks_ended", stop)
    before, output = signal.getsignal(signal.SIGTERM), tmp_path / "out"
    assert sweep_on_spark("--family", "replay", "--output", output, *conf_in(tmp_path)) == 3
    assert "cache_sweep: stopped before its end: what it has written is no whole result" in capsys.readouterr().err
    assert not (output / "trace").exists()
    assert not (output / "report.html").exists()
    assert before == signal.getsignal(signal.SIGTERM)


def test_a_stop_is_told_as_one_though_the_jvm_is_stopped_with_the_job(capsys) -> None:
    """Ctrl-C goes to all processes of a terminal; what the job has begun cannot be put away then."""

    def work() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            return 0
        finally:
            try:
                raise Py4JError("org does not exist in the JVM")
            finally:
                raise Py4JError("org does not exist in the JVM")

    assert status_of_whole("cache_sweep", work) == STOPPED
    told = "cache_sweep: stopped before its end: what it has written is no whole result\n"
    assert told == capsys.readouterr().err


def test_a_report_that_is_there_is_never_removed_for_an_input(sweep, tmp_path: Path, capsys, monkeypatch) -> None:
    """Not even in the default folder, which made-up traffic has to itself; the input might be there."""
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "output" / "cache-sweep" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("of last week")
    assert sweep("--input", tmp_path / "events", *conf_in(tmp_path)) == 2
    assert "output/cache-sweep is there and not empty; give a new or an empty folder" in capsys.readouterr().err
    assert sweep("--input", report.parent, *conf_in(tmp_path)) == 2
    assert "output/cache-sweep, which is in the --input" in capsys.readouterr().err
    assert report.read_text() == "of last week"


def test_what_is_wrong_is_told_before_anything_runs(sweep, tmp_path: Path, capsys) -> None:
    conf = conf_in(tmp_path)
    (tmp_path / "grid.toml").write_text('sizes_mib = [1]\npolicies = ["mru"]\n')
    assert sweep(*conf, "--output", tmp_path / "out") == 2
    assert "policies: got ['mru']; allowed: a list of names out of pip430" in capsys.readouterr().err
    (tmp_path / "grid.toml").write_text(GRID)
    assert sweep(*conf, "--output", tmp_path / "grid.toml" / "out") == 2
    assert "grid.toml is a file; give another folder" in capsys.readouterr().err
    assert sweep(*conf, "--output", tmp_path / "out", "--sample", "0") == 2
    assert "--sample: got 0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_input_without_any_event_is_refused(sweep, tmp_path: Path, capsys) -> None:
    (tmp_path / "trace.json").write_text(BAD[0] + "\n")
    given = ("--input", tmp_path / "trace.json", "--output", tmp_path / "out")
    assert sweep(*given, *conf_in(tmp_path)) == 2
    assert "no event of a cache could be read (1 bad rows" in capsys.readouterr().err
