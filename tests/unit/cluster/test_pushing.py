"""Limits that are set and put back on a cluster in memory, with the ledger in a real table (clusters 3.3)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from headgate.cluster.ledger import RELEASED, SILENT_S, Ledger, Step
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import own_name
from headgate.cluster.schemas import OF_ENFORCER
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError, TableError
from headgate.tables.delta import Tables
from unit.cluster.enforced_cluster import MemoryLimits, text


class Late(MemoryLimits):
    """A cluster that has each change only once it `comes`."""

    def __init__(self) -> None:
        super().__init__()
        self.coming: list[tuple[str, str | None]] = []

    def write(self, path: str, value: str | None) -> None:
        self.coming.append((path, value))
        raise ClusterError(f"{path}: no answer in time")

    def comes(self) -> None:
        for one in self.coming:
            super().write(*one)


class Meanwhile(Event):
    """Never set; while somebody waits for it, `call` is called."""

    def __init__(self, call: Callable[[], object] = int) -> None:
        super().__init__()
        self._call = call

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002  an Event's
        self._call()
        return False


class Ledgers:
    """Of several processes on one table. now_us: their clock."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.now_us = folder, SECOND_US

    def of(self, name: str) -> Ledger:
        return Ledger(Tables(self._folder, OF_ENFORCER), name, lambda: self.now_us)

    def taken(self, name: str) -> Ledger:
        ledger = self.of(name)
        assert ledger.take(Meanwhile(), str)
        return ledger


@pytest.fixture
def ledgers(tmp_path: Path) -> Ledgers:
    return Ledgers(tmp_path)


STEP = Step("tenant acme")
PATHS = ["acme/a/in", "acme/b/in"]


def test_a_process_that_pushes_all_the_time_is_alive(ledgers: Ledgers) -> None:
    first, second = ledgers.taken("there:1"), ledgers.of("elsewhere:2")
    with pytest.raises(ClusterError, match="there:1 enforces limits with this --output, and is alive"):
        second.take(Meanwhile(lambda: first.write([replace(STEP, path="p", after="1")])), str)


def test_a_process_of_this_machine_that_is_alive_is_not_waited_for(ledgers: Ledgers) -> None:
    ledgers.taken(f"{own_name().rpartition(':')[0]}:{os.getppid()}")
    ledgers.now_us += SILENT_S * SECOND_US - 2
    with pytest.raises(ClusterError, match="and is alive"):
        ledgers.of("elsewhere:2").take(Meanwhile(lambda: pytest.fail("it waited")), str)
    ledgers.now_us += 2  # another process has its id by now
    assert ledgers.of("elsewhere:2").take(Meanwhile(), str)


def test_one_whose_name_is_ones_own_runs_no_more(ledgers: Ledgers) -> None:
    """A container that is started again has the process ids of the one before."""
    ledgers.taken(own_name())
    assert ledgers.of(own_name()).take(Meanwhile(lambda: pytest.fail("it waited")), str)


def test_a_process_whose_lease_was_taken_puts_nothing_back(ledgers: Ledgers) -> None:
    limits = MemoryLimits()
    old = Pushing(limits, ledgers.taken("there:1"))
    assert old.push(STEP, PATHS, Limit(9)) == {}
    ledgers.now_us += SILENT_S * SECOND_US
    ledgers.taken("elsewhere:2")
    for act in (lambda: old.release(STEP, PATHS), lambda: old.push(STEP, PATHS, Limit(8))):
        with pytest.raises(ClusterError, match="elsewhere:2 has taken the lease"):
            act()
    assert limits.set == dict.fromkeys(PATHS, text(9))


def test_a_change_without_an_answer_stays_in_the_ledger_as_it_may_come_late(ledgers: Ledgers) -> None:
    limits, ledger = Late(), ledgers.taken("there:1")
    pushing = Pushing(limits, ledger)
    assert pushing.push(STEP, PATHS, Limit(9)).keys() == set(PATHS)
    assert pushing.release(STEP, PATHS) == dict.fromkeys(
        PATHS, "an earlier change was not answered, and may still come"
    )
    limits.comes()
    assert limits.set == dict.fromkeys(PATHS, text(9))
    assert pushing.release(STEP, PATHS).keys() == set(PATHS)
    limits.comes()
    assert limits.set == {}
    assert Pushing(limits, ledger).release(STEP, PATHS) == {}
    assert ledger.open() == {}


def test_a_change_whose_answer_alone_was_lost_is_settled(ledgers: Ledgers) -> None:
    limits, ledger = Late(), ledgers.taken("there:1")
    pushing = Pushing(limits, ledger)
    pushing.push(STEP, PATHS, Limit(9))
    limits.comes()
    assert pushing.push(STEP, PATHS, Limit(9)) == {}
    limits.set.clear()  # the operator
    assert pushing.release(STEP, PATHS) == {}


def test_a_limit_that_the_operator_sets_again_stays_the_operators(ledgers: Ledgers) -> None:
    limits, ledger, (path, _) = MemoryLimits(), ledgers.taken("there:1"), PATHS
    pushing = Pushing(limits, ledger)
    limits.set[path] = text(20)
    for limit in (10, 40):
        pushing.push(STEP, [path], Limit(limit))
    assert limits.set == {path: text(20)}
    for own in (50, 20):
        limits.set[path] = text(own)
        pushing.push(STEP, [path], Limit(40))
    assert limits.set == {path: text(20)}
    assert pushing.release(STEP, [path]) == {}
    assert limits.set == {path: text(20)}


def test_what_was_put_back_and_could_not_be_written_down_is_left_alone_later(
    ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, ledger, (a, b) = MemoryLimits(), ledgers.taken("there:1"), PATHS
    pushing = Pushing(limits, ledger)
    limits.set[a] = text(20)
    pushing.push(STEP, PATHS, Limit(9))

    def full(steps: Sequence[Step]) -> None:
        assert {step.action for step in steps} == {RELEASED}
        raise TableError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write", full)
        with pytest.raises(TableError):
            pushing.release(STEP, PATHS)
    assert limits.set == {a: text(20)}
    limits.set[b] = text(7)  # the operator
    assert Pushing(limits, ledger).release(STEP, PATHS) == {}
    assert limits.set == {a: text(20), b: text(7)}
    assert ledger.open() == {}


class OfTopics(MemoryLimits):
    """A cluster where a topic without a limit of its own has its namespace's. reads: of which paths."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, path: str) -> str | None:
        self.reads.append(path)
        return super().read(path)

    def wider_path(self, path: str) -> str | None:
        namespace = path.rpartition("/t")[0]
        return f"{namespace}/in" if namespace else None


def test_the_limit_of_a_namespace_is_read_once_for_all_its_topics(ledgers: Ledgers) -> None:
    limits, topics = OfTopics(), ["acme/a/t1/in", "acme/a/t2/in", "acme/b/t3/in"]
    assert Pushing(limits, ledgers.taken("a")).push(STEP, topics, Limit(9)) == {}
    assert [limits.reads.count(f"acme/{namespace}/in") for namespace in "ab"] == [1, 1]


def test_a_topic_gets_no_limit_where_its_namespaces_is_not_told(ledgers: Ledgers) -> None:
    limits, (topic, path) = OfTopics(), ("acme/a/t1/in", "acme/a/in")
    limits.refused.add(path)
    assert Pushing(limits, ledgers.taken("a")).push(STEP, [topic], Limit(9)) == {topic: f"{path}: no answer in time"}


class Wider(MemoryLimits):
    """A cluster where what holds without a limit of its own is 100 messages a second."""

    def lowered(self, path: str, value: str | None, wider: str | None, limit: Limit) -> str | None:
        own = 100 if value is None else self.limit(path, value).messages
        return value if own is not None and own <= (limit.messages or 0) else super().lowered(path, value, wider, limit)


def test_a_limit_is_put_back_once_what_holds_without_it_is_lower(ledgers: Ledgers) -> None:
    limits = Wider()
    pushing = Pushing(limits, ledgers.taken("a"))
    assert pushing.push(STEP, PATHS, Limit(60)) == {}
    assert [limits.read(path) for path in PATHS] == [text(60)] * 2
    assert pushing.push(STEP, PATHS, Limit(300)) == {}
    assert [limits.read(path) for path in PATHS] == [None] * 2
    assert pushing.open == []
    assert pushing.push(STEP, PATHS, Limit(300), again=True) == {}
    assert pushing.open == []
