"""What is wrong with rows that could not be used: counts of the table `dead_letters`, and an example of each."""

from typing import NamedTuple

from headgate.tables.sums import LOWEST, ROWS, Summed, Sums, replaced

SHOWN = 5
EXAMPLE_CHARACTERS = 200
ALL = 'SELECT reason, raw, source, \\"offset\\" FROM dead_letters LIMIT 100'
"""SQL for the rest, as a shell takes it between double quotes."""
_GOT = "(?s)got .*?, allowed"
PROBLEMS = Sums(
    "dead_letters",
    ("problem",),
    lowest=("raw", "source"),
    made=(replaced("problem", "reason", _GOT, "allowed"),),
)


class Problem(NamedTuple):
    """A reason, without what was got, and how many dead letters have it. example: the start of one of these rows, or of
    a file the name.
    """

    rows: int
    reason: str
    example: str


def problems(tables: Summed) -> list[Problem]:
    """Most frequent first."""
    found = [
        Problem(row[ROWS], row["problem"], (row[f"{LOWEST}raw"] or row[f"{LOWEST}source"] or "")[:EXAMPLE_CHARACTERS])
        for row in tables.totals(PROBLEMS).to_pylist()
    ]
    return sorted(found, key=lambda problem: (-problem.rows, problem.reason))
