"""What the operator had is known whatever was set since, and wherever a process was killed."""

import pytest

from headgate.core.clusters.ledger import Entry, Line, open_entries, operators

A = "namespaces/acme/a/publishRate"


def push(before, after, path=A, found=None):
    return Line(path, "push", before, after, found)


RELEASED = Line(A, "released", None, None)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], {}),
        ([push(None, "7")], {A: Entry(None, frozenset({"7"}), "7")}),
        ([push("9", "7"), push("9", "5")], {A: Entry("9", frozenset({"7", "5"}), "5")}),
        ([push("9", "7"), push("8", "5")], {A: Entry("8", frozenset({"7", "5"}), "5")}),  # the operator set 8
        ([push("9", "7"), RELEASED], {}),
        ([push("9", "7"), RELEASED, push(None, "5")], {A: Entry(None, frozenset({"5"}), "5")}),
        ([push("9", "7"), push("9", "5", found="7")], {A: Entry("9", frozenset({"7", "5"}), "5")}),
        (  # what was ours before the last one that was found there can be the operator's again
            [push("9", "7"), push("9", "5", found="7"), push("9", "6", found="5")],
            {A: Entry("9", frozenset({"5", "6"}), "6")},
        ),
        (  # pushes that did not come through
            [push("9", "7"), push("9", "5", found="7"), push("9", "6", found="7")],
            {A: Entry("9", frozenset({"7", "6"}), "6")},
        ),
        ([RELEASED, Line(A, "alive", None, None)], {}),
        ([push(None, "7"), push("1", "2", "b"), RELEASED], {"b": Entry("1", frozenset({"2"}), "2")}),
    ],
)
def test_what_is_open_is_what_was_set_since_it_was_released(lines, found):
    assert open_entries(lines) == found


@pytest.mark.parametrize(
    ("current", "entry", "own"),
    [
        (None, None, None),
        ("9", None, "9"),
        ("7", Entry("9", frozenset({"7"}), "7"), "9"),
        ("9", Entry("9", frozenset({"7"}), "7"), "9"),  # killed between ledger and push
        ("6", Entry("9", frozenset({"7"}), "7"), "6"),  # the operator changed it
        (None, Entry("9", frozenset({"7"}), "7"), None),  # or removed it
        ("7", Entry(None, frozenset({"7", "5"}), "5"), None),  # killed before the second push
    ],
)
def test_what_is_in_force_is_the_operators_unless_it_was_set_here(current, entry, own):
    assert operators(current, entry) == own
