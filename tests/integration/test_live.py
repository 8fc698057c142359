"""The job without --once: it goes on, moves time where nobody publishes any more, stops and continues on request."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from pyspark.sql import SparkSession

from headgate.throttle.clocks import Clocks
from integration.processes import await_line, started, stopped
from integration.runs import (
    START,
    Run,
    asked,
    at,
    await_that,
    conf_in,
    every_100_ms,
    results_of,
    rows_of,
    run_once,
    write_conf,
    write_publishes,
)
from prometheus_text import Series, scraped
from real_broker import free_ports

TOPIC, OTHER = "persistent://acme/shop/orders", "persistent://acme/shop/carts"
GOLD = {"resourcegroups": {"gold": {"publishRateInMsgs": 100}}, "tenants": {"acme": "gold"}}
LIVE = "[trigger]\ninterval_ms = 0\n[operator]\nstate_key = '{}'\nslots = 4\n[live]\nlive_lag_ms = 400\n"


def seconds_after_start(moment: datetime) -> float:
    """Of runs.START, which hand-made traffic counts from; whole ms."""
    return round((moment - START) / timedelta(milliseconds=1)) / 1000


@pytest.mark.parametrize("state_key", ["auto", pytest.param("topic", marks=pytest.mark.long)])
def test_a_release_becomes_visible_though_nobody_publishes_any_more(
    state_key: str, spark: SparkSession, tmp_path: Path
) -> None:
    """One publish, now, of 30 messages against 25 a second: its producer is let go after about 0.2 s."""
    (tmp_path / "trace").mkdir()
    conf = conf_in(tmp_path / "conf", LIVE.format(state_key))
    with Run(spark, conf, tmp_path / "trace", tmp_path / "out", once=False).alongside() as run:
        await_that(lambda: run.batches, "the first batch")
        now_s = seconds_after_start(datetime.now(UTC))
        write_publishes(tmp_path / "trace" / "a.json", [(now_s, "b1", TOPIC), (now_s, "b2", OTHER)], messages=30)
        await_that(lambda: len(rows_of(tmp_path / "out", "marks")) == 4, "two marks and two unmarks", 60)
        await_that(lambda: len(rows_of(tmp_path / "out", "topic_usage")) >= 2, "usage of the seconds that ended", 60)
    marks = rows_of(tmp_path / "out", "marks")
    released_ns = [row["at_ns"] for row in marks if row["action"] == "unmark"]
    began_ns = [row["at_ns"] for row in marks if row["action"] == "mark"]
    assert [begin + 240_000_000 for begin in began_ns] == released_ns  # 5 below 0, and the target of 1, at 25 a second


def test_a_release_becomes_visible_while_another_broker_is_busy(spark: SparkSession, tmp_path: Path) -> None:
    """Traffic of b1 comes faster than batches end, so the query never waits for input; b2 sends one publish."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    trace.mkdir()
    with Run(spark, conf_in(tmp_path / "conf", LIVE.format("auto")), trace, out, once=False).alongside() as run:
        await_that(lambda: run.batches, "the first batch")
        first_s = seconds_after_start(datetime.now(UTC))
        write_publishes(trace / "quiet.json", [(first_s, "b2", OTHER)], messages=30)

        def busy_and_released() -> bool:
            now_s = seconds_after_start(datetime.now(UTC))
            write_publishes(trace / f"{now_s}.json", [(now_s, "b1", TOPIC)], messages=1)
            return "b2" in {row["broker"] for row in rows_of(out, "marks") if row["action"] == "unmark"}

        await_that(busy_and_released, "the unmark on the quiet broker", 60)
        latest = max(row["event_time"] for row in rows_of(out, "batches") if row["rows"])
    released = next(row for row in rows_of(out, "marks") if (row["broker"], row["action"]) == ("b2", "unmark"))
    assert round(first_s * 1000) + 240 == round(seconds_after_start(released["event_time"]) * 1000)
    assert latest > released["event_time"]


def test_a_job_of_one_broker_that_is_quiet_goes_on_reporting(spark: SparkSession, tmp_path: Path) -> None:
    """Who never had any traffic says so epoch by epoch, by the time of others: they would take it for lost."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    trace.mkdir()
    shared = LIVE.format("auto").replace("slots", "group_limits = 'shared'\nslots")
    conf = conf_in(tmp_path / "conf", shared, broker={}, groups=GOLD)

    def has_reported() -> bool:
        now_s = seconds_after_start(datetime.now(UTC))
        write_publishes(trace / f"{now_s}.json", [(now_s, "b1", TOPIC)])
        return len(asked(out, "SELECT DISTINCT epoch FROM rg_usage WHERE group_id = 0")) >= 3

    with Run(spark, conf, trace, out, once=False, broker="b2").alongside():
        await_that(has_reported, "reports of three epochs", 60)
    assert {"b2"} == {row["name"] for row in asked(out, "SELECT name FROM rg_members")}
    newest = max(row["epoch"] for row in asked(out, "SELECT epoch FROM rg_usage"))
    assert abs(datetime.now(UTC).timestamp() - newest) < 30


def test_recorded_traffic_is_not_moved_by_the_wall_clock(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = []
    due_ticks = Clocks.due_ticks
    monkeypatch.setattr(Clocks, "due_ticks", lambda *args, **kwargs: rounds.append(1) or due_ticks(*args, **kwargs))
    write_publishes(tmp_path / "trace" / "a.json", every_100_ms(0, 1, "b1", TOPIC))
    conf = conf_in(tmp_path / "conf", LIVE.format("auto"))
    with Run(spark, conf, tmp_path / "trace", tmp_path / "out", once=False).alongside() as run:
        await_that(lambda: sum(batch.rows for batch in run.batches) == 10, "the traffic")
        seen = len(rounds)
        await_that(lambda: len(rounds) >= seen + 3, "three rounds of the loop that would tick")
    ticks = [row for row in rows_of(tmp_path / "out", "control") if row["kind"] == "tick"]
    assert {datetime(1970, 1, 1, tzinfo=UTC)} == {row["effective_time"] for row in ticks}
    assert at(0.9) == max(row["event_time"] for row in rows_of(tmp_path / "out", "marks"))


@pytest.mark.long
def test_sigterm_ends_the_job_with_status_0_and_the_next_start_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """With topics as keys: then a start reads the checkpoint's state before its query runs.

    While it runs its endpoint tells what it has written since its start, and no longer.
    """
    trace, log = tmp_path / "trace", tmp_path / "screen"
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}/metrics"
    settings = "[trigger]\ninterval_ms = 0\n[metrics]\ntopics = 1\n[operator]\nstate_key = 'topic'\n"
    conf = write_conf(tmp_path / "conf", settings)
    paths = {"--input": trace, "--output": tmp_path / "out", "--conf-dir": conf, "--metrics-port": port}
    arguments = ["--format", "json", *(str(part) for pair in paths.items() for part in pair)]
    written: list[dict[str, list[dict[str, Any]]]] = [{"marks": [], "topic_usage": [], "batches": []}]
    for start in (0, 1):
        publishes = every_100_ms(2 * start, 2 * start + 2, "b1", TOPIC)
        write_publishes(trace / f"{start}.json", publishes)
        with started("throttle", *arguments, log=log) as process:
            await_that(
                lambda n=20 * (start + 1): taken(tmp_path / "out") == n or process.poll() is not None, "the rows"
            )
            seen = told_when_counted(endpoint, 20)
            written.append({table: rows_of(tmp_path / "out", table) for table in ("marks", "topic_usage", "batches")})
            check_told(seen, written[-1], written[-2])
            assert stopped(process) == 0, log.read_text()
        with pytest.raises(URLError, match="refused"):
            scraped(endpoint)
        await_line(log, "rows in ")  # what a stopped job did is on its screen
    calm = run_once(spark, conf_in(tmp_path / "conf", "[operator]\nstate_key = 'topic'\n"), trace, tmp_path / "calm")
    whole_seconds = [row for row in results_of(calm)["topic_usage"] if row["event_time"] < START + timedelta(seconds=3)]
    assert results_of(calm)["marks"] == rows_of(tmp_path / "out", "marks")
    assert whole_seconds == rows_of(tmp_path / "out", "topic_usage")


def taken(output: Path) -> int:
    return sum(row["rows"] for row in rows_of(output, "batches", "rows")) if (output / "batches").exists() else 0


def told_when_counted(endpoint: str, rows: int) -> Series:
    """What a job tells once it has counted that many rows: it does so just after they are in its tables."""
    await_that(lambda: scraped(endpoint).get("headgate_rows_total") == {("b1",): rows}, f"{rows} rows at the endpoint")
    return scraped(endpoint)


def check_told(seen: Series, tables: dict[str, list[dict[str, Any]]], before: dict[str, list[dict[str, Any]]]) -> None:
    """The endpoint tells what the tables have more than before."""
    new = {table: len(rows) - len(before[table]) for table, rows in tables.items()}
    used = {
        column: sum(row[column] for row in tables["topic_usage"]) - sum(row[column] for row in before["topic_usage"])
        for column in ("publishes", "throttled_publishes", "throttled_ns")
    }
    assert new["marks"] == sum(seen["headgate_marks_total"].values()) > 0
    assert {(): new["batches"]} == seen["headgate_batches_total"]
    assert {("b1",): used["publishes"]} == seen["headgate_publishes_total"]
    assert {("b1",): used["throttled_publishes"]} == seen["headgate_throttled_publishes_total"]
    assert {("b1", TOPIC): used["throttled_publishes"]} == seen["headgate_topic_throttled_publishes_total"]
    assert {("b1",): used["throttled_ns"] / 1e9} == seen["headgate_throttled_seconds_total"]
    assert 0 == sum(seen["headgate_dead_letters_total"].values())
    newest = max(row["event_time"] for row in tables["batches"])
    assert {("b1",): newest.timestamp()} == seen["headgate_event_timestamp_seconds"]
