"""Positions in order: of a set, of the tracked cursors, across ledgers."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.cache.topics.cursors import Cursors
from headgate.core.cache.topics.ledger_ends import LedgerEnds
from headgate.core.cache.topics.positions import OrderedPositions

positions = st.tuples(st.integers(0, 2), st.integers(0, 200))
bounds = st.none() | positions


@given(
    changes=st.lists(st.tuples(st.booleans(), positions), max_size=60),
    ranges=st.lists(st.tuples(bounds, bounds), max_size=10),
)
def test_ordered_positions_are_a_sorted_set(changes, ranges):
    ordered, plain = OrderedPositions(), set()
    for is_added, position in changes:
        (ordered.add if is_added else ordered.discard)(position)
        (plain.add if is_added else plain.discard)(position)

        assert min(plain, default=None) == ordered.lowest()
        assert bool(plain) == bool(ordered)
        assert all(position in ordered for position in plain)
    for first, end in ranges:
        within = [one for one in plain if (first is None or one >= first) and (end is None or one < end)]

        assert max(within, default=None) == ordered.highest(first, end)


moves = st.tuples(st.sampled_from(["move", "ask", "close", "mark"]), st.integers(0, 5), st.none() | positions)


@given(moves=st.lists(moves, max_size=60), by_mark=st.booleans())
def test_a_rank_is_the_number_of_tracked_cursors_at_the_position_or_before(moves, by_mark):
    cursors, tracked = Cursors(by_mark=by_mark), {}

    def expected(name):
        return sum(one <= tracked[name] for one in tracked.values()) if name in tracked else 0

    for what, number, position in moves:
        name = f"c{number}"
        cursor = cursors.by_name.get(name)
        if what == "close" and cursor is not None:
            cursors.close(cursor)
        elif what == "mark" and cursor is not None and position is not None:
            cursors.acknowledge(cursor, position)
        elif what == "move" and cursor is None:
            cursors.open(name, position, 0, 0)
        elif what == "move":
            cursors.move(cursor, position)
        tracked = {
            one.name: one.mark if by_mark else one.read for one in cursors.by_name.values() if one.read is not None
        }
        if what == "ask":
            assert {one: expected(one) for one in cursors.by_name} == {
                one: cursors.rank(cursor) for one, cursor in cursors.by_name.items()
            }
            assert min(tracked.values(), default=None) == cursors.slowest()
            others = [one for other, one in tracked.items() if other != name]
            assert min(others, default=None) == cursors.slowest_other(cursors.by_name.get(name))


def test_a_cursor_without_a_position_or_a_registration_has_rank_0():
    cursors = Cursors(by_mark=False)
    untracked = cursors.open("u", None, 0, 0)
    cursors.open("c", (0, 0), 0, 0)

    assert (0, 0) == (cursors.rank(untracked), cursors.rank(None))


@given(seen=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=30), asked=positions)
def test_an_ordinal_counts_the_entries_of_the_ledgers_before(seen, asked):
    ends, highest = LedgerEnds(), {}
    for ledger, number in seen:
        ends.note(ledger, number)
        highest[ledger] = max(number, highest.get(ledger, -1))

        before = sum(number + 1 for ledger, number in highest.items() if ledger < asked[0])
        assert before + asked[1] == ends.ordinal(asked)
