"""What is said of a throttled quota, and of its brokers, in a few words."""

import pytest

from headgate.core.quota.evaluation.step_parameters import Outcome, Reason
from headgate.core.quota.groups import Dimension, TrafficClass
from headgate.quota.usage.view import Broker, Cell, Part
from headgate.report.usage.words import cell_lines, cell_verdict, part_verdict


def part(name, admitted, demand, *, throttled=True, silent=False, limit=500):
    outcome = Outcome(limit, limit, 500, demand, 0, 0, 0, Reason.TARGET)
    broker = Broker(1, name, "up", 1, 5, 9 if silent else 0, 1, silent)
    return Part(broker, 5, limit, admitted, demand, throttled, 1, outcome)


def cell(*parts):
    return Cell("gold", 1, TrafficClass.PUBLISH, Dimension.MESSAGES, 1000, True, parts)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([part("a", 600, 700), part("b", 400, 500)], "more is wanted than the quota"),
        ([part("a", 900, None), part("b", 400, None)], "more is wanted than the quota"),
        ([part("a", 600, None), part("b", 0, None)], "how much more is wanted does not show"),
        (
            [part("a", 600, 700), part("b", 0, 0, throttled=False)],
            "no more is wanted than the quota just then: a burst, a backlog, or limits of brokers that lag",
        ),
        ([part("a", 600, 700, throttled=False)], ""),
    ],
)
def test_more_than_the_quota_is_wanted_where_that_is_to_be_seen(parts, verdict):
    assert verdict == cell_verdict(cell(*parts))


def test_a_silent_broker_is_told_as_it_was_and_blamed_for_nothing():
    parts = part("a", 600, 700), part("b", 500, 800, silent=True)
    wanted, said = cell_lines(cell(*parts))

    assert "gold publish messages: 1,500/s wanted, quota 1,000; more is wanted than the quota" == wanted
    assert "  over their limit: a; silent, throttled at their last report: b" == said
    assert "SILENT, as it was at its last report; what the allocation grants it" == part_verdict(parts[1])
