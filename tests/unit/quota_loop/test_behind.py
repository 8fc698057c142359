"""A job whose input waits sees the others as they were then, and never takes what it does not know to be free."""

import pytest

from unit.quota_loop.rig import Cluster, attached, group, write

DEMANDS = {"a": 900, "b": 300}
OFF_EPOCHS = 14


def cluster(folder, **values):
    """Jobs of a and b, that take each other for lost after ten epochs."""
    quota = Cluster(folder, ["a", "b"], one_job=False, **({"suppress_rounds": 0, "silent_rounds": 2} | values))
    write(quota.tables, group(), attached())
    return quota


def stop(quota, epochs):
    """Job a ends, b goes on. The epoch at which a has to go on."""
    at = quota.epoch
    quota.run(epochs, running=["b"], b=300)
    return at


def catch_up(quota, job, epochs):
    """Run job a through the epochs that it missed, by the wall clock of now; its limits."""
    wall_ms, limits = quota.epoch * 1000, []
    for epoch in epochs:
        job.run(epoch, {("a", "gold"): DEMANDS["a"]}, wall_ms=wall_ms)
        limits.append(job.limits["a", "gold", 0][0])
    return limits


def restart(quota, name):
    quota.jobs[name].restart(quota.jobs[name].loop._tables, quota.settings, broker=name)
    return quota.jobs[name]


def test_it_goes_by_what_the_others_used_then(tmp_path):
    quota = cluster(tmp_path)
    quota.run(3, **DEMANDS)
    at = stop(quota, OFF_EPOCHS)
    limits = catch_up(quota, restart(quota, "a"), range(at, at + 9))

    assert {700} == set(limits[5:])
    assert 1000 == quota.limits()["b"]


@pytest.mark.parametrize("suppress_rounds", [5, *(pytest.param(rounds, marks=pytest.mark.long) for rounds in (0, -1))])
def test_where_the_others_live_anew_it_has_its_cluster_share_until_it_has_caught_up(tmp_path, suppress_rounds):
    quota = cluster(tmp_path, suppress_rounds=suppress_rounds)
    quota.run(3, **DEMANDS)
    at = stop(quota, 6)
    restart(quota, "b")
    quota.run(4, running=["b"], b=300)
    job = restart(quota, "a")
    limits = catch_up(quota, job, range(at, quota.epoch - 1))
    quota.run(4, **DEMANDS)

    assert {500} == set(limits[:5])
    assert {"a": 700, "b": 300} == quota.limits()


def test_a_job_alone_that_is_behind_has_the_whole_quota(tmp_path):
    quota = cluster(tmp_path)
    limits = catch_up(quota, quota.jobs["a"], range(quota.epoch - OFF_EPOCHS, quota.epoch - OFF_EPOCHS + 5))

    assert {1000} == set(limits)


def test_what_waits_is_read_once_and_counted_once(tmp_path):
    quota = cluster(tmp_path)
    quota.run(3, **DEMANDS)
    at = stop(quota, OFF_EPOCHS)
    job = restart(quota, "a")
    reader = job.loop._tables.usage_reader()
    whole = []
    read = type(reader).read
    try:
        type(reader).read = lambda *args: (whole.append(read(*args)), whole[-1])[1]
        catch_up(quota, job, range(at, at + 5))
    finally:
        type(reader).read = read

    assert [True] + [False] * 4 == [one.whole for one in whole]
    assert {} == {name: count for name, count in quota.metric("rows_dropped_total").items() if name == "future"}


def test_a_clock_that_is_slow_by_more_than_silence_sees_the_others_as_late_and_keeps_its_share(tmp_path):
    """Until the others, to whom what it says is stale, take it for lost."""
    quota = cluster(tmp_path, silent_rounds=3)
    quota.run(3, **DEMANDS)
    quota.jobs["a"].clock_off_ms = -6_000
    quota.run(9, **DEMANDS)

    assert {"a": 700, "b": 400} == quota.limits()


@pytest.mark.parametrize(
    ("off", "idle"),
    [(11, 2), *(pytest.param(*more, marks=pytest.mark.long) for more in ((5, 3), (7, 2), (30, 2), (30, 3)))],
)
def test_what_is_said_once_is_not_missed_however_far_off_it_was(tmp_path, off, idle):
    """That b uses nothing any more is one row, which nothing repeats."""
    quota = cluster(tmp_path, silent_rounds=8)
    quota.run(3, **DEMANDS)
    at = stop(quota, off - idle)
    quota.run(idle, running=["b"], b=0)
    job = restart(quota, "a")
    job.take(job.loop.exchange(at * 1000, quota.epoch * 1000))
    catch_up(quota, job, range(at, quota.epoch - 1))
    quota.run(3, a=900, b=0)

    assert 900 <= quota.limits()["a"]
