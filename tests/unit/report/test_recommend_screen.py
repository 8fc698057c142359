"""What a recommendation says of those for whom it does not keep its bound."""

import io

import pytest
from rich.console import Console

from headgate.report.recommend_screen import CourseShown, RecommendScreen


def broken(*, names=(), failing=(), worse=()):
    console = Console(file=io.StringIO(), width=400)
    RecommendScreen(console, 1.0, 1000, 30_000).broken(names, failing, worse, (900, None))
    return console.file.getvalue().split("\n")


def test_who_fares_worse_than_today_is_told_beside_who_is_held_back_all_the_same():
    assert broken() == [""]
    (_, held, *rest) = broken(names=["acme", "else"], failing=["else"])
    assert held.startswith("With everything in force the bound does not hold for acme, else: limits that stay")
    assert held.endswith(" Publishes of else fail.")
    assert rest == [""]
    (_, _, worse, _) = broken(names=["acme", "else"], worse=["acme"])
    assert worse.startswith("Worse than today for acme: more publishes fail or wait longer than 1 s.")
    assert worse.endswith("The recommended quotas together, of all brokers: 900 messages/s, off bytes/s.")


@pytest.mark.parametrize(
    ("others_hold", "words"),
    [
        (False, ": no"),
        (True, ", but only once the limits that stay as they are have been raised: no"),
    ],
)
def test_limits_come_down_in_one_step_once_those_that_stay_hold_nobody(others_hold, words):
    console = Console(file=io.StringIO(), width=400)
    courses = [CourseShown("acme", [(9, None), (5, None)], is_safe=True)]
    RecommendScreen(console, 1.0, 1000, 30_000).courses(courses, others_hold=others_hold)

    assert (
        f"All 1 topics and tenants with lower limits can get them in one step{words} publish waits"
        in console.file.getvalue()
    )
