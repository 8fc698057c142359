"""The entry cache's job on real files, tables and processes: cut, stopped and killed, what it tells is the same."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.cache.schemas import EVENTS, OF_CACHE
from headgate.conf import load_conf
from headgate.errors import ConfError, InputError, StateError
from headgate.spark.entry_cache import CacheJob, CacheResult, CacheRun
from headgate.spark.feed import has_open_batch
from headgate.spark.state import read_state
from headgate.tables.delta import Tables
from integration.cache_events import (
    BROKERS,
    START,
    at,
    conf_event,
    events,
    fed,
    parts,
    results_of,
    write_lines,
    write_table,
)
from integration.engines import Engine
from integration.processes import commits, kill_at_commits, options, run_job
from integration.runs import PATIENCE_S, conf_in, write_conf
from unit.jobs import main_of

ROWS, FILES = 1500, 5
MAX_BYTES, TTL = "headgate.cache.maxBytes", "managedLedgerCacheEvictionTimeThresholdMillis"
SMALL = {MAX_BYTES: 60_000, TTL: 200}
LIVE = "[live]\nlive_within_ms = 3600000\nlive_lag_ms = 200\n"
ONE_FILE = "[input]\nmax_files_per_trigger = 1\n"


def job_in(output: Path, input_: Path, format_: str = "json") -> CacheJob:
    return CacheJob(str(input_), str(output), str(output / "checkpoint"), format_, evictions=True, once=True)


def run(spark: SparkSession, conf: Any, job: CacheJob) -> list[CacheResult]:
    heard: list[CacheResult] = []
    assert CacheRun(spark, job, conf, heard.append, Event()).run()
    return heard


def some_events() -> list[dict[str, Any]]:
    """Of two brokers, of which one gets another limit in between."""
    rows = [*events(ROWS), conf_event(90_000, 10**6, **{MAX_BYTES: 30_000})]
    return sorted(rows, key=lambda row: row["event_time"])


NINE = {"event_time": "2026-01-05T09:00:00Z", "broker": "broker-1"}
ONE = NINE | {"topic": "t", "cursor": "c", "ledger": 0, "entry": 0, "sizes": [1]}
BAD_LINES = (
    json.dumps(NINE | {"seq": 1, "kind": "sneeze"}),
    json.dumps(ONE | {"seq": 2, "kind": "read", "ledger": "x"}),
    json.dumps(ONE | {"seq": 3, "kind": "add", "topic": {}}),
    json.dumps(ONE | {"seq": 4, "kind": "add", "sizes": [1.5]}),
    json.dumps(NINE | {"seq": 5, "kind": "close", "event_time": "tomorrow"}),
    json.dumps(NINE | {"kind": "close", "broker": " "}),
    json.dumps(NINE | {"seq": 6, "kind": "close", "event_time": "2101-01-05T09:00:00Z"}),
    "no JSON",
    " ",
)
REASONS = [
    "bad_row: add needs topic,",
    "bad_row: add needs topic,",
    "bad_row: column missing: seq; found: ",
    "bad_row: event_time: got 2101-01-05T09:00:00Z, allowed is 2000",
    "bad_row: event_time: got tomorrow, allowed is ISO 8601",
    "bad_row: read needs topic,",
    "bad_row: the line is not a JSON object",
    "unknown_kind: got 'sneeze'",
]


def test_files_become_metrics_evictions_and_dead_letters(engine: Engine, tmp_path: Path) -> None:
    """What is told last is what the rules count of the rows alone."""
    rows = some_events()
    input_ = write_lines(tmp_path / "in", rows, 1, *BAD_LINES)
    (first, *_) = engine.cache(conf_in(tmp_path / "conf", broker=SMALL), input_, tmp_path / "out")
    assert (2 * ROWS + 5, 8) == (first.rows, first.dead_letters)

    results = results_of(tmp_path / "out")
    for (reason, raw), begin in zip(results["dead_letters"], REASONS, strict=True):
        assert reason.startswith(begin)
        assert raw in BAD_LINES
    places = Tables(tmp_path / "out", OF_CACHE).read("dead_letters").to_pylist()
    assert {raw: number for number, raw in enumerate(BAD_LINES[:8], 1)} == {row["raw"]: row["offset"] for row in places}
    assert 1 == len({row["source"] for row in places})
    for broker in BROKERS:
        totals = fed(rows, broker, SMALL).totals()
        last = [row for row in results["metrics"] if row["broker"] == broker and row["topic"] is None][-1]
        same = {"hits", "misses", "storage_bytes", "inserted", "expired", "evicted", "requeues", "visits", "entries"}
        assert {name: totals[name] for name in same} == {name: last[name] for name in same}
        assert totals["evicted"] > 0
        gone = [row for row in results["evictions"] if row[0] == broker]
        assert sum(totals[cause] for cause in ("expired", "evicted", "dropped", "invalidated")) == len(gone)
        topics = [row for row in results["metrics"] if row["broker"] == broker and row["second"] == last["second"]]
        assert {row["topic"] for row in topics} > {None}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entry-cache")
    write_lines(folder / "in", some_events(), FILES)
    write_conf(folder / "conf", ONE_FILE, broker=SMALL)
    return folder


@pytest.fixture(scope="module")
def calm(scene: Path, spark_of_all_tests: SparkSession) -> Path:
    """The tables of an undisturbed run, a batch a file."""
    job = job_in(scene / "calm", scene / "in")
    assert FILES < len(run(spark_of_all_tests, load_conf(scene / "conf"), job))
    return scene / "calm"


def test_batches_restarts_and_formats_change_nothing(
    engine: Engine, spark: SparkSession, scene: Path, calm: Path, tmp_path: Path
) -> None:
    """One batch of all; on Spark, a batch a file of JSON; a Delta table, stopped in its first batch.

    Spark has begun the next one by then, as more waits, and it is run, too.
    """
    whole, slow = conf_in(tmp_path / "whole", broker=SMALL), load_conf(scene / "conf")
    engine.cache(whole, scene / "in", tmp_path / "a")
    table, stop = write_table(tmp_path / "table", some_events(), FILES), Event()
    job = job_in(tmp_path / "c", table, "delta")
    assert not CacheRun(spark, job, slow, lambda _: stop.set(), stop).run()
    assert not has_open_batch(job.checkpoint)
    run(spark, slow, job)

    expected = results_of(tmp_path / "a")
    assert expected["metrics"]
    assert expected["evictions"]
    assert expected == results_of(calm) == results_of(tmp_path / "c")
    state = read_state(spark, str(calm / "checkpoint")).to_pylist()
    assert list(BROKERS) == [row["broker"] for row in state if row["entries"] > 0 == row["waiting"]]


def test_a_conf_file_that_changed_between_two_starts_holds_from_the_next_microsecond_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As a conf row of each broker there would; a key that may not change is refused, and nothing happens."""
    rows = events(ROWS)
    half = len(rows) // 2
    high_us = max(round((row["event_time"] - START).total_seconds() * 10**6) for row in rows[:half])
    first, lowered = write_lines(tmp_path / "in", rows[:half], 1), SMALL | {MAX_BYTES: 20_000}
    run(spark, conf_in(tmp_path / "before", broker=SMALL), job_in(tmp_path / "out", first))
    write_lines(tmp_path / "in", rows[half:], 1, first=1)
    policy = conf_in(tmp_path / "policy", broker=SMALL | {"headgate.cache.policy": "lru"})
    with pytest.raises(
        ConfError, match="policy: got lru, the checkpoint was begun with the default; allowed: no change"
    ):
        run(spark, policy, job_in(tmp_path / "out", first))
    run(spark, conf_in(tmp_path / "after", ONE_FILE, broker=lowered), job_in(tmp_path / "out", first))

    as_rows = [conf_event(high_us + 1, 0, broker, **{MAX_BYTES: 20_000}) for broker in BROKERS]
    told = results_of(tmp_path / "out")["metrics"]
    for broker in BROKERS:
        expected = fed([*rows, *as_rows], broker, SMALL).totals()
        last = [row for row in told if row["broker"] == broker and row["topic"] is None][-1]
        same = {"hits", "misses", "evicted", "expired", "size_passes", "entries"}
        assert {name: expected[name] for name in same} == {name: last[name] for name in same}


def test_a_file_that_cannot_be_read_is_left_out_and_told_of(engine: Engine, tmp_path: Path) -> None:
    """It begins as its readers expect, and is damaged further on; those before and behind it count."""
    first, lost, last = parts(events(ROWS), 3)
    input_ = tmp_path / "in"
    input_.mkdir()
    for number, rows in enumerate((first, lost, last)):
        pq.write_table(pa.Table.from_pylist(rows, EVENTS), input_ / f"part-{number}.parquet")
    damaged = input_ / "part-1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    engine.cache(conf_in(tmp_path / "conf", ONE_FILE, broker=SMALL), input_, tmp_path / "out", "parquet")

    (letter,) = Tables(tmp_path / "out", OF_CACHE).read("dead_letters").to_pylist()
    assert letter["reason"].startswith("the file cannot be read to its end; rows that are not read are lost: ")
    assert "part-1.parquet" == Path(letter["source"]).name
    told = results_of(tmp_path / "out")["metrics"]
    for broker in BROKERS:
        expected = fed([*first, *last], broker, SMALL).totals()
        of_broker = [row for row in told if row["broker"] == broker and row["topic"] is None][-1]
        assert {name: expected[name] for name in ("hits", "misses", "inserted")} == {
            name: of_broker[name] for name in ("hits", "misses", "inserted")
        }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--output", ""), "--output: got an empty name; give a folder"),
        (("--output", "in/out"), "--output: got in/out, which is in the --input in"),
        (("--checkpoint", "in/of-it"), "--checkpoint: got in/of-it, which is in the --input in"),
    ],
)
def test_a_place_that_cannot_be_meant_is_refused(options, told, tmp_path: Path, capsys, monkeypatch) -> None:
    write_conf(tmp_path / "conf", broker=SMALL)
    monkeypatch.chdir(tmp_path)
    assert main_of("entry_cache")(["--input", "in", "--conf-dir", str(tmp_path / "conf"), *options]) == 2
    assert told in capsys.readouterr().err
    assert ["conf"] == [found.name for found in tmp_path.iterdir()]


def test_what_cannot_be_run_is_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    input_ = write_lines(tmp_path / "in", events(5), 1)
    belady = conf_in(tmp_path / "belady", broker={"headgate.cache.policy": "belady"})
    with pytest.raises(ConfError, match="belady, which knows the future"):
        run(spark, belady, job_in(tmp_path / "out", input_))
    conf = conf_in(tmp_path / "conf", broker=SMALL)
    with pytest.raises(InputError, match="nothing is at"):
        run(spark, conf, job_in(tmp_path / "out", tmp_path / "nowhere"))
    assert not (tmp_path / "out").exists()
    run(spark, conf, job_in(tmp_path / "out", input_))
    with pytest.raises(StateError, match="are of another checkpoint"):
        run(spark, conf, replace(job_in(tmp_path / "out", input_), checkpoint=str(tmp_path / "another")))
    other = job_in(tmp_path / "other", input_)
    run(spark, conf, other)
    with pytest.raises(StateError, match=r"are of another checkpoint than .*, which has begun with others: give the"):
        run(spark, conf, replace(other, checkpoint=str(tmp_path / "out" / "checkpoint")))
    with pytest.raises(StateError, match="has begun, but not with the tables under"):
        run(spark, conf, replace(job_in(tmp_path / "out", input_), output=str(tmp_path / "elsewhere")))
    assert at(0) == START


def test_a_broker_that_goes_quiet_in_live_input_is_told_of(spark: SparkSession, tmp_path: Path) -> None:
    """What waits is fed, and the second that is open is told of, as time goes on without rows."""
    now, stop = datetime.now(UTC), Event()
    place = {"event_time": now, "broker": "b", "topic": "t", "ledger": 0, "entry": 0}
    rows = [place | {"seq": 0, "kind": "open", "cursor": "c"}, place | {"seq": 1, "kind": "add", "sizes": [5]}]
    text = f"{LIVE}[input]\nhold_back_ms = 500\n[trigger]\ninterval_ms = 100\n"
    job = replace(job_in(tmp_path / "out", write_lines(tmp_path / "in", rows, 1)), once=False)
    tables = Tables(tmp_path / "out", OF_CACHE)
    told = lambda _: stop.set() if not tables.is_empty("cache_metrics") else None
    give_up = Timer(PATIENCE_S, stop.set)
    give_up.start()
    assert not CacheRun(spark, job, conf_in(tmp_path / "conf", text, broker=SMALL), told, stop).run()
    give_up.cancel()

    second = now.replace(microsecond=0)
    (broker, topic) = sorted(tables.read("cache_metrics").to_pylist(), key=lambda row: row["topic"] or "")
    assert (second, now, 1, 5) == tuple(broker[name] for name in ("second", "until", "inserted", "used_bytes"))
    assert ("t", 5) == (topic["topic"], topic["used_bytes"])
    assert [2] == tables.read("cache_batches")["rows"].to_pylist()
    assert 20 > len(tables.read("cache_control"))


def arguments(scene: Path, output: Path) -> list[str]:
    paths = options(input=scene / "in", output=output, conf_dir=scene / "conf")
    return ["--once", "--evictions", "--format", "json", *paths]


def rows_of(output: Path) -> dict[str, list[str]]:
    """Every row of every table that a batch brings, and nothing left out."""
    tables = Tables(output, OF_CACHE)
    return {name: sorted(map(repr, tables.read(name).to_pylist())) for name in OF_CACHE if name != "cache_control"}


def compare_after_kills(scene: Path, calm: Path, name: str, kills: list[tuple[int, float]]) -> int:
    """How many of the kills came before the job's end."""
    killed = 0
    expected, output = rows_of(calm), scene / name
    for commits_before, delay_s in kills:
        job = ("entry_cache", *arguments(scene, output))
        killed += kill_at_commits(output, commits_before, *job, log=scene / f"{name}.log", delay_s=delay_s)
    done = run_job("entry_cache", *arguments(scene, output))
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert expected["cache_metrics"]
    got, calm_results = rows_of(output), results_of(calm)
    assert expected["cache_evictions"] == got["cache_evictions"]
    assert expected["dead_letters"] == got["dead_letters"]
    assert calm_results == results_of(output)
    assert len(got["cache_metrics"]) == len(set(got["cache_metrics"]))
    return killed


@pytest.mark.long
def test_two_kills_double_and_lose_nothing(scene: Path, calm: Path) -> None:
    """One between the tables of the first batch, and one in the middle."""
    first = len(OF_CACHE) + 2
    assert 2 == compare_after_kills(scene, calm, "two", [(first + 2, 0.0), (first + 8, 0.3)])


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene: Path, calm: Path) -> None:
    first, last, seed = len(OF_CACHE), commits(calm), random.randrange(2**32)
    chosen = random.Random(seed)
    for n in range(5):
        points = sorted(chosen.randrange(first, last) for _ in range(4))
        kills = [(point, chosen.uniform(0, 1.5)) for point in points]
        assert 0 < compare_after_kills(scene, calm, f"random-{seed}-{n}", kills)
