"""The router step by step: who is told when a producer of a topic trips a limiter (throttle-protocol 7.1)."""

import pytest

from headgate.core.protocol.broker.inputs import (
    Close,
    CloseProducer,
    ConditionSet,
    Connect,
    Mark,
    Open,
    Publish,
    Quote,
    Receipt,
    Trip,
    Unmark,
)
from headgate.core.protocol.broker.router import Router
from headgate.errors import StateError
from unit.core.protocol.routes import BUCKETS, fed, mark, router, unmark

A, B = "broker/a", "broker/b"


def play(made, steps):
    """Each step is (connection, input, what machines are fed); state is stored and loaded before each."""
    for connection, given, expected in steps:
        loaded = Router.from_state(made.state(), needs_buckets=made.needs_buckets)
        assert made.state() == loaded.state()
        made = loaded
        assert expected == fed(made, connection, given), given
    return made


def test_a_mark_goes_to_every_open_producer_of_the_topic_and_ends_for_all():
    play(
        router((A, 1), (A, 2), (B, 1)),
        [
            (A, mark(5, 1, 1), [(A, "mark", 5, 1, (0, 1)), (A, "copy", 5, 2, (0, 1)), (B, "copy", 5, 1, (0, 1))]),
            (
                A,
                unmark(9, 1, 1),
                [(A, "unmark", 9, 1, (0, 1)), (A, "unmark", 9, 2, (0, 1)), (B, "unmark", 9, 1, (0, 1))],
            ),
        ],
    )


def test_a_copy_has_the_balances_of_its_original():
    made = router((A, 1), (B, 1))
    (_, (_, copy)) = made.feed(A, Mark(5, 1, [Trip(1, 1, BUCKETS), Trip(0, 1, [[-7, 10], [-3, 10]])]))

    assert Mark(5, 1, [Trip(1, 1, BUCKETS), Trip(0, 1, [[-7, 10], [-3, 10]])], trigger=False) == copy


def test_producers_of_other_topics_hear_nothing():
    made = router((A, 1))
    made.feed(A, Open(0, 2, "another"))

    assert [(A, "mark", 5, 1, (0, 1))] == fed(made, A, mark(5, 1, 1))


def test_marks_of_its_own_and_copies_have_one_numbering():
    play(
        router((A, 1), (B, 1)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (B, "copy", 1, 1, (0, 1))]),
            (B, mark(2, 1, 1), [(B, "mark", 2, 1, (0, 2)), (A, "copy", 2, 1, (0, 2))]),
            (A, unmark(3, 1, 1), [(A, "unmark", 3, 1, (0, 1)), (A, "unmark", 3, 1, (0, 2))]),
            (B, unmark(3, 1, 1), [(B, "unmark", 3, 1, (0, 1)), (B, "unmark", 3, 1, (0, 2))]),
            (B, mark(4, 1, 2), [(B, "mark", 4, 1, (0, 3)), (A, "copy", 4, 1, (0, 3))]),
        ],
    )


def test_reasons_are_numbered_and_end_apart():
    both = Mark(1, 1, [Trip(0, 1, BUCKETS), Trip(1, 1, BUCKETS)])
    play(
        router((A, 1), (B, 1)),
        [
            (A, both, [(A, "mark", 1, 1, (0, 1), (1, 1)), (B, "copy", 1, 1, (0, 1), (1, 1))]),
            (A, unmark(2, 1, 1, reason=1), [(A, "unmark", 2, 1, (1, 1)), (B, "unmark", 2, 1, (1, 1))]),
            (A, unmark(3, 1, 1), [(A, "unmark", 3, 1, (0, 1)), (B, "unmark", 3, 1, (0, 1))]),
        ],
    )


def test_the_first_release_ends_copies_where_a_limiter_lets_go_a_few_at_a_time():
    """release_quantum 1: the pause was 0 as it let 1 go, while 2 still waits for its turn."""
    play(
        router((A, 1), (A, 2), (B, 3)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (A, "copy", 1, 2, (0, 1)), (B, "copy", 1, 3, (0, 1))]),
            (A, mark(1, 2, 1), [(A, "mark", 1, 2, (0, 2)), (A, "copy", 1, 1, (0, 2)), (B, "copy", 1, 3, (0, 2))]),
            (
                A,
                unmark(9, 1, 1),
                [
                    *((A, "unmark", 9, 1, (0, n)) for n in (1, 2)),
                    *((B, "unmark", 9, 3, (0, n)) for n in (1, 2)),
                ],
            ),
            (A, unmark(25, 2, 1), [(A, "unmark", 25, 2, (0, 1)), (A, "unmark", 25, 2, (0, 2))]),
        ],
    )


def test_a_release_ends_no_copy_of_its_own_millisecond_while_somebody_waits():
    """Marks stand before releases there, also where the limiter tripped after it had let go."""
    play(
        router((A, 1), (A, 2), (B, 3)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (A, "copy", 1, 2, (0, 1)), (B, "copy", 1, 3, (0, 1))]),
            (A, mark(9, 2, 1), [(A, "mark", 9, 2, (0, 2)), (A, "copy", 9, 1, (0, 2)), (B, "copy", 9, 3, (0, 2))]),
            (A, unmark(9, 1, 1), []),
            (
                A,
                unmark(12, 2, 1),
                [(at, "unmark", 12, id_, (0, n)) for at, id_ in ((A, 1), (A, 2), (B, 3)) for n in (1, 2)],
            ),
        ],
    )


def test_a_mark_that_is_let_go_in_its_own_millisecond_ends_for_all():
    play(
        router((A, 1), (B, 1)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (B, "copy", 1, 1, (0, 1))]),
            (A, unmark(1, 1, 1), [(A, "unmark", 1, 1, (0, 1)), (B, "unmark", 1, 1, (0, 1))]),
        ],
    )


def test_marks_of_many_publishes_are_copied_each_and_let_go_together():
    play(
        router((A, 1), (B, 1)),
        [
            *((A, mark(n, 1, n), [(A, "mark", n, 1, (0, n)), (B, "copy", n, 1, (0, n))]) for n in (1, 2)),
            (A, unmark(9, 1, 1), [(B, "unmark", 9, 1, (0, 1)), (B, "unmark", 9, 1, (0, 2))]),
            (A, unmark(9, 1, 2), [(A, "unmark", 9, 1, (0, 1)), (A, "unmark", 9, 1, (0, 2))]),
        ],
    )


def test_copies_of_rows_and_a_release_that_comes_first_do_nothing():
    play(
        router((A, 1), (B, 1)),
        [
            (A, unmark(1, 1, 1), []),
            (A, mark(1, 1, 1), []),
            (A, mark(2, 1, 2), [(A, "mark", 2, 1, (0, 1)), (B, "copy", 2, 1, (0, 1))]),
            (A, mark(3, 1, 2), []),
            (A, unmark(4, 1, 2), [(A, "unmark", 4, 1, (0, 1)), (B, "unmark", 4, 1, (0, 1))]),
            (A, unmark(5, 1, 2), []),
            (A, unmark(5, 1, 1), []),
        ],
    )


def test_a_release_that_comes_again_while_a_newer_mark_holds_ends_no_copy():
    play(
        router((A, 1), (B, 1)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (B, "copy", 1, 1, (0, 1))]),
            (A, unmark(2, 1, 1), [(A, "unmark", 2, 1, (0, 1)), (B, "unmark", 2, 1, (0, 1))]),
            (A, mark(3, 1, 2), [(A, "mark", 3, 1, (0, 2)), (B, "copy", 3, 1, (0, 2))]),
            (A, unmark(4, 1, 1), []),
            (A, unmark(5, 1, 2), [(A, "unmark", 5, 1, (0, 2)), (B, "unmark", 5, 1, (0, 2))]),
        ],
    )


def test_a_producer_that_opens_while_the_limiter_holds_gets_no_copy_of_what_came_before():
    play(
        router((A, 1)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1))]),
            (A, Open(2, 2, "t"), [(A, "open", 2)]),
            (A, mark(3, 1, 2), [(A, "mark", 3, 1, (0, 2)), (A, "copy", 3, 2, (0, 1))]),
            (A, unmark(4, 1, 2), [*((A, "unmark", 4, 1, (0, n)) for n in (1, 2)), (A, "unmark", 4, 2, (0, 1))]),
        ],
    )


def test_the_close_of_the_last_that_waits_ends_copies_and_of_others_does_not():
    play(
        router((A, 1), (A, 2), (B, 3)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (A, "copy", 1, 2, (0, 1)), (B, "copy", 1, 3, (0, 1))]),
            (A, mark(2, 2, 1), [(A, "mark", 2, 2, (0, 2)), (A, "copy", 2, 1, (0, 2)), (B, "copy", 2, 3, (0, 2))]),
            (A, CloseProducer(3, 1), [(A, "closeproducer", 3)]),
            (A, CloseProducer(4, 2), [(A, "closeproducer", 4), *((B, "unmark", 4, 3, (0, n)) for n in (1, 2))]),
            (A, unmark(5, 2, 1), [(A, "unmark", 5, 2, (0, 1))]),
        ],
    )


def test_a_connection_that_closes_takes_its_producers_along():
    made = play(
        router((A, 1), (A, 2), (B, 3)),
        [
            (A, mark(1, 1, 1), [(A, "mark", 1, 1, (0, 1)), (A, "copy", 1, 2, (0, 1)), (B, "copy", 1, 3, (0, 1))]),
            (A, Close(2), [(A, "close", 2), (B, "unmark", 2, 3, (0, 1))]),
            (B, mark(3, 3, 1), [(B, "mark", 3, 3, (0, 2))]),
            (B, CloseProducer(4, 3), [(B, "closeproducer", 4)]),
            (B, Close(5), [(B, "close", 5)]),
        ],
    )
    assert Router().state() == made.state()


def test_a_copy_of_somebody_else_goes_no_further():
    made = router((A, 1), (B, 1))
    assert [(A, "copy", 1, 1, (0, 1))] == fed(made, A, mark(1, 1, 1, trigger=False))
    assert [(A, "unmark", 2, 1, (0, 1))] == fed(made, A, unmark(2, 1, 1))


@pytest.mark.parametrize(
    ("connection", "given"),
    [
        ("nowhere", mark(1, 1, 1)),
        ("nowhere", Open(1, 1, "t")),
        (A, mark(None, 1, 1)),
        (A, mark(1, 7, 1)),
        (A, mark(1, 1, 0)),
        (A, mark(1, 1, 1, reason=4)),
        (A, Mark(1, 1, [])),
        (A, Mark(1, 1, [Trip(0, 1, [[-5, 0]])])),
        (A, Unmark(1, 1, 2, 1)),
        (A, Open(1, 1, "another")),
        (A, Open(1, -1, "t")),
        (A, Connect(1, supports=True)),
        (A, Publish(1, 1)),
        (A, Receipt(1, 1)),
        (A, Quote(1, 1, 0, BUCKETS)),
        (A, ConditionSet(1, 3, 1)),
    ],
    ids=str,
)
def test_what_machines_refuse_and_what_is_no_mark_goes_on_as_it_came(connection, given):
    made = router((A, 1), (B, 1))
    before = made.state()

    ((where, same),) = made.feed(connection, given)
    assert connection == where
    assert same is given
    assert before == made.state()


def test_without_balances_marks_are_copied_where_only_second_boundaries_count():
    given = Mark(1, 1, [Trip(0, 1)])

    assert [(A, "mark", 1, 1, (0, 1))] == fed(router((A, 1), (B, 1)), A, given)
    assert [(A, "mark", 1, 1, (0, 1)), (B, "copy", 1, 1, (0, 1))] == fed(
        router((A, 1), (B, 1), needs_buckets=False), A, given
    )


def test_state_of_another_version_is_refused():
    with pytest.raises(StateError, match="Router state: missing"):
        Router.from_state({"connections": []}, needs_buckets=True)
