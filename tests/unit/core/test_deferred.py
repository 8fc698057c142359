"""Deferred work in one ordered time (rate-limiters 3.1)."""

import pytest

from headgate.core.deferred import enter, run_all_due
from headgate.core.numbers import MAX
from headgate.errors import InvalidArgument


class Recorder:
    """Does its work at the listed instants and notes when."""

    def __init__(self, name, log, *instants):
        self.name, self.log, self.instants = name, log, list(instants)

    def due_ns(self):
        return self.instants[0] if self.instants else None

    def run_due(self, at_ns):
        self.log.append((at_ns, self.name))
        self.instants.pop(0)


@pytest.mark.parametrize(("now_ns", "high_ns", "at_ns"), [(5, 3, 5), (3, 5, 5), (-7, -9, -7)])
def test_an_operation_acts_at_the_highest_time_seen(now_ns, high_ns, at_ns):
    assert enter(now_ns, high_ns) == at_ns


def test_only_an_instant_that_is_no_integer_of_64_bits_is_refused():
    with pytest.raises(InvalidArgument):
        enter(MAX + 1, 0)


def test_work_runs_by_due_time_then_by_registration_until_none_is_due():
    log = []
    owners = [Recorder("a", log, 5, 9), Recorder("b", log), Recorder("c", log, 2, 5, 6), Recorder("d", log, MAX)]
    run_all_due(owners, 8)

    assert log == [(2, "c"), (5, "a"), (5, "c"), (6, "c")]
    run_all_due(owners, MAX)
    assert log[4:] == [(9, "a")]


def test_without_owners_nothing_runs():
    run_all_due([], MAX)
