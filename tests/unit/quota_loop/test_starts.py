"""Jobs of one broker that start one after another on live input share the quota from the epoch in which all are up."""

from math import ceil

import pyarrow as pa
import pytest

from unit.quota_loop.rig import START, Cluster, attached, group, usage_of, waits_of, write

Q = 3000
MOST = Q * 1.05
WANTED = 5000
PLANNED_S = 3
"""From the begin of a job to its first batch, which takes in what was there by then."""


class Live:
    """Jobs by the wall clock, in seconds from START: what a batch lets in goes by the limits known when it is planned.

    A limit holds from the event time that the job had come to when it was decided.
    """

    def __init__(self, brokers="abc", **values):
        self.quota = Cluster(None, list(brokers), one_job=False, **values)
        write(self.quota.tables, group(rate=Q), attached())
        self.jobs, self.reached_s, self.decided = {}, {}, {}
        self.due = []

    def start(self, broker, at_s, *, first_s, batch_s=1.0, until_s=30.0):
        """A job's looks at the tables, as it begins and as its query starts, and its batches."""
        planned_s = at_s + PLANNED_S
        self.due += [(at_s, broker, None), (planned_s - 0.5, broker, None)]
        ends_s = planned_s + first_s
        while ends_s < until_s:
            self.due.append((ends_s, broker, int(planned_s)))
            planned_s, ends_s = ends_s, ends_s + batch_s

    def run(self):
        for at_s, broker, until_s in sorted(self.due, key=lambda one: one[0]):
            if broker not in self.jobs:
                self.jobs[broker] = self.quota.job(broker)
            if until_s is None:
                self.look(broker, at_s)
            elif until_s > self.reached_s.get(broker, 0):
                self.batch(broker, at_s, until_s)

    def look(self, broker, at_s):
        reached_ms = (START + self.reached_s[broker]) * 1000 if broker in self.reached_s else 0
        self.note(broker, self.jobs[broker].loop.exchange(reached_ms, int((START + at_s) * 1000)))

    def batch(self, broker, at_s, until_s):
        job, epochs = self.jobs[broker], range(self.reached_s.get(broker, 0), until_s)
        traffic = {(broker, "gold"): WANTED}
        usage, waits = (
            pa.concat_tables([of(START + epoch, traffic, job.limits) for epoch in epochs])
            for of in (usage_of, waits_of)
        )
        self.reached_s[broker] = until_s
        clock_ms = (START + until_s) * 1000
        job.loop.measure(usage, waits, [broker], clock_ms, int((START + at_s) * 1000))
        self.look(broker, at_s)

    def note(self, broker, rows):
        for limit in self.jobs[broker].take(rows).limits:
            since_s = max(0, limit.effective_ms // 1000 - START)
            self.decided.setdefault(broker, {})[since_s] = limit.messages_per_s

    def limits(self, epoch):
        """The limits in force in an epoch."""
        return {
            broker: limits[max(since_s for since_s in limits if since_s <= epoch)]
            for broker, limits in self.decided.items()
        }


@pytest.mark.parametrize(
    ("apart_s", "first_s", "batch_s", "until_s"),
    [
        (0.0, (2, 2, 2), (1.1, 2.3, 0.7), 10),
        (1.5, (12, 9, 6), (1.1, 2.3, 0.7), 20),
        (1.5, (4, 8, 16), (1.1, 2.3, 0.7), 28),
        (1.5, (2.6, 2, 4), (0.6, 0.7, 0.5), 20),
    ],
    ids=["at once", "the last one first", "in order", "first rows that others are too far ahead for"],
)
def test_jobs_that_start_one_after_another_never_have_more_than_the_quota_among_them(
    apart_s, first_s, batch_s, until_s
):
    live = Live()
    for number, broker in enumerate("abc"):
        begins_s = 1 + number * apart_s
        live.start(broker, begins_s, first_s=first_s[number], batch_s=batch_s[number], until_s=until_s)
    live.run()
    all_up = ceil(1 + 2 * apart_s)
    beyond = {epoch: held for epoch in range(all_up, until_s) if sum((held := live.limits(epoch)).values()) > MOST}

    assert {} == beyond
    assert {"a": 1000, "b": 1000, "c": 1000} == live.limits(until_s)
    assert {"up"} == {row.state for row in live.quota.tables.members.read().values()}


def test_a_job_that_joins_others_has_the_floor_until_it_has_said_something_and_they_keep_its_part():
    live = Live()
    for broker in "ab":
        live.start(broker, 1, first_s=2, until_s=20)
    live.start("c", 8, first_s=7, until_s=20)
    live.run()

    expected = {"a": 1500, "b": 1500, "c": 50}
    assert expected == live.limits(7)
    assert expected == live.limits(10)
    assert {"a": 1000, "b": 1000, "c": 1000} == live.limits(12)
    assert {"a": 1000, "b": 1000, "c": 1000} == live.limits(20)


def test_what_a_member_never_used_is_kept_for_it_until_it_is_lost_or_leaves():
    """Its job may be dead, or in a first batch that takes minutes."""
    live = Live("ab", silent_rounds=2)
    live.start("b", 1, first_s=100)
    live.start("a", 1, first_s=2, batch_s=3, until_s=65)
    live.run()
    lost_s = max(epoch for epoch in range(65) if live.limits(epoch) == {"a": 1500, "b": 1500})

    assert {"a": 3000, "b": 1500} == live.limits(64)
    assert 50 <= lost_s <= 60
