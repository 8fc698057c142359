"""Arrays give what the readable step gives, and evaluating only what changed gives what evaluating all gives."""

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.numbers import MAX
from headgate.core.quota.evaluation.assessment import assess
from headgate.core.quota.evaluation.step import decide
from headgate.core.quota.evaluation.view import choose_epoch
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.usage_map import Member, UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow
from headgate.quota.evaluation import Evaluation
from headgate.quota.limit_book import LimitBook
from headgate.quota.members_in_view import MembersInView
from unit.quota_loop.rig import group

KEYS = [(1, 0), (2, 0), (2, 1)]
GROUPS = {
    1: group("one", id_=1, rates=(1000, None, None, None)),
    2: group("two", id_=2, rates=(300, 0, 7, None)),
}
rates = st.integers(0, 2000)
rows = st.builds(
    dict,
    broker=st.integers(0, 2),
    key=st.sampled_from(KEYS),
    admitted=rates,
    offered=st.none() | rates,
    limit=st.none() | rates,
    throttled=st.booleans(),
    early=st.booleans(),
    late=st.sampled_from([0, 0, 0, 2]),
    kind=st.sampled_from(["busy", "busy", "busy", "idle", "idle", "leave"]),
)
beats = st.sampled_from([{0, 1, 2}, {0, 1, 2}, {0, 2}, {1}, set()])
phases = st.tuples(st.lists(rows, max_size=4), beats, st.integers(0, 8))
histories = st.lists(phases, min_size=1, max_size=5).map(
    lambda phases: [epoch for spoken, heard, rest in phases for epoch in [(spoken, heard), *[([], heard)] * rest]]
)
chosen = st.builds(
    QuotaSettings,
    allocation_mode=st.sampled_from(["fast", "strict"]),
    silent_rounds=st.integers(2, 4),
    linger_rounds=st.integers(0, 3),
    dead_band_percent=st.sampled_from([0, 20]),
    overshoot_percent=st.sampled_from([0, 5]),
)


def said(broker, kind="busy", *, offered=0, limit=None, late=0):
    return {
        "broker": broker,
        "key": (1, 0),
        "admitted": 0,
        "offered": offered,
        "limit": limit,
        "throttled": False,
        "early": False,
        "late": late,
        "kind": kind,
    }


ALL = {0, 1, 2}
REORDERED = [([said(0), said(1)], ALL), ([said(1, offered=1, late=2)], ALL), *[([], ALL)] * 4]
"""A late row that is not idle makes a later one linger that is."""
QUIET = [([], ALL)] * 4
PAUSES = [([said(0, offered=600), said(1, offered=600)], ALL), ([said(1, "idle")], ALL), *QUIET]
"""A broker pauses and ceases to linger while nobody says anything else."""
LEFT_OVER = [
    ([said(1, offered=5, limit=0)], ALL),
    ([said(0, offered=600, limit=100), said(1, "idle", limit=0), said(2, offered=100, limit=700)], ALL),
    *QUIET,
]
"""What an idle broker may be using is its target from the next epoch on: less is free for a gated raise."""
NEWCOMER = [
    ([said(0, offered=600, limit=600)], {0, 1}),
    ([said(1, offered=600)], {0, 1}),
    ([said(2, offered=600, late=2)], {0, 1}),
    *[([], {0, 1})] * 3,
]
"""A broker joins with a row of two epochs before, which nobody waited for, and is not heard again."""


class World:
    """A usage map that hears a history epoch by epoch, and which groups change.

    Broker 2 joins in the epoch `joined`; its rows may describe epochs before.
    """

    def __init__(self, settings, joined=10):
        self.map = UsageMap(settings.map_parameters())
        self.map.set_members({0: Member(1), 1: Member(1, 2)}, 10_000)
        self.joined = joined
        self.join(10)
        self.seq = 0
        self.epoch = 10
        self.settings = settings

    def join(self, epoch):
        if epoch == self.joined:
            self.map.join(2, Member(1), epoch * 1000)

    def hear(self, spoken, heartbeats):
        """Rows of `epoch`, then the clock is at its end."""
        self.join(self.epoch + 1)
        accepted = []
        for one in spoken:
            self.seq += 1
            leaves, idle = one["kind"] == "leave", one["kind"] == "idle"
            early = one["early"] and not leaves
            row = UsageRow(
                one["broker"],
                1,
                self.seq,
                self.epoch + early - one["late"],
                (self.epoch + 1) * 1000,
                *one["key"],
                ReportKind.LEAVE if leaves else ReportKind.EVENT if early else ReportKind.PERIODIC,
                (0, 0) if idle else (one["admitted"], one["admitted"] // 2),
                (None, None) if idle else (one["offered"], None),
                (one["limit"], one["limit"]),
                (one["throttled"] and not idle, False),
            )
            if self.map.receive(row, (self.epoch + 1) * 1000) is None:
                accepted.append((row, early))
        for broker in heartbeats:
            self.seq += 1
            row = UsageRow(broker, 1, self.seq, self.epoch, (self.epoch + 1) * 1000, 0)
            self.map.receive(row, (self.epoch + 1) * 1000)
        self.epoch += 1
        return accepted


def noted(changed_groups, world, accepted):
    """What the reader of the tables notes of accepted rows."""
    for row, early in accepted:
        idle = not row.is_leave and row.usage().idle
        changed_groups.accepted(row, idle=idle, early=early)
        entry = None if row.is_leave else world.map.members()[row.broker_id].as_of(row.key, MAX)
        if entry is not None and entry.idle_since is not None:
            changed_groups.expect_later(row.key, entry.idle_since + world.settings.linger_rounds)


def everything(world, settings, book, own):
    """Every cell of every broker by the readable step, as of the epoch that it chooses."""
    parameters = settings.step_parameters()
    presents = {}
    for broker in own:
        as_of = choose_epoch(world.map, broker, world.epoch)
        in_view = MembersInView.of(world.map, own, as_of, one_job=True)
        for key in [(group_id, traffic_class) for group_id in GROUPS for traffic_class in (0, 1)]:
            for dimension in (0, 1):
                quota, cell = GROUPS[key[0]].quotas(key[1])[dimension], (*key, dimension)
                assessment = assess(parameters, quota, in_view.view(key, dimension))
                presents[cell, broker] = decide(parameters, assessment, broker, book.present(cell, broker).limit)
    return presents


@pytest.mark.parametrize("own", [{0: 1, 1: 2, 2: 1}, {1: 2}, {0: 1, 5: 3}], ids=["all", "one", "one not listed"])
@hypothesis_settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(history=histories, settings=chosen, joined=st.integers(10, 16))
@example(history=REORDERED, settings=QuotaSettings(linger_rounds=3), joined=10)
@example(history=PAUSES, settings=QuotaSettings(linger_rounds=2), joined=10)
@example(history=LEFT_OVER, settings=QuotaSettings(allocation_mode="strict", overshoot_percent=0), joined=10)
@example(history=NEWCOMER, settings=QuotaSettings(allocation_mode="strict", silent_rounds=2), joined=13)
def test_what_changed_evaluated_in_arrays_gives_what_evaluating_all_readably_gives(own, history, settings, joined):
    world, book, plain = World(settings, joined), LimitBook(), LimitBook()
    evaluation = Evaluation(settings, book, one_job=True)
    evaluation.set_groups(GROUPS)
    for spoken, heartbeats in history:
        noted(evaluation.changed_groups, world, world.hear([one | {"early": False} for one in spoken], heartbeats))
        evaluation.run(world.map, own, world.epoch)
        for (cell, broker), outcome in everything(world, settings, plain, own).items():
            plain.decide(cell, broker, outcome)
        assert list(plain.settle()) == list(book.settle())


@hypothesis_settings(max_examples=examples(30))
@given(history=histories, settings=chosen, one_job=st.booleans())
def test_an_early_row_is_evaluated_at_once_as_a_coupled_job_does_it_readably(history, settings, one_job):
    """Coupling looks at both dimensions together; where bytes are not limited it is the readable form of the same."""
    readable = QuotaSettings(
        **{name: getattr(settings, name) for name in settings.__slots__} | {"couple_dimensions": True}
    )
    books = []
    for of_form in (settings, readable):
        world, book = World(settings), LimitBook()
        evaluation = Evaluation(of_form, book, one_job=one_job)
        evaluation.set_groups({1: GROUPS[1]})
        found = []
        for spoken, heartbeats in history:
            noted(evaluation.changed_groups, world, world.hear(spoken, heartbeats))
            evaluation.run(world.map, {0: 1, 1: 2}, world.epoch)
            found.append(list(book.settle()))
        books.append(found)

    assert books[1] == books[0]


def test_more_brokers_than_the_arrays_can_sum_are_evaluated_all_the_same():
    settings, brokers = QuotaSettings(), range(1001)
    usage_map = UsageMap(settings.map_parameters())
    usage_map.set_members(dict.fromkeys(brokers, Member(1)), 10_000)
    for broker in brokers:
        wanted = ((7, 0), (7, None), (None, None), (False, False))
        usage_map.receive(UsageRow(broker, 1, 1, 10, 11_000, 1, 0, ReportKind.PERIODIC, *wanted), 11_000)
        usage_map.receive(UsageRow(broker, 1, 1, 10, 11_000, 0), 11_000)
    book = LimitBook()
    evaluation = Evaluation(settings, book, one_job=True)
    evaluation.set_groups({1: GROUPS[1]})
    evaluation.run(usage_map, dict.fromkeys(brokers, 1), 11)

    assert GROUPS[1].rates[0] == sum(book.limits((1, 0), broker)[0] for broker in brokers)
