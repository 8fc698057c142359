"""What a recommendation says of those for whom it does not keep its bound."""

import io

from rich.console import Console

from headgate.report.recommend_screen import RecommendScreen


def broken(*, names=(), failing=(), worse=()):
    console = Console(file=io.StringIO(), width=400)
    RecommendScreen(console, 1.0, 1000, 30_000).broken(names, failing, worse)
    return console.file.getvalue().split("\n")


def test_who_fares_worse_than_today_is_told_beside_who_is_held_back_all_the_same():
    assert broken() == [""]
    (_, held, *rest) = broken(names=["acme", "else"], failing=["else"])
    assert held.startswith("With everything in force the bound does not hold for acme, else: limits that stay")
    assert held.endswith(" Publishes of else fail.")
    assert rest == [""]
    (_, _, worse, _) = broken(names=["acme", "else"], worse=["acme"])
    assert worse.startswith("Worse than today for acme: more publishes fail or wait longer than 1 s.")
