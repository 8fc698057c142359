"""Limits that change: by rows in the control table while the job runs, by conf files at a restart."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import StateError
from headgate.throttle.tables import throttle_tables
from integration.runs import (
    Run,
    append_control,
    at,
    await_that,
    conf_in,
    control_row,
    every_100_ms,
    rows_of,
    run_once,
    write_publishes,
)

ONE, TWO, THREE = "persistent://acme/shop/one", "persistent://acme/shop/two", "persistent://globex/shop/three"
GOLD = {"resourcegroups": {"gold": {}}, "tenants": {"globex": "gold"}}
FREE: dict[str, Any] = {}


def marked(output: Path) -> dict[str, list[int]]:
    """The publishes that each limiter marked, by their time in ms; each of 5 messages, far above any limit here."""
    found: dict[str, list[int]] = {}
    for row in rows_of(output, "marks"):
        if row["action"] == "mark":
            found.setdefault(f"{row['broker']} {row['limiter']}", []).append(row["seq"])
    return {limiter: sorted(seqs) for limiter, seqs in found.items()}


def publishes_ms(first_s: float, last_s: float) -> list[int]:
    return list(range(round(first_s * 1000), round(last_s * 1000), 100))


@pytest.fixture(scope="module")
def live(spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job without limits of its own; limit rows arrive by delta-rs and Spark SQL before the traffic of 10 s.

    Wrong rows among them say when the batch of a row is done.
    """
    spark, folder = spark_of_all_tests, tmp_path_factory.mktemp("live")
    output, trace = folder / "out", folder / "trace"
    trace.mkdir()
    conf = conf_in(folder / "conf", "[trigger]\ninterval_ms = 0\n", broker=FREE, groups=GOLD)
    with Run(spark, conf, trace, output, once=False).alongside() as run:
        await_that(lambda: run.batches, "the batch of the limits in the conf files")
        append_control(
            output,
            control_row(effective_time=at(3), scope="topic", name=ONE, messages_per_s=1_000_000),
            control_row(effective_time=at(6), scope="topic", name=ONE),
            control_row(effective_time=at(4), scope="namespace", name="acme/shop", messages_per_s=2, broker="b1"),
            *WRONG,
        )
        spark.sql(
            f"INSERT INTO delta.`{output}/control` (effective_time, kind, scope, name, messages_per_s, source) "
            f"VALUES (TIMESTAMP '{at(5)}', 'limit', 'group', 'gold', 1, 'sql'), (NULL, 'limit', 'group', 'x', 1, 'sql')"
        )
        await_that(lambda: len(rows_of(output, "dead_letters")) == len(WRONG) + 1, "the limit row of Spark SQL")
        streams = [("b1", ONE), ("b1", TWO), ("b1", THREE), ("b2", ONE), ("b2", TWO), ("b2", THREE)]
        publishes = sorted(publish for stream in streams for publish in every_100_ms(0, 10, *stream))
        half = len(publishes) // 2
        write_publishes(trace / "a.json", publishes[:half])
        write_publishes(trace / "b.json", publishes[half:])
        await_that(lambda: sum(batch.rows for batch in run.batches) == len(publishes), "all publishes")
    return output


WRONG = [
    control_row(effective_time=at(3), scope="nonsense", name="x", messages_per_s=1),
    control_row(effective_time=at(3), scope="topic", messages_per_s=1),
    control_row(scope="topic", name=ONE, messages_per_s=1),
    control_row(effective_time=at(3), kind="stop"),
    control_row(effective_time=at(3), kind="attachment", scope="broker", group_name="gold"),
]


class TestRowsInTheControlTable:
    def test_a_limit_holds_from_the_publish_of_its_very_instant_on(self, live: Path) -> None:
        assert publishes_ms(4, 10) == marked(live)[f"b1 {TWO}"]

    def test_a_limit_of_the_topic_stands_before_that_of_its_namespace_until_it_is_gone(self, live: Path) -> None:
        assert publishes_ms(6, 10) == marked(live)[f"b1 {ONE}"]

    def test_a_limit_with_a_broker_holds_there_alone(self, live: Path) -> None:
        assert not {f"b2 {ONE}", f"b2 {TWO}"} & marked(live).keys()

    def test_a_limit_appended_with_spark_sql_holds_like_any_other(self, live: Path) -> None:
        expected = {"b1 gold": publishes_ms(5, 10), "b2 gold": publishes_ms(5, 10)}
        assert expected == {limiter: seqs for limiter, seqs in marked(live).items() if limiter.endswith("gold")}

    def test_wrong_rows_are_dead_letters_and_stop_nothing(self, live: Path) -> None:
        expected = [
            "effective_time: got null",
            "effective_time: got null",
            "kind: got stop, allowed are limit, attachment",
            "name: got None, allowed is a name with scope topic",
            "scope: got broker, allowed are tenant, namespace, topic",
            "scope: got nonsense, allowed are default, namespace, topic, broker, group",
        ]
        letters = rows_of(live, "dead_letters")
        assert {"control"} == {letter["source"] for letter in letters}
        found = sorted(letter["reason"] for letter in letters)
        assert [True] * len(expected) == [reason.startswith(sign) for sign, reason in zip(expected, found, strict=True)]


@pytest.fixture(scope="module")
def restarted(spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The output of three starts on one checkpoint, by state key; the traffic of each start is 5 s long."""
    return functools.cache(lambda key: three_starts(spark_of_all_tests, tmp_path_factory.mktemp(key), key))


@pytest.mark.parametrize("state_key", ["auto", pytest.param("topic", marks=pytest.mark.long)])
class TestRestarts:
    def test_changed_conf_files_hold_from_the_highest_event_time_on(
        self, state_key: str, restarted: Callable[[str], Path]
    ) -> None:
        output = restarted(state_key)
        changed = [row for row in limits(output) if row["effective_time"] > at(0)]
        expected = [("default", "", 1), ("namespace", "acme/shop", None)]
        assert expected == sorted((row["scope"], row["name"] or "", row["messages_per_s"]) for row in changed)
        assert {at(4.9)} == {row["effective_time"] for row in changed}

    def test_what_they_limit_is_throttled_from_there_on(self, state_key: str, restarted: Callable[[str], Path]) -> None:
        """`two` fell back to the default when the policy of its namespace went."""
        expected = {f"b1 {ONE}": publishes_ms(5, 15), f"b1 {TWO}": publishes_ms(5, 15)}
        assert expected == marked(restarted(state_key))

    def test_conf_files_that_are_as_before_append_no_limit(
        self, state_key: str, restarted: Callable[[str], Path]
    ) -> None:
        assert at(4.9) == max(row["effective_time"] for row in limits(restarted(state_key)))


@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET messages_per_s = 5"])
def test_limits_in_the_control_table_cannot_be_changed_behind_the_jobs_back(
    change: str, spark: SparkSession, tmp_path: Path
) -> None:
    throttle_tables(tmp_path)
    append_control(tmp_path, control_row(effective_time=at(3), scope="default", messages_per_s=1))
    with pytest.raises(PySparkException, match="only allow appends"):
        spark.sql(change.format(f"delta.`{tmp_path}/control`"))


def limits(output: Path) -> list[dict[str, Any]]:
    return [row for row in rows_of(output, "control") if row["kind"] == "limit"]


def three_starts(spark: SparkSession, folder: Path, state_key: str) -> Path:
    trace, output = folder / "trace", folder / "out"
    settings = f'[operator]\nstate_key = "{state_key}"\nslots = 4\n'
    policy = {"namespaces": {"acme/shop": {"publishRate": {"publishThrottlingRateInMsg": 1_000_000}}}}
    free = {"maxPublishRatePerTopicInMessages": 1_000_000}
    confs = [
        conf_in(folder / "first", settings, broker=free, policies=policy),
        conf_in(folder / "second", settings, broker={"maxPublishRatePerTopicInMessages": 1}),
    ]
    for start, conf in enumerate([confs[0], confs[1], confs[1]]):
        first_s, last_s = 5 * start, 5 * start + 5
        publishes = every_100_ms(first_s, last_s, "b1", ONE) + every_100_ms(first_s, last_s, "b1", TWO)
        write_publishes(trace / f"{start}.json", sorted(publishes))
        run_once(spark, conf, trace, output)
    return output


def test_settings_that_do_not_fit_the_state_are_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    trace, output = tmp_path / "trace", tmp_path / "out"
    write_publishes(trace / "a.json", every_100_ms(0, 1, "b1", ONE))
    run_once(spark, conf_in(tmp_path / "conf"), trace, output)
    other = conf_in(tmp_path / "other", '[operator]\ntraffic = "offered"\nslots = 8\n')
    with pytest.raises(
        StateError, match=r"slots: .* has 32, .* 8; traffic: .* has admitted, .* offered.*Restore them, or"
    ):
        Run(spark, other, trace, output)
    with pytest.raises(StateError, match=r"another checkpoint than .*fresh.*give the --checkpoint"):
        Run(spark, conf_in(tmp_path / "conf"), trace, output, checkpoint=tmp_path / "fresh")
    with pytest.raises(StateError, match=r"the checkpoint .* has begun, but not with the tables under .*elsewhere"):
        Run(spark, conf_in(tmp_path / "conf"), trace, tmp_path / "elsewhere", checkpoint=output / "checkpoint")
