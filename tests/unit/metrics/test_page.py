"""docs/operations.md has every series with its type and labels, and no other."""

import re
from pathlib import Path

from headgate.metrics.counting import GAUGES
from headgate.metrics.quota_series import LIMIT, OF_LOOP
from headgate.metrics.series import Series
from headgate.metrics.tables import TABLES, TOPICS
from headgate.metrics.upkeep_series import FILES, ROWS

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
LINE = re.compile(r"^\| ((?:headgate|pulsar)_[\w, ]+) \| (\w+) \| ([\w, ]*)\|[^|]+\|$", re.MULTILINE)


def every_series() -> set[Series]:
    of_tables = (count.series for table in (*TABLES.values(), TOPICS) for count in table.counts)
    return {*of_tables, *GAUGES, *OF_LOOP, LIMIT, ROWS, FILES}


def test_the_page_has_every_series_with_its_type_and_labels_and_no_other() -> None:
    lines = LINE.findall(PAGE.read_text())
    documented = [(name, type_, labels.strip()) for names, type_, labels in lines for name in names.split(", ")]
    expected = sorted((one.name, one.type, ", ".join(one.labels)) for one in every_series())
    assert expected == sorted(documented)
