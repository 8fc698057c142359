"""The dashboard and the alert rules of conf/: series that exist, panels in order. test_prometheus.py asks a server."""

import json
import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from unit.metrics.test_page import every_series

CONF = Path(__file__).parents[3] / "conf"
DASHBOARD = json.loads((CONF / "grafana-dashboard.json").read_text())
NAME = re.compile(r"\b(?:headgate|pulsar)_\w+")


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "alerts.yml"])
def test_every_series_that_is_named_is_one_of_the_endpoint(file: str) -> None:
    named = set(NAME.findall((CONF / file).read_text()))
    assert named
    assert set() == named - {one.name for one in every_series()}


def test_panels_have_places_and_ids_of_their_own() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    squares = [
        square
        for place in places
        for square in product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
    ]
    assert len(set(squares)) == len(squares)
    assert max(x for x, _ in squares) < 24
    ids = sorted(panel["id"] for panel in DASHBOARD["panels"])
    assert all(one < next_ for one, next_ in pairwise(ids))


def test_every_panel_says_what_it_shows() -> None:
    panels = (panel for panel in DASHBOARD["panels"] if panel["type"] != "row")
    assert [] == [panel["title"] for panel in panels if not panel["description"]]
