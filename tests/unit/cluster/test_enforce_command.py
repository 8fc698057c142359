"""`headgate enforce` from its arguments to its exit status, on a cluster in memory and real tables."""

import argparse
import socket
import urllib.request
from contextlib import contextmanager

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.cluster import enforce_command, groups
from headgate.cluster.arguments import add_enforce_arguments
from headgate.cluster.brokers import BrokerLook
from headgate.cluster.check import check
from headgate.cluster.collect import Collector
from headgate.cluster.collect_command import collect
from headgate.cluster.running import ENFORCER_PATIENCE
from headgate.cluster.schemas import COUNTERS, OF_COLLECTOR
from headgate.core.clusters.counters import Counters, Reading
from headgate.core.clusters.demand import SECOND_US
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import AwayError, ClusterError, EndpointError, InputError, TableError
from headgate.quota.tables.opened import opened_config
from headgate.stores import is_there
from headgate.tables.delta import Tables
from stub_store import refusing, waits
from unit.cluster.enforced_cluster import DEAD, EnforcedCluster, text

CONF = """[cluster]
admin_url = "http://127.0.0.1:1"
hold_s = 10
[[resource]]
tenant = "acme"
publishRateInMsgs = 100
"""
GROUPS = '[cluster]\nadmin_url = "http://127.0.0.1:1"\ngroups = true\n'


class Started:
    """The command, whose loop runs once a second: the cluster is looked at then, unless `is_silent`, and what is due is
    done. It is stopped when nothing is due any more.
    """

    def __init__(self, folder, monkeypatch, offered, conf=CONF):
        self.cluster, self.output, self.conf = EnforcedCluster(folder / "out", [], offered), folder / "out", conf
        self.file, self.is_silent, self.said = folder / "cluster.toml", False, []
        self.totals, self.due, self.called = {}, {}, "test"
        self.collector = Collector(self, Tables(self.output, OF_COLLECTOR), "c", lambda: self.cluster.now_us)
        for name, double in {
            "stopped_by_signals": self.stopped,
            "limits_of": lambda _: self.cluster.limits,
            "cluster_of": lambda _: self,
            "own_name": lambda: DEAD,
            "clock": lambda: lambda: self.cluster.now_us,
        }.items():
            monkeypatch.setattr(enforce_command, name, double)

    # What a collector asks, and the command.

    def name(self):
        return self.called

    def brokers(self):
        return ["b"]

    def look(self, _):
        return BrokerLook({key: Reading(*total) for key, total in self.totals.items()})

    def counting(self, told, looked):
        return Counters(told, looked)

    @contextmanager
    def stopped(self):
        yield self

    def wait(self, _):
        """An Event's, which is set once nothing is due."""
        if not self.due:
            return True
        self.second()
        self.due.pop(min(self.due))()
        return False

    def second(self):
        self.cluster.now_us += SECOND_US
        for topic, direction, look, _ in self.cluster.take():
            before = self.totals.get((topic, direction), (0, 0))
            self.totals[topic, direction] = tuple(map(sum, zip(before, look.amounts, strict=True)))
        if not self.is_silent:
            self.collector.look()

    def run(self, *given, seconds=5, **at):
        """Its exit status. at: what is done at a second of the run, by s1, s2.."""
        self.file.write_text(self.conf)
        self.due = dict.fromkeys(range(seconds), lambda: None) | {int(key[1:]): do for key, do in at.items()}
        parser = argparse.ArgumentParser()
        add_enforce_arguments(parser)
        arguments = parser.parse_args(["--cluster", str(self.file), "--output", str(self.output), *given])
        self.said.clear()
        return enforce_command.enforce(arguments, lambda line: self.said.append(line.partition(" ")[2]))


@pytest.fixture
def started(tmp_path, monkeypatch):
    return Started(tmp_path, monkeypatch, {"acme/a/1": (10, 10), "acme/b/2": (300, 10)})


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_metrics_are_told_while_it_runs_and_no_longer(started):
    port, pages = free_port(), []
    url = f"http://127.0.0.1:{port}/metrics"

    def scrape():
        with urllib.request.urlopen(url) as answer:
            pages.append(answer.read().decode())

    assert started.run("--apply", "--metrics-port", str(port), s0=scrape, s4=scrape) == 0
    first, last = pages
    limit = 'headgate_enforce_limit_per_second{direction="in",resource="tenant acme",unit="messages"} '
    assert limit not in first
    assert f"{limit}90.0" in last
    assert "headgate_enforce_last_round_timestamp_seconds" in last
    with pytest.raises(OSError, match="refused"):
        scrape()


def test_a_port_that_is_taken_is_refused_before_anything_is_set(started):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EndpointError, match="give another one with --metrics-port"):
            started.run("--apply", "--metrics-port", str(taken.getsockname()[1]))
    assert not (started.output / "enforced").exists()


def test_it_sets_limits_says_who_is_held_and_puts_everything_back(started):
    started.cluster.limits.set["acme/b/in"] = text(5000)
    limits = []

    assert started.run("--apply", seconds=8, s7=lambda: limits.append(dict(started.cluster.limits.set))) == 0

    assert limits == [{"acme/a/in": text(90), "acme/b/in": text(90)}]
    assert started.cluster.limits.set == {"acme/b/in": text(5000)}
    in_force = "in force 90 msg/s on 2 of 2"
    assert started.said == [
        "no counters yet: start headgate collect with the same --cluster and --output",
        "tenant acme publish: push 90 msg/s; the first limit",
        f"tenant acme publish: uses 310 msg/s of 100 msg/s; level 90 msg/s; {in_force}; nobody is held",
        f"tenant acme publish: uses 100 msg/s of 100 msg/s; level 90 msg/s; {in_force}; held: persistent://acme/b/2",
        "put back at 2 of 2 places",
    ]


def test_with_keep_limits_stay_and_release_puts_them_back_without_a_collector(started):
    started.cluster.limits.set["acme/b/in"] = text(5000)
    assert started.run("--apply", "--keep") == 0
    assert started.cluster.limits.set == {"acme/a/in": text(90), "acme/b/in": text(90)}
    assert started.run("--release", seconds=0) == 0
    assert started.cluster.limits.set == {"acme/b/in": text(5000)}


def test_what_cannot_be_put_back_is_named_and_is_put_back_by_the_next_release(started):
    def refuse():
        started.cluster.limits.refused = {"acme/a/in"}

    assert started.run("--apply", s4=refuse) == enforce_command.LEFT
    assert started.said[-2:] == [
        "not put back at acme/a/in: acme/a/in: no answer in time",
        "run headgate enforce --release when the cluster answers",
    ]
    assert started.cluster.limits.set == {"acme/a/in": text(90)}
    started.cluster.limits.refused = set()
    assert started.run("--release", seconds=0) == 0
    assert started.cluster.limits.set == {}


@pytest.mark.parametrize(
    ("given", "word", "left"),
    [((), "limits are put back until there are", 0), (("--fail-closed",), "limits stay as they are", 2)],
)
def test_without_counters_limits_are_put_back_once_unless_it_fails_closed(started, given, word, left):
    limits = started.cluster.limits

    def silence():
        started.is_silent = True

    def check():
        assert len(limits.set) == left
        started.is_silent = False

    def again():
        assert limits.set == {"acme/a/in": text(90), "acme/b/in": text(90)}

    assert started.run("--apply", *given, seconds=23, s3=silence, s18=check, s22=again) == 0
    assert len([line for line in started.said if word in line]) == 1
    assert limits.set == {}


def test_a_dry_run_says_what_it_would_push_when_that_changes_and_sets_nothing(started):
    def more():
        started.cluster.offered["acme/a/1"] = (30, 10)

    assert started.run(seconds=20, s5=more) == 0
    pushes = [line for line in started.said if "push" in line]
    assert pushes[0] == "tenant acme publish: would push 90 msg/s; the first limit"
    assert len(pushes) < 6
    assert started.cluster.limits.writes == []
    assert not (started.output / "enforced").exists()


def test_a_dry_run_without_counters_says_so_and_speaks_of_no_limits(started):
    started.is_silent = True
    assert started.run(seconds=13) == 0
    assert started.said[-1] == "no counters for 10 s: see to headgate collect"


def test_a_shadow_records_what_would_be_pushed_and_sums_up_at_the_end(started):
    assert started.run("--shadow", seconds=9) == 0
    assert started.cluster.limits.writes == []
    assert [row["after"] for row in started.cluster.rows("shadow")] == ['{"messages": 90}']
    assert started.said[2:] == [
        "tenant acme publish: would push 90 msg/s; the first limit",
        "tenant acme publish: uses 310 msg/s of 100 msg/s; level 90 msg/s",
        "tenant acme publish: would have been held 8 s of 8 s: persistent://acme/b/2 (8 s)",
    ]


def test_a_shadow_beside_limits_that_are_set_says_so_and_leaves_them_alone(started):
    assert started.run("--apply", "--keep") == 0
    before = dict(started.cluster.limits.set)
    assert started.run("--shadow") == 0
    assert "headgate has set limits in 2 places: what they hold back is not seen here" in started.said
    assert started.cluster.limits.set == before
    assert started.run("--release", seconds=0) == 0
    assert started.cluster.limits.set == {}


@pytest.mark.parametrize("given", ["--apply", "--shadow"])
def test_no_table_is_waited_for_longer_than_its_service_allows(started, monkeypatch, given):
    """Those of groups included, and whether they are there at all."""
    started.conf = GROUPS
    waited = waits(monkeypatch)

    def asked(place, patience):
        waited.append(patience.of_delta)
        return is_there(place, patience)

    for module in (groups, enforce_command):
        monkeypatch.setattr(module, "is_there", asked)
    assert started.run(given) == 0
    assert len(waited) > 10
    assert all(one == ENFORCER_PATIENCE.of_delta for one in waited)


def test_resources_are_groups_whose_changes_take_effect_while_it_runs(started):
    started.conf = GROUPS
    limits, seen = started.cluster.limits, []

    def attach():
        store = opened_config(started.output, QuotaSettings())
        rows = [ResourceGroup(1, "gold", (100, None, None, None), version=1)]
        store.read()
        assert store.write([*rows, Attachment(AttachedTo.TENANT, "acme", "gold", 1)], 0)

    assert started.run("--apply", seconds=12, s0=attach, s10=lambda: seen.append(dict(limits.set))) == 0
    assert seen == [{"acme/a/in": text(90), "acme/b/in": text(90)}]
    assert "groups have changed" in started.said
    assert limits.set == {}


def test_counters_of_another_cluster_are_refused_before_anything_is_put_back(started):
    started.cluster.limits.set["acme/b/in"] = text(5000)
    assert started.run("--apply", "--keep") == 0
    started.called, here, started.cluster.limits.set = "other", started.cluster.limits.set, {}
    for given in ("--apply", "--release"):
        with pytest.raises(ClusterError, match=r"has counters of the cluster test, and cluster\.toml names other"):
            started.run(given)
    started.called, started.cluster.limits.set = "test", here
    assert started.run("--release", seconds=0) == 0
    assert here == {"acme/b/in": text(5000)}


@pytest.mark.parametrize("given", [("--keep",), ("--release", "--keep"), ("--shadow", "--fail-closed")])
def test_what_only_goes_with_apply_is_refused_without(started, given):
    with pytest.raises(ClusterError, match=f"{given[-1]}: got it without --apply"):
        started.run(*given)


def test_a_dry_run_counts_from_its_start(started):
    for _ in range(20):
        started.second()
    assert started.run(seconds=5) == 0
    assert started.said[-1] == "tenant acme publish: would have been held 5 s of 5 s: persistent://acme/b/2 (5 s)"


def test_a_dry_run_beside_limits_that_are_set_says_so(started):
    assert started.run("--apply", "--keep") == 0
    assert started.said[-1] == "limits stay at 2 places; headgate enforce --release puts them back"
    assert started.run(seconds=5) == 0
    assert "headgate has set limits in 2 places: what they hold back is not seen here" in started.said


def test_a_quota_that_is_too_small_for_its_topics_is_named(started):
    started.conf = CONF.replace("100", "1")
    assert started.run("--apply") == 0
    assert "tenant acme publish: the quota is too small for its topics: each gets 1 msg/s all the same" in started.said


def test_a_release_from_where_nothing_was_set_is_refused(started, tmp_path):
    started.output = tmp_path / "mistyped"
    with pytest.raises(ClusterError, match="mistyped has no table enforced"):
        started.run("--release", seconds=0)
    assert not started.output.exists()


def test_whatever_goes_wrong_nothing_is_left(started, monkeypatch):
    def break_off():
        monkeypatch.setattr(started.cluster.limits, "own_path", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        started.run("--apply", s3=break_off)
    assert started.said[-2:] == ["this process ends: division by zero", "put back at 2 of 2 places"]
    assert started.cluster.limits.set == {}


def test_a_collector_whose_clock_is_ahead_is_one_that_is_silent(started):
    """Each of its looks would seem to be of what was let in under the last limit."""
    seen, ahead_us = [], 0
    started.collector._now_us = lambda: started.cluster.now_us + ahead_us

    def jump():
        nonlocal ahead_us
        ahead_us = 3 * SECOND_US

    assert started.run("--apply", seconds=20, s5=jump, s19=lambda: seen.append(dict(started.cluster.limits.set))) == 0
    assert seen == [{}]
    assert len([line for line in started.said if "the collector's clock is +3 s off this one" in line]) == 1
    assert "no counters for 10 s: limits are put back until there are; see to headgate collect" in started.said


def test_a_collector_does_not_go_on_before_its_last_counters(started):
    """Those of a round that a kill cut off before its rows of `broker_looks` count as well."""
    started.second()
    tables = Tables(started.output, OF_COLLECTOR)
    (row,) = tables.read("counters", COUNTERS.names).slice(0, 1).to_pylist()
    later = row | {"at_us": started.cluster.now_us + 2 * SECOND_US}
    tables.extend("counters", pa.Table.from_pylist([later], COUNTERS))
    with pytest.raises(ClusterError, match="the last look in --output is 2 s ahead of this machine's clock"):
        Collector(started, tables, "c", lambda: started.cluster.now_us)


OPTIONS = {"metrics_port": 0, "release": False, "apply": False, "shadow": False, "keep": False, "fail_closed": False}


@pytest.mark.parametrize(
    ("command", "given"),
    [(collect, {}), (check, {}), *((enforce_command.enforce, {name: True}) for name in ("apply", "release", "shadow"))],
)
def test_a_store_that_is_away_and_one_that_refuses_are_told_before_the_cluster_is_asked(
    command, given, tmp_path, monkeypatch, no_store
):
    (tmp_path / "cluster.toml").write_text(CONF)
    arguments = argparse.Namespace(cluster=str(tmp_path / "cluster.toml"), output="s3a://b/o", **OPTIONS | given)
    with pytest.raises(AwayError, match=r"^--output: s3a://b/o cannot be reached: "):
        command(arguments, print)
    with (
        refusing(monkeypatch, 403, "SignatureDoesNotMatch"),
        pytest.raises(InputError, match=r"cannot be reached: .*SIGNATURE_DOES_NOT_MATCH"),
    ):
        command(arguments, print)
    with (
        refusing(monkeypatch, 404, "NoSuchBucket"),
        pytest.raises(InputError, match="there is no bucket b; create it"),
    ):
        command(arguments, print)


def away(tables, name, *_):
    """What Tables have of a table on a store that does not answer."""
    with tables._read(name):
        DeltaTable(f"s3a://b/o/{name}")


NOT_WRITTEN = "what is put back is not written down: the next start, or headgate enforce --release, does that"


@pytest.mark.usefixtures("no_store")
def test_where_the_tables_go_away_limits_are_put_back_and_the_next_release_writes_that_down(started, monkeypatch):
    started.cluster.limits.set["acme/b/in"] = text(5000)
    before = dict(started.cluster.limits.set)

    with monkeypatch.context() as meanwhile:

        def go_away():
            meanwhile.setattr(Tables, "version", away)

        with pytest.raises(TableError, match="cannot be read: "):
            started.run("--apply", s4=go_away)
    assert started.said[-3].startswith("this process ends: ")
    assert started.said[-2:] == [NOT_WRITTEN, "put back at 2 of 2 places"]
    assert started.cluster.limits.set == before
    assert [] == started.cluster.rows("released")

    assert started.run("--release", seconds=0) == 0
    assert "put back at 2 of 2 places" in started.said
    assert started.cluster.limits.set == before
    assert 2 == len(started.cluster.rows("released"))


@pytest.mark.usefixtures("no_store")
def test_where_the_tables_go_away_limits_that_are_to_be_kept_are_all_that_is_spoken_of(started, monkeypatch):
    with pytest.raises(TableError, match="cannot be read: "):
        started.run("--apply", "--keep", s4=lambda: monkeypatch.setattr(Tables, "version", away))
    assert started.said[-2].startswith("this process ends: ")
    assert started.said[-1] == "limits stay at 2 places; headgate enforce --release puts them back"
    assert len(started.cluster.limits.set) == 2


@pytest.mark.usefixtures("no_store")
def test_where_the_table_is_away_at_the_end_limits_are_put_back_and_the_next_start_goes_on(started, monkeypatch):
    with monkeypatch.context() as meanwhile:

        def go_away():
            meanwhile.setattr(Tables, "append_to", away)

        assert started.run("--apply", s4=go_away) == enforce_command.LEFT
    assert started.said[-2:] == [NOT_WRITTEN, "put back at 2 of 2 places"]
    assert started.cluster.limits.set == {}

    assert started.run("--apply") == 0
    assert {} == started.cluster.limits.set
    assert 2 == len(started.cluster.rows("released"))
