"""What is said of a throttled quota, and of its brokers, in a few words."""

import pytest

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import Dimension, TrafficClass
from headgate.quota.usage.view import Broker, Cell, Part
from headgate.report.usage.words import cell_lines, cell_verdict, part_verdict


def part(name, admitted, demand, *, throttled=True, silent=False, limit=500, arrived=None):
    outcome = CellLimit(limit, limit, 500, demand, 0, 0, 0, Reason.TARGET)
    broker = Broker(1, name, "up", 1, 5, 9 if silent else 0, 1, silent)
    return Part(broker, 5, limit, admitted, demand, throttled, 1, outcome, arrived)


def cell(*parts):
    return Cell("gold", 1, TrafficClass.PUBLISH, Dimension.MESSAGES, 1000, True, parts)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([part("a", 600, 700), part("b", 400, 500)], "demand is above the quota"),
        ([part("a", 900, None), part("b", 400, None)], "demand is above the quota"),
        ([part("a", 600, None), part("b", 0, None)], "how far demand is above the quota does not show"),
        (
            [part("a", 600, 700), part("b", 0, 0, throttled=False)],
            "demand was not above the quota just then: a burst, a backlog, or limits of brokers that lag",
        ),
        ([part("a", 600, 700, throttled=False)], ""),
        (
            [part("a", 900, 900, arrived=400), part("b", 400, 400, arrived=400)],
            "what came fits into the quota: a backlog is worked off",
        ),
        ([part("a", 900, 900, arrived=700), part("b", 400, 400, arrived=400)], "demand is above the quota"),
    ],
)
def test_demand_is_above_the_quota_where_that_is_to_be_seen(parts, verdict):
    assert verdict == cell_verdict(cell(*parts))


def test_a_silent_broker_is_told_as_it_was_and_blamed_for_nothing():
    parts = part("a", 600, 700), part("b", 500, 800, silent=True)
    first, said = cell_lines(cell(*parts))

    assert "gold publish messages: demand 1,500/s, quota 1,000; demand is above the quota" == first
    assert "  over their limit: a; silent, throttled at their last report: b" == said
    assert "SILENT, as it was at its last report; what the allocation grants it" == part_verdict(parts[1], 1000)


def test_a_broker_that_was_told_no_share_goes_by_the_whole_quota():
    told = [part_verdict(part("a", 600, None, limit=None), quota) for quota in (1000, None)]

    assert ["told no share yet: it goes by the whole quota", "what the allocation grants it"] == told
