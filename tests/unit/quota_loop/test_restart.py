"""After a crash anywhere every usage row is there once, under the life in which it was cut, and shares come back."""

import pytest

from headgate.errors import TableError
from headgate.quota.loop import QuotaLoop
from headgate.quota.tables.delta import opened as opened_table
from headgate.quota.tables.loop_state import LoopStateStore
from headgate.quota.tables.schemas import QUOTA_STATE
from unit.quota_loop.rig import START, Cluster, Job, attached, chosen, group, opened, rows_of, usage_of, waits_of, write

SETTINGS = chosen(suppress_rounds=0)
DEMANDS = {("a", "gold"): 900, ("b", "gold"): 300}


class Killed(BaseException):
    """What no handler of the loop may catch."""


def store_of(folder):
    return LoopStateStore(opened_table(f"{folder}/quota_state", QUOTA_STATE, 1000))


def fail_at(loop, point):
    """Let the process die at a point of its next exchange."""

    def die(*args, **kwargs):
        raise Killed

    def after(owner, name):
        real = getattr(owner, name)

        def done(*args, **kwargs):
            real(*args, **kwargs)
            raise Killed

        setattr(owner, name, done)

    tables = loop._tables
    match point:
        case "before the cuts":
            tables.usage.append = die
        case "after the cuts":
            after(tables.usage, "append")
        case "before the read":
            loop._readback._new_rows = die
        case "after the read":
            after(loop._readback, "_new_rows")
        case "before the limits":
            loop._limit_log.write = die
        case "after the limits":
            after(loop._limit_log, "write")
        case "after the exchange":
            after(loop, "exchange")
        case "after joining":
            after(tables.members, "join")


def batch(folder, job, epoch, *, batch_id):
    """What the sink does with a batch."""
    store, clock_ms = store_of(folder), (epoch + 1) * 1000
    if not store.has("q", batch_id):
        usage, waits = usage_of(epoch, DEMANDS, job.limits), waits_of(epoch, DEMANDS, job.limits)
        job.loop.measure(usage, waits, ["a", "b"], clock_ms, 7_000 + batch_id)
        store.save(job.loop.state(), "q", batch_id)
    job.take(job.loop.exchange(clock_ms, 7_000 + batch_id))


def new_loop(folder):
    return QuotaLoop(opened(folder, SETTINGS), SETTINGS, state=store_of(folder).load())


POINTS = [
    "before the cuts",
    "after the cuts",
    "before the read",
    "after the read",
    "before the limits",
    "after the limits",
    "after the exchange",
    "after joining",
]

OF_THE_FIRST = {"before the cuts", "after the cuts", "after joining"}
"""Where the first batch does something that no later one does: its broker joins between its cuts and its rows."""
BATCHES = 4


@pytest.mark.parametrize(
    ("batch_id", "point"),
    [
        *(pytest.param(0, point, marks=() if point in OF_THE_FIRST else pytest.mark.long) for point in POINTS),
        *((2, point) for point in POINTS[:-1]),
    ],
)
def test_killed_anywhere_every_row_is_there_once_and_shares_come_back(tmp_path, point, batch_id):
    write(opened(tmp_path, SETTINGS), group(), attached())
    job = Job(new_loop(tmp_path))
    for number in range(BATCHES):
        if number == batch_id:
            fail_at(job.loop, point)
            with pytest.raises(Killed):
                batch(tmp_path, job, START + number, batch_id=number)
            job.loop = new_loop(tmp_path)
        batch(tmp_path, job, START + number, batch_id=number)

    rows = rows_of(tmp_path, "rg_usage", "WHERE group_id = 1 AND kind = 0 ORDER BY epoch, broker_id")
    assert [(START + number, broker) for number in range(BATCHES) for broker in (0, 1)] == [
        (row["epoch"], row["broker_id"]) for row in rows
    ]
    assert {("a", "gold", 0): (700, None), ("b", "gold", 0): (300, None)} == job.limits


def test_pending_cuts_go_first_under_the_life_in_which_they_were_cut(tmp_path):
    write(opened(tmp_path, SETTINGS), group(), attached())
    job = Job(new_loop(tmp_path))
    batch(tmp_path, job, START, batch_id=0)
    fail_at(job.loop, "before the cuts")
    with pytest.raises(Killed):
        batch(tmp_path, job, START + 1, batch_id=1)
    job.loop = new_loop(tmp_path)
    batch(tmp_path, job, START + 1, batch_id=1)
    batch(tmp_path, job, START + 2, batch_id=2)

    beats = rows_of(tmp_path, "rg_usage", "WHERE group_id = 0 AND broker_id = 0 ORDER BY epoch")
    lives = [(START, 7000), (START + 1, 7000), (START + 2, 7001)]
    assert lives == [(row["epoch"], row["incarnation"]) for row in beats]
    new_life = rows_of(tmp_path, "rg_usage", "WHERE incarnation = 7001")
    assert 1 == min(row["seq"] for row in new_life)


def test_a_restart_begins_with_the_cluster_share_and_tells_only_what_changes(tmp_path):
    quota = Cluster(tmp_path, ["a", "b"], one_job=True)
    write(quota.tables, group(), attached())
    quota.run(3, a=900, b=100)
    job = quota.jobs["all"]
    before = dict(job.limits)
    job.restart(opened(tmp_path, quota.settings), quota.settings)
    clock_ms = quota.epoch * 1000
    entry = job.take(job.loop.exchange(clock_ms, clock_ms))

    assert {("a", "gold", 0): (900, None), ("b", "gold", 0): (100, None)} == before
    assert [("a", 500), ("b", 500)] == [(row.broker, row.messages_per_s) for row in entry.limits]
    assert () == entry.attachments
    quota.run(2, a=900, b=100)
    assert before == job.limits


def test_when_all_jobs_restart_at_once_they_take_cluster_shares_until_the_first_view(tmp_path):
    quota = Cluster(tmp_path, ["a", "b", "c"], one_job=False)
    write(quota.tables, group(), attached())
    quota.run(3, a=900, b=20, c=20)
    for name, job in quota.jobs.items():
        job.restart(opened(tmp_path, quota.settings), quota.settings, broker=name)
    clock_ms = quota.epoch * 1000
    for job in quota.jobs.values():
        job.take(job.loop.exchange(clock_ms, clock_ms))
    for job in quota.jobs.values():  # those that were first did not know yet that the others begin anew
        job.take(job.loop.exchange(clock_ms + 1000, clock_ms))

    assert {"a": 334, "b": 333, "c": 333} == quota.limits()
    quota.epoch += 1
    quota.run(3, a=900, b=20, c=20)
    assert {"a": 920, "b": 40, "c": 40} == quota.limits()


@pytest.mark.parametrize(
    ("suppressed", "epochs"), [(8, 11), *(pytest.param(*more, marks=pytest.mark.long) for more in ((5, 8), (-1, 8)))]
)
def test_one_that_restarts_knows_what_the_others_said_before(tmp_path, suppressed, epochs):
    """Their rows are suppressed for R epochs, or for good: without those the others would seem to use nothing."""
    quota = Cluster(tmp_path, ["a", "b"], one_job=False, suppress_rounds=suppressed)
    write(quota.tables, group(), attached())
    quota.run(epochs, a=2000)
    quota.run(1, a=2000, running=["a"])
    quota.jobs["b"] = quota.job("b")
    quota.run(1, a=2000)

    assert {"a": 1000, "b": 25} == quota.limits()


def test_one_that_restarts_reserves_the_safe_share_of_one_that_is_silent(tmp_path):
    """What the silent one said last is older than what a new reader takes in of those that are heard."""
    quota = Cluster(tmp_path, ["a", "b"], one_job=False)
    write(quota.tables, group(), attached())
    quota.run(3, a=900, b=900)
    quota.run(11, running=["b"], b=900)
    quota.jobs["b"].restart(opened(tmp_path, quota.settings), quota.settings, broker="b")
    quota.run(3, running=["b"], b=900)

    assert {"a": 500, "b": 500} == quota.limits()


@pytest.mark.parametrize("at_once", [1, pytest.param(6, marks=pytest.mark.long)], ids="{} epochs a batch".format)
def test_one_whose_input_waited_takes_nobody_for_lost_and_knows_everybody_when_it_has_caught_up(tmp_path, at_once):
    quota = Cluster(tmp_path, ["a", "b"], one_job=False, silent_rounds=2)
    write(quota.tables, group(), attached())
    quota.run(4, a=200, b=2000)
    missed = quota.epoch
    quota.run(12, running=["a"], a=200)
    job = quota.jobs["b"]
    job.restart(opened(tmp_path, quota.settings), quota.settings, broker="b")
    for epoch in range(missed + at_once - 1, quota.epoch, at_once):
        job.run(epoch, {("b", "gold"): 2000}, wall_ms=quota.epoch * 1000)
    quota.run(3, a=200, b=2000)

    assert {"a": 200, "b": 800} == quota.limits()
    rows = rows_of(tmp_path, "rg_members", "ORDER BY version")
    assert ["b"] == [row["name"] for row in rows if row["state"] == "lost"]


def test_a_quota_that_was_taken_away_meanwhile_is_taken_back_after_a_restart(tmp_path):
    quota = Cluster(tmp_path, ["a"], one_job=True)
    write(quota.tables, group(), attached(), group("silver", id_=2, rate=5), attached("acme/b", "silver"))
    quota.run(2, a=10)
    write(quota.tables, group(rate=None), group("silver", id_=2, deleted=True))
    job = quota.jobs["all"]
    job.restart(opened(tmp_path, quota.settings), quota.settings)
    quota.run(1, a=10)

    assert {("a", "gold", 0): (None, None), ("a", "silver", 0): (None, None)} == job.limits
    assert {("namespace", "acme/a"): "gold", ("namespace", "acme/b"): None} == job.attached


def test_a_job_that_ends_leaves_and_its_share_is_free_at_once(tmp_path):
    quota = Cluster(tmp_path, ["a", "b"], one_job=False)
    write(quota.tables, group(), attached())
    quota.run(3, a=900, b=900)
    both = quota.limits()
    quota.jobs["b"].loop.close()
    quota.run(1, a=900, running=["a"])

    assert ({"a": 500, "b": 500}, 1000) == (both, quota.limits()["a"])
    assert "left" == rows_of(tmp_path, "rg_members", "WHERE name = 'b' ORDER BY version DESC")[0]["state"]


def test_the_store_keeps_the_newest_state_alone_and_knows_its_batches(tmp_path):
    store = store_of(tmp_path)
    empty = store.load()
    assert store.save({"n": [1, None]}, "q", 4)
    assert not store.save({"n": 2}, "q", 4)
    first = store.load()
    assert store.save({"n": 3}, "q", 5)

    assert (None, {"n": [1, None]}, {"n": 3}) == (empty, first, store_of(tmp_path).load())
    assert [True, True, False, False] == [
        store.has("q", 4),
        store.has("q", 5),
        store.has("q", 6),
        store.has("another", 0),
    ]
    assert 1 == len(rows_of(tmp_path, "quota_state"))


def test_files_of_old_states_go(tmp_path, monkeypatch):
    monkeypatch.setattr("headgate.quota.tables.loop_state.SAVES_BETWEEN_VACUUMS", 3)
    store = store_of(tmp_path)
    for number in range(6):
        store.save({"n": number}, "q", number)

    assert 1 == len(list((tmp_path / "quota_state").glob("*.parquet")))
    assert {"n": 5} == store.load()


def test_a_state_that_cannot_be_kept_is_an_error(tmp_path):
    store = store_of(tmp_path)
    (tmp_path / "quota_state").rename(tmp_path / "elsewhere")

    with pytest.raises(TableError, match="quota_state"):
        store.save({}, "q", 0)
