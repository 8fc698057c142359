"""Windows, Θ, and ids seen, on their own (throttle-protocol 9, 10.1)."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.client.windows import Throttle, Window, join
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.request_ids import RequestIds

TOPIC, GROUP, PENDING = (
    Reason.TopicProduceQuotaExceeded,
    Reason.ResourceGroupProduceQuotaExceeded,
    Reason.ConnectionPendingMessagesBreach,
)
windows = st.builds(Window, st.integers(0, 5), st.sampled_from(Reason))


@given(windows, windows, windows)
def test_i13_the_join_is_commutative_associative_and_idempotent(one, two, three):
    assert join(one, two) == join(two, one)
    assert join(join(one, two), three) == join(one, join(two, three)) == join(one, two, three)
    assert join(one, one) == one


def test_the_join_takes_the_later_end_and_of_equal_ends_the_lower_code():
    assert Window(7, GROUP) == join(Window(6, TOPIC), Window(7, GROUP))
    assert Window(7, TOPIC) == join(Window(7, GROUP), Window(7, TOPIC))


def test_theta_is_the_union_of_window_and_notice_by_the_reason_in_force():
    throttle = Throttle()
    steps = [
        (10, lambda: throttle.hold(Window(30, TOPIC)), 0, {}),
        (20, lambda: throttle.notify(PENDING, 5), 10, {TOPIC: 10}),
        (50, lambda: throttle.progress(5), 40, {TOPIC: 20, PENDING: 20}),
        (60, lambda: throttle.progress(6), 50, {TOPIC: 20, PENDING: 30}),
        (90, lambda: throttle.hold(Window(100, GROUP)), 50, {TOPIC: 20, PENDING: 30}),
        (95, throttle.end, 55, {TOPIC: 20, PENDING: 30, GROUP: 5}),
        (200, throttle.end, 55, {TOPIC: 20, PENDING: 30, GROUP: 5}),
    ]
    total_ms = Counter()
    for now_ms, change, theta_ms, by_reason_ms in steps:
        throttle.settle(now_ms)
        total_ms.update(throttle.taken_ms())
        assert (theta_ms, by_reason_ms) == (throttle.theta_ms, total_ms)
        change()


@given(st.lists(st.integers(1, 40)))
def test_an_id_is_new_exactly_once_in_any_order(ids):
    seen, known = RequestIds(), set()
    for request_id in ids:
        assert seen.add(request_id) is (request_id not in known)
        known.add(request_id)


def test_ids_without_gaps_take_one_span_however_they_arrive():
    ids = list(range(1, 1001))
    random.Random(1).shuffle(ids)
    seen = RequestIds()
    for request_id in ids:
        seen.add(request_id)

    assert seen.spans == 1


def test_a_gap_that_stays_takes_one_span_more_however_many_ids_follow():
    seen = RequestIds()
    for request_id in (*range(1, 5), *range(6, 1000)):
        seen.add(request_id)

    assert seen.spans == 2
    assert seen.add(5)
    assert seen.spans == 1
