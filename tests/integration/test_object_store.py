"""Places on a real S3-compatible server: tables, jobs, commands, and what goes wrong there."""

import multiprocessing
import os
import re
import subprocess
import sys
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.cli import main
from headgate.conf import load_conf
from headgate.core.quota.settings import QuotaSettings
from headgate.folders import folder_at
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.replay.schemas import TABLES
from headgate.spark.feed import Feed
from headgate.tables.delta import Tables
from headgate.throttle.schemas import CONTROL
from headgate.throttle.tables import SCHEMAS
from headgate.trace import write_trace
from integration.cache_events import events, line
from integration.processes import ROOT, UNAVAILABLE, kill_when, options, run_job
from integration.runs import GROUPS, MIXED, MIXED_LIMITS, results_of, rows_of, run_once, write_conf
from s3_server import BUCKET, SECRET, Store

TEXT = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\nconnection_topics = true\n"
TRACE = replace(MIXED, files=4)
LAST = "part-00003.json"
"""Its last file, which has a damaged line at the end."""
ROWS = {"rows": pa.schema([("writer", pa.int64()), ("number", pa.int64())])}
WRITERS, COMMITS = 4, 8
IN_THE_MIDDLE = len(SCHEMAS) + 10
"""Commits: the tables are there, and the first batch or two.
"""


class Scene:
    """A trace and conf files on this machine and on the store, and the tables of a run from disk to disk."""

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self.store, self.folder, self.name = store, folder, name
        self.trace = store.put(folder / "trace", f"{name}/trace")
        self.conf = store.put(folder / "conf", f"{name}/conf")

    def paths(self, output: str) -> list[str]:
        """Everything on the store."""
        return options(input=self.trace, output=self.output(output), conf_dir=self.conf, format="json")

    def output(self, name: str) -> str:
        return self.store.address(f"{self.name}/{name}")

    def has_commits(self, output: str, least: int) -> bool:
        """Whether there are as many, to all tables."""
        names = self.store.names(f"{self.name}/{output}")
        return sum("/_delta_log/" in name and name.endswith(".json") for name in names) >= least


@pytest.fixture(scope="module")
def scene(store: Store, spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("scene")
    write_trace(TRACE, folder / "trace", "json")
    with (folder / "trace" / LAST).open("a") as last:
        last.write("no JSON\n")
    conf = load_conf(write_conf(folder / "conf", TEXT, broker=MIXED_LIMITS, groups=GROUPS))
    run_once(spark_of_all_tests, conf, folder / "trace", folder / "calm")
    return Scene(store, folder, "scene")


@pytest.mark.long
def test_a_job_that_is_killed_on_a_store_that_fails_at_times_writes_the_tables_of_a_calm_one(
    scene: Scene, at_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its requests one in twenty is refused as too many, and one in twenty is answered after a second."""
    arguments = ("--once", *scene.paths("killed"))
    log = tmp_path / "screen"
    with at_store.failing(tmp_path, refuse=0.05, delay=0.05) as failing, monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", failing.store.endpoint)
        is_under_way = partial(scene.has_commits, "killed", IN_THE_MIDDLE)
        killed = kill_when(is_under_way, "commits", "throttle", *arguments, log=log)
        done = run_job("throttle", *arguments)
        counts = failing.counts()
    if done.returncode == UNAVAILABLE:
        pytest.skip(done.stderr)
    assert (True, 0, "") == (killed, done.returncode, done.stderr), log.read_text() + done.stdout
    assert min(counts["refused"], counts["delayed"]) > 20, counts
    place = scene.output("killed")
    assert results_of(scene.folder / "calm") == results_of(place)
    assert TRACE.events == sum(row["rows"] for row in rows_of(place, "batches"))
    logs = sorted((ROOT / ".cache" / "logs").glob("throttle-*"), key=os.path.getmtime)[-2:]
    assert SECRET not in "".join([done.stdout, log.read_text(), *(one.read_text() for one in logs)])


def append(output: str, writer: int) -> None:
    """A row a commit."""
    tables = Tables(output, ROWS)
    for number in range(COMMITS):
        tables.extend("rows", pa.table([[writer], [number]], ROWS["rows"]))


def test_of_writers_at_once_none_loses_a_commit(at_store: Store) -> None:
    output = at_store.address("writers")
    Tables(output, ROWS)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append, args=(output, writer)) for writer in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    found = [(row["writer"], row["number"]) for row in Tables(output, ROWS).read("rows").to_pylist()]
    assert [(writer, number) for writer in range(WRITERS) for number in range(COMMITS)] == sorted(found)


def test_names_that_a_url_encodes_are_those_of_the_folders(at_store: Store) -> None:
    """What is read past delta-rs is read where delta-rs wrote it."""
    output = at_store.address("odd job/mü=1%x")
    tables = Tables(output, {"control": CONTROL})
    feed = Feed(f"{output}/control", CONTROL, f"{output}/checkpoint")
    feed.begin()
    row = dict.fromkeys(CONTROL.names) | {"name": "a", "written_at": 1}
    tables.extend("control", pa.Table.from_pylist([row], CONTROL))
    feed.feed()
    assert [f"{1:020d}.txt"] == folder_at(feed.place).names()
    found = at_store.names("odd job")
    assert all(name.startswith(f"{BUCKET}/odd job/mü=1%x/") for name in found), found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that ends well."""
    status = main(list(arguments))
    told = capsys.readouterr()
    assert status == 0, told
    return told.out


@pytest.fixture(scope="module")
def calm(scene: Scene) -> str:
    """The tables of the run from disk to disk, on the store."""
    return scene.store.put(scene.folder / "calm", "scene/calm")


def test_commands_say_of_an_output_there_what_they_say_of_it_here(
    scene: Scene, calm: str, at_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    here = str(scene.folder / "calm")
    topic = rows_of(here, "marks", "topic")[0]["topic"]
    for arguments in (
        ("sql", "OUTPUT", "SELECT topic, count(*) AS marks FROM marks GROUP BY topic ORDER BY topic"),
        ("sql", "OUTPUT", "SHOW TABLES"),
        ("tables", "OUTPUT"),
        ("usage", "OUTPUT", "--by", "tenant"),
        ("why", topic, "OUTPUT"),
    ):
        of_here, of_there, with_slash = (
            printed(capsys, *(given if part == "OUTPUT" else part for part in arguments)).replace(output, "OUTPUT")
            for output, given in ((here, here), (calm, calm), (calm, f"{calm}/"))
        )
        assert of_here == of_there == with_slash
        assert of_here.strip()


def test_a_trial_reads_traffic_and_conf_there_and_keeps_its_tables_there(
    scene: Scene, at_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    output = scene.output("tried")
    said = printed(capsys, "try", scene.trace, "--conf-dir", scene.conf, "--output", output)
    here = str(scene.folder / "tried")
    assert main(["try", str(scene.folder / "trace"), "--conf-dir", str(scene.folder / "conf"), "--output", here]) == 0
    assert results_of(here) == results_of(output)
    assert output in said
    assert [f"{scene.trace}/{LAST}"] == [row["source"] for row in rows_of(output, "dead_letters")]
    assert main(["try", scene.trace, "--conf-dir", scene.conf, "--output", output]) == 2
    assert f"--output: {output} is there and not empty" in capsys.readouterr().err


def test_a_replay_reads_traffic_and_conf_there_and_keeps_its_tables_there(
    scene: Scene, at_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    there, here = scene.output("replayed"), str(scene.folder / "replayed")
    on_store = ("--input", scene.trace, "--format", "json", "--conf-dir", scene.conf)
    on_disk = ("--input", str(scene.folder / "trace"), "--conf-dir", str(scene.folder / "conf"))
    said = printed(capsys, "replay", *on_store, "--output", there)
    printed(capsys, "replay", *on_disk, "--output", here)
    assert f"{there}/report.html" in said
    of_here, of_there = ({name: rows_at(place, name) for name in TABLES} for place in (here, there))
    (of_file,) = of_here.pop("dead_letters")
    assert [of_file | {"source": f"{scene.trace}/{LAST}"}] == of_there.pop("dead_letters")
    assert of_here == of_there


def rows_at(output: str, table: str) -> list[dict[str, Any]]:
    """Of a replay."""
    return sorted(Tables(output, TABLES).read(table).to_pylist(), key=repr)


def test_a_sweep_reads_its_trace_there(at_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "a.json").write_text("\n".join(map(line, events(200))))
    (tmp_path / "grid.toml").write_text('sizes_mib = [0.25]\npolicies = ["lru"]\n')
    trace = at_store.put(tmp_path / "trace", "cache-trace")
    options_ = ("--grid", str(tmp_path / "grid.toml"), "--output", str(tmp_path / "swept"))
    said = printed(capsys, "sweep", "--input", trace, *options_)
    assert "lru" in said
    assert "400 rows" in said


def test_a_group_is_changed_there_and_the_page_shows_it(at_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    output = at_store.address("shared")
    QuotaTables(Locations.of(output, QuotaSettings()), QuotaSettings())
    printed(capsys, "groups", "set", output, "made-there", "--msg-publish-rate", "7")
    command = [sys.executable, "-m", "headgate", "serve", output, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().partition(": ")[0]
            with urllib.request.urlopen(f"{address}/groups") as answer:
                assert "made-there" in answer.read().decode()
        finally:
            process.terminate()


WRONG = {
    "secret": (
        {"AWS_SECRET_ACCESS_KEY": "wrong-" + SECRET},
        f"s3a://{BUCKET}/scene/calm",
        2,
        "SIGNATURE_DOES_NOT_MATCH",
    ),
    "bucket": ({}, "s3a://no-such-bucket/calm", 2, "there is no bucket no-such-bucket"),
    "endpoint": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, f"s3a://{BUCKET}/scene/calm", 1, "cannot be reached"),
    "scheme": ({}, f"s3://{BUCKET}/scene/calm", 2, "give s3a://"),
    "case": ({}, f"S3A://{BUCKET}/scene/calm", 2, "give s3a://"),
    "fragment": ({}, f"s3a://{BUCKET}/scene/calm#1", 2, "where # reads"),
}


@pytest.mark.parametrize(("changed", "place", "status", "said"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("program", ["sql", "serve", "job"])
def test_what_is_wrong_is_said_before_anything_begins_and_no_secret(
    program: str, changed: dict[str, str], place: str, status: int, said: str, scene: Scene, at_store: Store
) -> None:
    commands = {
        "sql": [sys.executable, "-m", "headgate", "sql", place, "SHOW TABLES"],
        "serve": [sys.executable, "-m", "headgate", "serve", place, "--port", "0"],
        "job": [
            *(sys.executable, "jobs/throttle.py", "--once"),
            *options(input=scene.folder / "trace", output=place, conf_dir=scene.folder / "conf", format="json"),
        ],
    }
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lib")} | changed
    done = subprocess.run(commands[program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert 1 == len(done.stderr.strip().splitlines()), done.stderr
    assert re.search(said, done.stderr), done.stderr
    assert place in done.stderr
    assert SECRET not in done.stdout + done.stderr
