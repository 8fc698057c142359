"""Traffic from a Kafka topic gives the rows of the same traffic in files, and a restart goes on at the last offset.

Real processes throughout: the connector has to be loaded when a Java process starts, and only such jobs load it.
"""

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from headgate.trace import TraceSpec, write_trace
from integration.engines import Local
from integration.processes import commits, connected, kill_at_commits, options, run_job
from integration.runs import GROUPS, SMALL, conf_in, results_of, rows_of, write_conf

TOPIC = "publishes"
TRACE = replace(SMALL, bad_share=0.05)
TEXT = '[input]\nmax_offsets_per_trigger = 300\n[input.kafka]\nbootstrap_servers = "{}"\n[operator]\nslots = 4\n'
COMMITS = 12  # of more than twenty


class Taken(NamedTuple):
    """lines: the topic's records in order. output: tables of a job that was killed and started again. before: how many
    transactions they had in between.
    """

    lines: list[str]
    output: Path
    before: int
    from_files: Path


@pytest.fixture(scope="module")
def taken(kafka_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """The trace in a topic and in files, each taken in to its end."""
    folder = tmp_path_factory.mktemp("kafka")
    write_trace(TRACE, folder / "trace", "json")
    lines = [line for file in sorted((folder / "trace").iterdir()) for line in file.read_text().splitlines()]
    of_files = conf_in(folder / "files", groups=GROUPS)
    from_files = Local(seed=1).throttle(of_files, folder / "trace", folder / "from-files").output

    connected(run_job("generate", *options(format="kafka", kafka_servers=kafka_broker, output=TOPIC), *spelled(TRACE)))
    conf = write_conf(folder / "conf", TEXT.format(kafka_broker), groups=GROUPS)
    output = folder / "out"
    arguments = ["--once", *options(format="kafka", input=TOPIC, output=output, conf_dir=conf)]
    killed = kill_at_commits(output, COMMITS, "throttle", *arguments, log=folder / "screen")
    before = commits(output)
    connected(run_job("throttle", *arguments))
    assert killed, (folder / "screen").read_text()
    return Taken(lines, output, before, from_files)


def spelled(spec: TraceSpec) -> list[str]:
    """The options of jobs/generate.py for this trace."""
    return options(**{field.name: getattr(spec, field.name) for field in fields(spec) if field.name != "start"})


def test_a_topic_gives_the_rows_of_the_same_traffic_in_files(taken: Taken) -> None:
    expected = results_of(taken.from_files)
    assert expected["marks"]
    assert expected == results_of(taken.output)


def test_a_restart_goes_on_at_the_committed_offset(taken: Taken) -> None:
    """The job was killed amid its batches; each record is in one of them, and batches follow one another."""
    assert COMMITS <= taken.before < commits(taken.output)
    batches = sorted((row["batch_id"], row["rows"] + row["dead_letters"]) for row in rows_of(taken.output, "batches"))
    assert {1} == {later - earlier for (earlier, _), (later, _) in pairwise(batches)}
    assert len(taken.lines) == sum(rows for _, rows in batches)


def test_dead_letters_of_a_topic_lead_back_to_their_records(taken: Taken) -> None:
    letters = rows_of(taken.output, "dead_letters")
    assert [letter["reason"] for letter in rows_of(taken.from_files, "dead_letters")] == [
        letter["reason"] for letter in letters
    ]
    assert {f"{TOPIC}/0"} == {letter["source"] for letter in letters}
    assert [taken.lines[letter["offset"]] for letter in letters] == [letter["raw"] for letter in letters]
