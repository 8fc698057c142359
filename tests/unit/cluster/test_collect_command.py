"""`headgate collect` while its tables cannot be written: it goes on, and what brokers still know is counted once."""

import argparse
from contextlib import contextmanager

import pytest

from headgate.cluster import collect_command
from headgate.cluster.arguments import add_cluster_arguments
from headgate.cluster.brokers import BrokerLook
from headgate.cluster.schemas import OF_COLLECTOR
from headgate.core.clusters.counters import Counters, Reading
from headgate.core.clusters.demand import SECOND_US
from headgate.stores import BRIEF
from headgate.tables.delta import Tables
from stub_store import waits

CONF = """
[cluster]
admin_url = "http://127.0.0.1:1"
period_s = 1
[[resource]]
tenant = "acme"
publishRateInMsgs = 100
"""
TOPIC, A_SECOND = ("acme/a/1", "in"), 10


class Collecting:
    """The command, whose clock goes on by a second when it waits: a broker in memory counts then. Its tables are real.

    due: by second, what is done then; the command is stopped after the last one.
    """

    def __init__(self, folder, monkeypatch):
        self.output, self.file, self.said = folder / "out", folder / "cluster.toml", []
        self.now_us, self.seconds, self.due = 1_800_000_000 * SECOND_US, 0, {}
        self.series = collect_command.CollectSeries()
        self.file.write_text(CONF)
        for name, double in {
            "stopped_by_signals": self.stopped,
            "cluster_of": lambda _: self,
            "clock": lambda: lambda: self.now_us,
            "CollectSeries": lambda: self.series,
        }.items():
            monkeypatch.setattr(collect_command, name, double)

    # What a collector asks.

    def name(self):
        return "test"

    def brokers(self):
        return ["b"]

    def look(self, _):
        return BrokerLook({TOPIC: Reading(self.seconds * A_SECOND, self.seconds)})

    def counting(self, told, looked):
        return Counters(told, looked)

    # An Event.

    @contextmanager
    def stopped(self):
        yield self

    def is_set(self):
        return self.seconds > max(self.due)

    def wait(self, _):
        self.seconds, self.now_us = self.seconds + 1, self.now_us + SECOND_US
        self.due.get(self.seconds, lambda: None)()

    # What a test does.

    def run(self, **at):
        """Its exit status. at: what is done at a second of the run, by s1, s2.."""
        self.due = {int(key[1:]): do for key, do in at.items()}
        parser = argparse.ArgumentParser()
        add_cluster_arguments(parser)
        arguments = parser.parse_args(["--cluster", str(self.file), "--output", str(self.output)])
        return collect_command.collect(arguments, self.said.append)

    def take_away(self, *names):
        for name in names:
            (self.output / name).rename(self.output / f"{name}-away")
            (self.output / name).write_text("in its place")

    def bring_back(self, *names):
        for name in names:
            (self.output / name).unlink()
            (self.output / f"{name}-away").rename(self.output / name)

    def counters(self):
        return Tables(self.output, OF_COLLECTOR).read("counters", ["from_us", "at_us", "messages"]).to_pylist()


@pytest.fixture
def collecting(tmp_path, monkeypatch):
    return Collecting(tmp_path, monkeypatch)


@pytest.mark.parametrize("names", [["counters"], ["broker_looks"], ["counters", "broker_looks"]])
def test_what_came_while_tables_could_not_be_written_is_counted_once(collecting, names):
    """Of a round of which one table was written, too."""
    away, back = (lambda: collecting.take_away(*names)), (lambda: collecting.bring_back(*names))
    assert collecting.run(s3=away, s7=back, s9=lambda: None) == 0
    rows = sorted(collecting.counters(), key=lambda row: row["at_us"])
    assert sum(row["messages"] for row in rows) == 9 * A_SECOND
    assert [row["from_us"] for row in rows[1:]] == [row["at_us"] for row in rows[:-1]]
    lines = [line for line in collecting.said if "written" in line]
    assert ["cannot be written, which is tried again" in line for line in lines] == [True, False]
    assert lines[1].endswith(
        "counters are written again after 4 s; what came meanwhile is in this look, except from before a broker "
        "restarted or a topic moved"
    )
    of_broker = {"broker": "b", "direction": "in"}
    series = collecting.series.registry.get_sample_value("headgate_collect_messages_total", of_broker)
    assert series == 9 * A_SECOND


def test_a_store_is_waited_for_briefly_also_by_tables_that_are_opened_anew(collecting, monkeypatch):
    waited = waits(monkeypatch)
    assert collecting.run(s13=lambda: None) == 0
    assert len(waited) > 4
    assert all(one == BRIEF.of_delta for one in waited)


def test_it_gives_up_after_ten_minutes_with_a_status_that_asks_for_another_start(collecting, capsys):
    assert collecting.run(s3=lambda: collecting.take_away("broker_looks"), s900=lambda: None) == 1
    assert collecting.seconds == 603
    assert "broker_looks" in capsys.readouterr().err
