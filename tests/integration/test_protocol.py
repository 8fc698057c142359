"""The throttle protocol's job on real tables and processes: cut, stopped and killed, its decisions are the same."""

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.conf import load_conf
from headgate.errors import InputError, StateError
from headgate.protocol.schemas import DECISIONS as COLUMNS
from headgate.protocol.schemas import INPUTS, OF_PROTOCOL
from headgate.protocol.step import ProtocolRules
from headgate.report.sql import query
from headgate.spark.protocol import ProtocolJob, ProtocolResult, ProtocolRun
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import throttle_tables
from integration.engines import Engine
from integration.processes import commits, kill_at_commits, options, run_job
from integration.runs import conf_in, write_conf
from unit.protocol import traffic
from unit.protocol.runs import BOTH, TOPIC, A, batch, given, mark_row, trip
from unit.protocol.runs import run as run_key

ONE_FILE = "[input]\nmax_files_per_trigger = 1\n"
FANNED_OUT = ONE_FILE + '[protocol]\nfan_out = "topic"\n'
CONNECTIONS, SPAN_MS, FILES = 12, 6000, 4
DECISIONS = f"SELECT {', '.join(COLUMNS.names)} FROM throttle_decisions ORDER BY connection, seq"
COUNTS = "SELECT connection, name, labels, value FROM throttle_metrics"
LETTERS = "SELECT reason, raw FROM protocol_dead_letters ORDER BY raw"


def write_inputs(folder: Path, rows: list[dict[str, Any]], files: int) -> Path:
    """A Delta table of inputs, a commit a file."""
    for some in parts(rows, files):
        write_deltalake(str(folder), pa.Table.from_pylist(some, INPUTS), mode="append")
    return folder


def write_marks(output: Path, rows: list[dict[str, Any]], files: int) -> Path:
    """The output of a throttle job, a commit a batch."""
    tables = throttle_tables(output)
    for version, some in enumerate(parts(rows, files)):
        tables.append("marks", pa.Table.from_pylist(some, MARKS), "test", version)
    return output


def parts(rows: list[dict[str, Any]], n: int) -> Iterable[list[dict[str, Any]]]:
    places = [len(rows) * part // n for part in range(n + 1)]
    return (rows[begin:end] for begin, end in pairwise(places))


def run(spark: SparkSession, conf: Any, job: ProtocolJob) -> list[ProtocolResult]:
    heard: list[ProtocolResult] = []
    assert ProtocolRun(spark, job, conf, heard.append, Event()).run()
    return heard


def job_in(output: Path, inputs: Path | None = None, **more: Any) -> ProtocolJob:
    input_ = None if inputs is None else str(inputs)
    return ProtocolJob(str(output), str(output / "protocol-checkpoint"), input_, once=True, **more)


def results_of(output: Path) -> tuple[Any, ...]:
    """Decisions, counts summed over batches, and dead letters."""
    counts: dict[Any, int] = {}
    for row in query(str(output), COUNTS).to_pylist():
        place = row["connection"], row["name"], tuple(sorted(row["labels"]))
        counts[place] = counts.get(place, 0) + row["value"]
    return query(str(output), DECISIONS).to_pylist(), counts, query(str(output), LETTERS).to_pylist()


def test_what_clients_do_and_marks_become_commands_pauses_and_resumes(engine: Engine, tmp_path: Path) -> None:
    opened = [
        given("connect", 1000, supports_throttle=True),
        given("open", 1000, producer_id=7, topic=TOPIC, producer="p"),
        given("open", 1000, producer_id=8, topic=TOPIC),
    ]
    marked = given("mark", 2000, producer_id=8, trips=[trip(1, 1, (-90, 100))])
    rows = [*opened, given("receipt", 1600, request_id=1), marked, given("sneeze", 2000)]
    inputs = write_inputs(tmp_path / "inputs", rows, 3)
    ms = 1_000_000
    output = write_marks(tmp_path / "out", [mark_row(1500 * ms), mark_row(1900 * ms, "unmark"), mark_row(2300 * ms)], 1)
    engine.protocol(conf_in(tmp_path / "conf"), output, inputs)

    names = ("kind", "at_ms", "producer_id", "reason", "pause_for_millis", "command_kind", "cause", "off_ms")
    assert [
        ("command", 1500, 7, 0, 600, "start", None, None),
        ("command", 2000, 8, 1, 910, "start", None, None),
        ("pause", 2100, 8, 1, None, None, "no_receipt", None),
        ("command", 2300, 7, 0, 600, "start", None, None),
    ] == [tuple(row[name] for name in names) for row in query(str(output), DECISIONS).to_pylist()]
    assert [{A}, {1, 2, 3, 4}] == [
        {row[name] for row in query(str(output), DECISIONS).to_pylist()} for name in ("connection", "seq")
    ]
    assert ["unknown_kind: got 'sneeze'"] == [
        row["reason"].split(",")[0] for row in query(str(output), LETTERS).to_pylist()
    ]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protocol")
    write_inputs(folder / "inputs", traffic.inputs(1, CONNECTIONS, 900, SPAN_MS), FILES)
    write_conf(folder / "conf", ONE_FILE)
    return folder


def output_of(scene: Path, name: str) -> Path:
    return write_marks(scene / name, traffic.marks(2, CONNECTIONS, 150, SPAN_MS), FILES)


@pytest.fixture(scope="module")
def calm(scene: Path, spark_of_all_tests: SparkSession) -> Path:
    """The tables of an undisturbed run, a batch a file."""
    output = output_of(scene, "calm")
    assert FILES < len(run(spark_of_all_tests, load_conf(scene / "conf"), job_in(output, scene / "inputs")))
    return output


def arguments(scene: Path, output: Path, conf: str = "conf") -> list[str]:
    return ["--once", *options(output=output, input=scene / "inputs", conf_dir=scene / conf)]


def test_batches_and_restarts_change_nothing(engine: Engine, spark: SparkSession, scene: Path, tmp_path: Path) -> None:
    """One batch of all; and a batch a file, stopped after the first and started again."""
    whole, stopped = (output_of(tmp_path, name) for name in ("whole", "stopped"))
    conf, slow = conf_in(tmp_path / "conf"), load_conf(scene / "conf")
    engine.protocol(conf, whole, scene / "inputs")
    stop = Event()
    assert not ProtocolRun(spark, job_in(stopped, scene / "inputs"), slow, lambda _: stop.set(), stop).run()
    assert 1 < len(run(spark, slow, job_in(stopped, scene / "inputs")))

    decisions, counts, letters = expected = results_of(whole)
    assert decisions
    assert counts
    assert letters == []
    assert expected == results_of(stopped)


TO_ALL = replace(BOTH, fan_out=True)


def in_one_key(rules: ProtocolRules) -> list[dict[str, Any]]:
    """Decisions on the rows of `scene`, without Spark."""
    inputs, marks = traffic.inputs(1, CONNECTIONS, 900, SPAN_MS), traffic.marks(2, CONNECTIONS, 150, SPAN_MS)
    over_ms = max(inputs[-1]["at_ms"], marks[-1]["at_ns"] // 1_000_000)
    return run_key([batch(inputs, marks, finish_ms=over_ms)], rules).decisions


@pytest.mark.long
def test_marks_go_to_all_producers_of_a_topic_whatever_batches_and_restarts(
    spark: SparkSession, scene: Path, tmp_path: Path
) -> None:
    """And the checkpoint goes on with that alone."""
    output, conf, stop = output_of(tmp_path, "out"), conf_in(tmp_path / "conf", FANNED_OUT), Event()
    assert not ProtocolRun(spark, job_in(output, scene / "inputs"), conf, lambda _: stop.set(), stop).run()
    assert 1 < len(run(spark, conf, job_in(output, scene / "inputs")))

    decisions, _, letters = results_of(output)
    assert in_one_key(TO_ALL) == decisions != in_one_key(BOTH)
    assert letters == []
    with pytest.raises(StreamingQueryException, match="fan_out: got tripping, the checkpoint was begun with topic"):
        run(spark, conf_in(tmp_path / "tripping", ONE_FILE), job_in(output, scene / "inputs"))


def test_without_inputs_clients_are_obedient(engine: Engine, tmp_path: Path) -> None:
    output = output_of(tmp_path, "out")
    engine.protocol(conf_in(tmp_path / "conf"), output)
    decisions, _, letters = results_of(output)

    assert {0, 1, 4} == {row["reason"] for row in decisions if row["kind"] == "command"}
    assert {("condition", 4)} == {(row["cause"], row["reason"]) for row in decisions if row["kind"] == "pause"}
    assert letters == []


def test_places_that_cannot_be_are_refused(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    conf = conf_in(tmp_path / "conf")
    with pytest.raises(InputError, match="no table marks is under"):
        run(spark, conf, job_in(tmp_path / "nothing"))
    with pytest.raises(InputError, match="no Delta table is at"):
        run(spark, conf, job_in(tmp_path / "nothing", tmp_path / "nowhere"))
    assert not (tmp_path / "nothing").exists()
    text = str(tmp_path / "text")
    write_deltalake(text, pa.table({"at_ms": ["soon"], "kind": ["connect"], "trips": [1]}))
    with pytest.raises(InputError, match=r"at_ms: got string, allowed bigint; trips: got bigint, allowed array"):
        run(spark, conf, job_in(output_of(tmp_path, "typed"), text))
    output = output_of(tmp_path, "out")
    engine.protocol(conf, output)
    with pytest.raises(StateError, match="throttle_decisions, throttle_metrics under"):
        run(spark, conf, ProtocolJob(str(output), str(tmp_path / "another"), once=True))


def test_integers_of_another_width_are_taken_and_null_where_they_are_too_large(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The reason is of 32 bits."""
    types = {"kind": pa.string(), "at_ms": pa.int32(), "connection": pa.string(), "reason": pa.int64()}
    rows = [("connect", 0, "c", None), *(("condition_set", 1, "c", reason) for reason in (4, 1 << 40))]
    columns = dict(zip(types, zip(*rows, strict=True), strict=True))
    given_ = str(tmp_path / "input")
    write_deltalake(given_, pa.table({name: pa.array(column, types[name]) for name, column in columns.items()}))
    output = output_of(tmp_path, "out")
    run(spark, conf_in(tmp_path / "conf"), job_in(output, given_))
    _, _, letters = results_of(output)

    assert {"bad_ordinal", "bad_reason"} == {letter["reason"] for letter in letters if '"c"' in letter["raw"]}


def compare_after_kills(scene: Path, calm: Path, name: str, kills: list[tuple[int, float]]) -> int:
    """How many of the kills came before the job's end."""
    killed = 0
    output = output_of(scene, name)
    begun = commits(output)
    for after, delay_s in kills:
        log = scene / f"{name}.log"
        killed += kill_at_commits(
            output, begun + after, "protocol", *arguments(scene, output), log=log, delay_s=delay_s
        )
    done = run_job("protocol", *arguments(scene, output))
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert results_of(calm) == results_of(output)
    return killed


@pytest.mark.long
def test_a_kill_doubles_and_loses_nothing(scene: Path, calm: Path) -> None:
    assert 1 == compare_after_kills(scene, calm, "one", [(len(OF_PROTOCOL) + 4, 0.0)])


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene: Path, calm: Path) -> None:
    """Commands keep their request ids, which are among what is compared."""
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    last = commits(calm) - commits(output_of(scene, f"untouched-{seed}"))
    for n in range(5):
        kills = sorted((draw.randrange(len(OF_PROTOCOL), last - 2), draw.uniform(0, 1.5)) for _ in range(4))
        assert 0 < compare_after_kills(scene, calm, f"random-{seed}-{n}", kills)


@pytest.mark.long
def test_kills_change_nothing_where_marks_go_to_all_producers_of_a_topic(scene: Path) -> None:
    """Also request ids, which are among what is compared."""
    write_conf(scene / "to-all", FANNED_OUT)
    output = output_of(scene, "to-all-killed")
    begun, given_ = commits(output), arguments(scene, output, "to-all")
    for after, delay_s in ((len(OF_PROTOCOL) + 3, 0.0), (len(OF_PROTOCOL) + 7, 0.4)):
        assert kill_at_commits(output, begun + after, "protocol", *given_, log=scene / "to-all.log", delay_s=delay_s)
    done = run_job("protocol", *given_)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert in_one_key(TO_ALL) == results_of(output)[0]
