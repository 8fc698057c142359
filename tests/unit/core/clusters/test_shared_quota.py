"""A quota over topics that brokers hold with buckets of their own, from counters alone."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import Amounts, SharedQuota, TopicLook
from headgate.errors import InvalidArgument

STEP_US = 100_000


class Cluster:
    """Brokers as a quota sees them: each topic gets what it offers, within a bucket of the cap's second.

    offered: a second, by topic; unlimited: topics that no limit holds. Everything that is not `away` is looked at
    every period_s.
    """

    def __init__(self, quota, offered, *, period_s=2, unlimited=()):
        self.quota, self.offered, self.period_us = SharedQuota(quota), dict(offered), period_s * SECOND_US
        self.unlimited, self.not_enforceable = set(unlimited), frozenset()
        self.now_us, self.pushed_us = 0, []
        self.tokens, self.came, self.looked = {}, defaultdict(float), defaultdict(int)
        self.by_second = defaultdict(lambda: defaultdict(float))
        self.decision, self.away, self.looked_us = None, set(), defaultdict(int)

    def run(self, seconds):
        for _ in range(seconds * SECOND_US // STEP_US):
            self._step()
        return self

    def _step(self):
        cap = self.quota.in_force.messages
        for topic, rate in self.offered.items():
            wanted = rate * STEP_US / SECOND_US
            if cap is not None and topic not in self.unlimited:
                self.tokens[topic] = min(self.tokens.get(topic, cap) + cap * STEP_US / SECOND_US, cap)
                wanted = min(wanted, self.tokens[topic])
                self.tokens[topic] -= wanted
            self.came[topic] += wanted
            self.by_second[self.now_us // SECOND_US][topic] += wanted
        self.now_us += STEP_US
        if self.now_us % self.period_us == 0:
            self._look()

    def _look(self):
        for topic in self.offered.keys() - self.away:
            count = int(self.came[topic])
            amounts = Amounts(count - self.looked[topic], 0)
            self.quota.add(topic, TopicLook(self.looked_us[topic], self.now_us, amounts))
            self.looked[topic], self.looked_us[topic] = count, self.now_us
        decision = self.quota.decide(self.now_us, self.not_enforceable)
        if decision is not None:
            self.decision = decision
            if decision.push is not None:
                self.quota.pushed(self.now_us, decision.push)
                self.pushed_us.append(self.now_us)
                self.tokens.clear()

    def mean(self, first_s, last_s):
        return sum(sum(self.by_second[second].values()) for second in range(first_s, last_s)) / (last_s - first_s)


OFFERED = {"t1": 20, "t2": 60, "t3": 200, "t4": 40, "t5": 120, "t6": 300}


@pytest.mark.parametrize("period_s", [1, 2, 5])
def test_six_topics_get_their_quota_and_no_more_and_small_ones_what_they_want(period_s):
    cluster = Cluster(Limit(300), OFFERED, period_s=period_s).run(180)

    for first_s in range(30, 120, 10):
        assert cluster.mean(first_s, first_s + 60) == pytest.approx(300, rel=0.03)
    assert max(sum(cluster.by_second[second].values()) for second in range(30, 180)) <= 450
    assert all(cluster.by_second[second]["t1"] == pytest.approx(20) for second in range(180))
    assert len([at_us for at_us in cluster.pushed_us if at_us >= 30 * SECOND_US]) <= 4


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(50, 1000))
def test_whatever_is_offered_a_minute_holds_the_quota_and_leaves_nothing_that_is_wanted(rates, quota):
    cluster = Cluster(Limit(quota), {f"t{n}": rate for n, rate in enumerate(rates)}).run(120)
    wanted = min(sum(rates), quota)

    rounded = len(rates)  # a cap is a whole number
    assert wanted * 0.97 - rounded <= cluster.mean(60, 120) <= wanted * 1.03 + rounded


@pytest.mark.parametrize(("before", "after"), [(20, 300), (300, 20)])
def test_a_step_of_demand_is_followed_within_15_s(before, after):
    cluster = Cluster(Limit(300), OFFERED | {"t6": before}).run(120)
    cluster.offered["t6"] = after
    cluster.run(60)

    wanted = min(300, sum(cluster.offered.values()))
    assert cluster.mean(135, 145) == pytest.approx(wanted, rel=0.1)
    assert cluster.mean(145, 180) == pytest.approx(wanted, rel=0.05)


def test_a_tenant_that_needs_less_than_its_quota_is_never_held_and_gets_one_push():
    cluster = Cluster(Limit(1000), OFFERED).run(120)

    assert cluster.mean(0, 120) == pytest.approx(sum(OFFERED.values()))
    assert cluster.quota.in_force == Limit(1000)
    assert len(cluster.pushed_us) == 1


def test_a_quota_below_the_number_of_topics_leaves_each_the_least():
    cluster = Cluster(Limit(3), dict.fromkeys("abcdef", 100)).run(60)

    assert cluster.quota.in_force == Limit(1)
    assert cluster.mean(30, 60) == pytest.approx(6)


def test_a_client_that_stalls_for_a_look_does_not_move_the_cap():
    cluster = Cluster(Limit(300), OFFERED).run(60)
    before = cluster.quota.in_force
    cluster.offered["t6"] = 0
    cluster.run(2)
    cluster.offered["t6"] = 300
    cluster.run(8)

    assert cluster.quota.in_force == before


def test_who_does_not_keep_to_its_limit_is_found_and_its_use_counts():
    cluster = Cluster(Limit(300), OFFERED, unlimited=["t6"]).run(30)
    assert cluster.decision.above == {"t6"}

    cluster.offered["t6"] = 150
    cluster.not_enforceable = frozenset({"t6"})
    cluster.run(90)
    assert cluster.mean(70, 120) == pytest.approx(300, rel=0.04)


def test_what_a_broker_without_a_look_lets_in_is_not_nothing():
    """Right after a push only looks of the other broker are new."""
    cluster = Cluster(Limit(300), {"a": 300, "b": 20, "away": 300, "away too": 20}, period_s=5).run(60)
    cap = cluster.quota.in_force.messages
    cluster.offered["b"] = 60
    cluster.run(10)
    assert cluster.quota.in_force.messages < cap
    cluster.away = {"away", "away too"}
    cluster.run(35)
    cluster.away = set()
    cluster.run(60)
    assert max(cluster.mean(first, first + 60) for first in range(60, 75)) <= 300 * 1.03


def test_who_did_not_keep_to_its_limit_is_not_known_to_keep_to_it():
    cluster = Cluster(Limit(100), {"a": 300, "b": 300}, unlimited={"b"}).run(30)
    assert cluster.decision.above == {"b"}
    cluster.not_enforceable = frozenset({"b"})
    cluster.away = {"b"}
    cluster.quota.pushed(cluster.now_us, Limit(20))
    cluster.run(10)
    assert cluster.decision.above == {"b"}


def let_in_by_a_bucket(publishes, cap, seconds):
    """Bytes in each tenth of a second by a bucket that a publish of any size may put into debt.

    publishes: the size of a publish each so many tenths of a second; what does not come in waits.
    """
    tokens, queue = cap, []
    for tenth in range(10 * seconds):
        tokens = min(tokens + cap / 10, cap)
        queue += [size for size, every in publishes if tenth % every == 0]
        came = 0
        while queue and tokens > 0:
            size = queue.pop(0)
            tokens -= size
            came += size
        yield came


@pytest.mark.parametrize(
    ("publishes", "cap"),
    [
        ([(1_000_000, 10)], 50_000),
        ([(512_000, 10)], 50_000),
        ([(1_000_000, 10)], 30_000),
        ([(1_000, 1), (4_000_000, 150)], 100_000),
        ([(100, 1)], 20_000),
    ],
)
def test_who_is_held_by_a_bucket_that_goes_into_debt_keeps_to_the_limit(publishes, cap):
    quota, came = SharedQuota(Limit(None, cap)), 0
    quota.pushed(0, Limit(None, cap))
    for tenth, now in enumerate(let_in_by_a_bucket(publishes, cap, 600), 1):
        came += now
        if tenth % 50 == 0:
            at_us = tenth * STEP_US
            quota.add("a", TopicLook(at_us - 5 * SECOND_US, at_us, Amounts(came // 1_000, came)))
            assert quota.decide(at_us).above == frozenset(), tenth
            came = 0


@pytest.mark.parametrize(("bytes_per_s", "found_s"), [(190_000, 10), (2_740, 165), (2_300, 350), (1_910, None)])
def test_a_topic_a_little_above_a_small_limit_is_found_in_time_and_one_within_15_percent_never(bytes_per_s, found_s):
    """A batch of 128 KiB at once is no excess; that much beside the limit, little by little, is."""
    quota = SharedQuota(Limit(None, 1_666))
    quota.pushed(0, Limit(None, 1_666))
    found = []
    for at_s in range(5, 3_600, 5):
        at_us = at_s * SECOND_US
        quota.add("a", TopicLook(at_us - 5 * SECOND_US, at_us, Amounts(bytes_per_s // 20, 5 * bytes_per_s)))
        found += [at_s] if quota.decide(at_us).above else []
    assert (found[0] if found else None) == found_s


def test_who_does_not_keep_to_any_limit_is_named_once():
    cluster = Cluster(Limit(300), {"a": 300, "b": 300, "c": 150}, unlimited={"c"}).run(30)
    cluster.not_enforceable = frozenset({"c"})
    for second in range(300):
        cluster.offered["a"] = 300 if second % 60 < 30 else 20
        cluster.run(2)
        assert cluster.decision.above == {"c"}, second


def test_a_topic_that_keeps_to_its_limit_again_is_soon_known_to():
    quota = SharedQuota(Limit(100))
    quota.pushed(0, Limit(100))
    above = []
    for at_s in range(5, 60, 5):
        at_us = at_s * SECOND_US
        quota.add("a", TopicLook(at_us - 5 * SECOND_US, at_us, Amounts(5 * (500 if at_s <= 30 else 100), 0)))
        above += [at_s] if quota.decide(at_us).above else []
    assert above == [5, 10, 15, 20, 25, 30, 35]


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_fifth_of_many_topics_that_moves_in_one_look_moves_no_limit(count):
    """Of a topic that moves, what came before at its old broker is lost: its look has nothing, or part of it."""
    quota = SharedQuota(Limit(count * 9 // 10))
    topics = [f"t{n}" for n in range(count)]

    def look(second, moved=()):
        for n, topic in enumerate(topics):
            came = 0 if n in moved else 4 if n % 10 else 40
            quota.add(topic, TopicLook((second - 2) * SECOND_US, second * SECOND_US, Amounts(came, 0)))
        decision = quota.decide(second * SECOND_US)
        if decision is not None and decision.push is not None:
            quota.pushed(second * SECOND_US, decision.push)
        return quota.in_force.messages

    before = [look(second) for second in range(2, 42, 2)][-1]
    after = [look(42, moved=set(range(0, count, 5))), *(look(second) for second in range(44, 62, 2))]
    assert all(abs(limit - before) <= 0.08 * before for limit in after)


def test_both_units_are_split_by_themselves():
    quota = SharedQuota(Limit(100, 5000))
    quota.add("small", TopicLook(0, SECOND_US, Amounts(10, 9000)))
    quota.add("many", TopicLook(0, SECOND_US, Amounts(200, 1000)))
    decision = quota.decide(SECOND_US)

    assert decision.push == decision.level == Limit(90, 4000)
    assert decision.used_per_s == Amounts(210, 10_000)


def test_right_after_a_push_nothing_is_known():
    quota = SharedQuota(Limit(100))
    quota.add("a", TopicLook(0, SECOND_US, Amounts(500, 0)))
    quota.pushed(SECOND_US // 2, Limit(100))
    assert quota.decide(SECOND_US) is None
    quota.add("a", TopicLook(SECOND_US, 2 * SECOND_US, Amounts(95, 0)))
    assert quota.decide(2 * SECOND_US).held == {"a"}


def test_a_look_without_length_is_refused():
    with pytest.raises(InvalidArgument, match="at_us: got 5, allowed is an integer from 6"):
        SharedQuota(Limit(1)).add("a", TopicLook(5, 5, Amounts(0, 0)))


AVERAGED_US = 11 * SECOND_US


def averaged(*seconds, averaged_us=AVERAGED_US):
    """A quota of 200 B/s over two brokers with 100 in force, and what each of them let in second by second."""
    quota = SharedQuota(Limit(bytes=200), averaged_us)
    quota.pushed(0, Limit(bytes=100))
    for number, amounts in enumerate(seconds):
        for broker, amount in zip("ab", amounts, strict=True):
            quota.add(broker, TopicLook(number * SECOND_US, (number + 1) * SECOND_US, Amounts(0, amount)))
    return quota.decide(len(seconds) * SECOND_US)


def test_brokers_that_average_say_nothing_until_they_have():
    assert averaged(*[(500, 500)] * 10) is None


def test_a_broker_that_lets_in_all_for_seconds_and_then_nothing_is_held():
    decision = averaged(*[*[(300, 300)] * 4, *[(0, 0)] * 7] * 2)
    assert (decision.held, decision.level, decision.push) == ({"a", "b"}, Limit(bytes=100), None)


def test_brokers_may_average_over_minutes():
    a_minute = [*[(300, 300)] * 20, *[(0, 0)] * 40]
    assert averaged(*a_minute * 3, averaged_us=60 * SECOND_US).held == {"a", "b"}


def test_one_that_stays_below_its_average_is_not_held_and_leaves_the_rest_to_the_other():
    decision = averaged(*[*[(300, 110)] * 4, *[(0, 0)] * 7] * 2)
    assert (decision.held, decision.level, decision.push) == ({"a"}, Limit(bytes=160), Limit(bytes=160))


def test_one_that_is_above_its_average_is_found_however_small_the_limit():
    assert averaged(*[(150, 230)] * 22).above == {"b"}
