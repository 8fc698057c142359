"""jobs/throttle.py as a user starts it: what it refuses, what it shows while it runs and at its end."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.throttle.tables import SCHEMAS
from headgate.trace import write_trace
from integration.runs import GROUPS, SMALL, TOPIC_LIMIT, write_conf
from unit.jobs import main_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def throttle() -> Iterator[Callable[..., int]]:
    """The job's main, in this process; it takes the session that is there, and its signal handlers go with the test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield lambda *arguments: main_of("throttle")([str(argument) for argument in arguments])
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_unknown_option_is_refused(throttle, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        throttle("--inputs", "x")
    assert ended.value.code == 2
    assert "unrecognized arguments: --inputs x" in capsys.readouterr().err


def test_all_mistakes_of_the_conf_files_are_told_at_once(throttle, tmp_path, capsys) -> None:
    conf = write_conf(tmp_path / "conf", "[input]\nhold_back_ms = -1\nformatt = 'json'\n", broker={"numIOThreads": "0"})
    assert throttle("--conf-dir", conf) == 2
    told = capsys.readouterr().err
    assert told.startswith("throttle: 3 mistakes in the configuration:\n")
    assert re.search(r"headgate.toml line 2: input.hold_back_ms: got -1; allowed: .* correct it", told)
    assert re.search(r"headgate.toml line 3: input.formatt: .*did you mean format", told)
    assert re.search(r"broker.conf line 1: numIOThreads: got '?0", told)


def test_a_port_of_metrics_that_is_in_use_is_refused_before_spark_starts(throttle, tmp_path, capsys) -> None:
    (tmp_path / "trace").mkdir()
    paths = ("--input", tmp_path / "trace", "--output", tmp_path / "out", "--conf-dir", write_conf(tmp_path / "conf"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert throttle(*paths, "--format", "json", "--metrics-port", port) == 2
    captured = capsys.readouterr()
    told = rf"throttle: metrics: nothing can listen on 127.0.0.1 port {port}: Address already in use; .*--metrics-port"
    assert re.match(told, captured.err)
    assert "starting Spark" not in captured.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("port", ["65536", "-1", "http", ""])
def test_what_is_no_port_is_refused_with_what_is_allowed(port, throttle, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        throttle(f"--metrics-port={port}")
    assert ended.value.code == 2
    assert f"got '{port}'; allowed is a number from 0, which is off, to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "format_", "told"),
    [
        ("nowhere", "json", r"nothing is at .*/nowhere; give a file, a folder or a pattern that exists"),
        ("text", "parquet", r"/text cannot be read as parquet: .*is not a Parquet file.* To do: give a folder"),
        ("text", "delta", r"/text cannot be read as delta: .* To do: give the folder of a Delta table"),
        ("topic", "kafka", r"topic cannot be read as kafka: Failed to find data source: kafka.* --with-kafka"),
    ],
)
def test_an_input_that_cannot_be_read_is_refused_and_leaves_no_trace(
    name, format_, told, throttle, spark: SparkSession, tmp_path, capsys
) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("some text, longer than the magic number of a Parquet file")
    folders = ("--output", tmp_path / "out", "--conf-dir", write_conf(tmp_path / "conf"))
    assert throttle("--input", tmp_path / name if format_ != "kafka" else name, "--format", format_, *folders) == 2
    assert re.search(rf"^throttle: --input: .*{told}", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_shows_a_line_a_batch_and_at_its_end_who_was_throttled(
    terminal, throttle, spark: SparkSession, tmp_path, capsys, monkeypatch
) -> None:
    if terminal:
        monkeypatch.setenv("HEADGATE_TERMINAL", "1")
        monkeypatch.setenv("COLUMNS", "200")
    write_trace(SMALL, tmp_path / "trace", "json")
    conf = write_conf(tmp_path / "conf", broker=TOPIC_LIMIT)
    folders = ("--output", tmp_path / "out", "--conf-dir", conf)
    assert throttle("--input", tmp_path / "trace", "--format", "json", "--once", *folders) == 0
    captured = capsys.readouterr()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", captured.out)
    assert ("\x1b[" in captured.out) == terminal
    batch = {
        False: r"^\S+Z batch=0 rows=700 rows/s=\d+ dead_letters=0 event_time=2026-01-05T09:00:13Z "
        r"throttled_now=\d+$",
        True: r"^batch 0  rows 700  rows/s [\d,]+  dead letters 0  event time 2026-01-05T09:00:13Z  "
        r"throttled now \d+$",
    }
    assert 1 == len(re.findall(batch[terminal], shown, re.MULTILINE))
    assert re.search(r"^700 rows in \d+\.\d s, 0 dead letters$", shown, re.MULTILINE)
    assert re.search(r"^hooli +\d+ +\d+ +\d+\.\d% +[\d.]+ s( of \d+ topics)? +topic limit", shown, re.MULTILINE)


def test_settings_that_do_not_fit_the_state_end_the_job_with_status_2(
    throttle, spark: SparkSession, tmp_path, capsys
) -> None:
    write_trace(SMALL, tmp_path / "trace", "json")
    confs = [write_conf(tmp_path / f"conf-{slots}", f"[operator]\nslots = {slots}\n") for slots in (4, 8)]
    options = ("--input", tmp_path / "trace", "--format", "json", "--once", "--output", tmp_path / "out")
    assert throttle(*options, "--conf-dir", confs[0]) == 0
    assert throttle(*options, "--conf-dir", confs[1]) == 2
    assert "slots: the checkpoint has 4, the conf files say 8" in capsys.readouterr().err


def test_a_start_in_vain_says_why_and_ends_with_status_2(throttle, spark: SparkSession, tmp_path, capsys) -> None:
    trace, shared = tmp_path / "trace", '[operator]\ngroup_limits = "shared"\n'
    conf = write_conf(tmp_path / "conf", shared, groups=GROUPS)
    write_trace(SMALL, trace, "json")
    options = ("--input", trace, "--once", "--output", tmp_path / "out", "--conf-dir", conf)
    assert throttle(*options) == 0
    assert "traffic = admitted: rows are what brokers let in; " in capsys.readouterr().out
    assert throttle(*options) == 0
    assert "What follows is of all runs on this output." in capsys.readouterr().out
    for changed in ({"broker": {"maxPublishRatePerTopicInMessages": 7}}, {"groups": {}}):
        write_conf(tmp_path / "conf", shared, **({"groups": GROUPS} | changed))
        assert throttle(*options) == 2
        shown = capsys.readouterr().out
        assert f"The conf files have changed, and {trace} has nothing new: " in shown
        assert "hooli" not in shown
    (trace / "part-90000.json").write_text('{"kind": "publish"}\n')
    assert throttle(*options) == 2
    assert "  1 x columns missing: event_time, seq, broker, topic, " in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.json").touch()
    assert throttle("--input", tmp_path / "empty", "--once", "--output", tmp_path / "new", "--conf-dir", conf) == 2
    assert f"Nothing is in {tmp_path}/empty: " in capsys.readouterr().out


def test_without_options_it_answers_for_the_bundled_trace(tmp_path: Path) -> None:
    command = [ROOT / "spark-submit.sh", ROOT / "jobs" / "throttle.py", "--conf-dir", ROOT / "conf"]
    wide = os.environ | {"COLUMNS": "150"}
    done = subprocess.run(command, cwd=tmp_path, env=wide, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    for words in (
        "no --input, so a bundled trace, 5 tenants on 3 brokers: 75,000 rows in output/demo/trace",
        "75,000 rows in",
        "traffic = offered: rows are what clients want to send",
        "tenants), when, by which limiter, and by whose fault",
        "Throttled tenants",
        "Most throttled topics",
        "limiter to blame",
        "persistent://hooli/ads/clicks",
        "Subscriptions whose dispatches were held back most",
        " attempts to subscribe, ",
        " unloads of bundles, ",
        "Held for memory, of 30 connections",
        "How shares of quotas followed the traffic",
        f"Tables (Delta): output/demo/{'  '.join(SCHEMAS)}",
        f"  {ROOT}/headgate usage output/demo --by tenant --epochs 1 --at 2026-01-05T09:0",
    ):
        assert words in done.stdout
    tenants = re.findall(r"^(hooli|acme|globex|initech|umbrella) +[\d,]+ +[\d,]+ +\d", done.stdout, re.MULTILINE)
    assert tenants[0] == "hooli"
    assert {"hooli", "acme", "globex", "initech", "umbrella"} == set(tenants)
    silver = re.findall(r"^silver .*?^(?=gold|$)", done.stdout, re.MULTILINE | re.DOTALL)[-1]
    followed = re.findall(r"(broker-\d) +(\S+) +(\S+) +[\d,]+ +[\d,]+ +[\d,]+$", silver, re.MULTILINE)
    shares = {broker: (share[: len(share) // 2], share[len(share) // 2 :]) for broker, _, share in followed}
    assert max(shares["broker-2"][0]) > max(shares["broker-2"][1])
    assert max(shares["broker-3"][0]) < max(shares["broker-3"][1])
