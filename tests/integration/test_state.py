"""jobs/state.py: the state of a real checkpoint, as people and programs get it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.errors import StateError
from headgate.report.state_screen import state_lines
from headgate.spark.state import read_state
from integration.runs import GROUPS, conf_in, every_100_ms, run_once, write_publishes
from unit.jobs import main_of

ACME, GLOBEX = "persistent://acme/shop/orders", "persistent://globex/shop/carts"


@pytest.fixture(scope="module")
def checkpoint(spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 s of two topics: 5 messages each 100 ms, against 25 a second for a topic and 60 for acme's group."""
    folder = tmp_path_factory.mktemp("state")
    publishes = every_100_ms(0, 1, "b1", ACME) + every_100_ms(0, 1, "b2", GLOBEX)
    write_publishes(folder / "trace" / "a.json", sorted(publishes))
    output = run_once(spark_of_all_tests, conf_in(folder / "conf", groups=GROUPS), folder / "trace", folder / "out")
    return output / "checkpoint"


def test_a_checkpoint_gives_a_row_for_each_limiter(spark: SparkSession, checkpoint: Path) -> None:
    rows = read_state(spark, str(checkpoint)).to_pylist()
    expected = [
        ("b1", "broker", "b1", 0),  # where something is attached, brokers are whole
        ("b1", "group", "gold", 60),
        ("b1", "topic", ACME, 25),
        ("b2", "broker", "b2", 0),
        ("b2", "topic", GLOBEX, 25),
    ]
    assert expected == [tuple(row[name] for name in ("broker", "scope", "limiter", "messages_per_s")) for row in rows]
    topics = [row for row in rows if row["scope"] == "topic"]
    assert all(row["messages_debt"] == -row["messages_balance"] > 0 and row["waiting"] > 0 for row in topics)


def test_a_folder_without_a_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no state .* from .*STDS_COMMITTED_BATCH.* Give the --checkpoint"):
        read_state(spark, str(tmp_path))


def test_the_command_prints_what_the_function_reads(
    spark: SparkSession, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main_of("state")(["--checkpoint", str(checkpoint)])
    assert list(state_lines(read_state(spark, str(checkpoint)))) == capsys.readouterr().out.splitlines()
