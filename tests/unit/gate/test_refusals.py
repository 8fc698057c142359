"""When the gate says that it refused connections."""

import pytest

from headgate.gate.refusals import Refusals
from unit.gate.driven import HandClock

END = -1


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0], [(0, 1)]),
        ([0, 1, 2, 10_000], [(0, 1), (10_000, 2)]),
        ([0, 1, 20_000], [(0, 1), (10_000, 1)]),
        ([0, 10_000, 10_001, 20_000], [(0, 1), (10_001, 1)]),
        ([0, 1, 10_001, 10_002, 20_000], [(0, 1), (10_000, 1), (20_000, 2)]),
        ([0, 1, 2, END, 30_000], [(0, 1), (2, 2)]),
        ([0, END, 30_000], [(0, 1)]),
        ([END, 30_000], []),
    ],
    ids=str,
)
def test_the_first_is_said_at_once_and_all_that_follow_every_ten_seconds_or_at_the_end(
    steps: list[int], expected: list[tuple[int, int]]
) -> None:
    """Steps are times of refusals, of which a multiple of ten seconds after the first only lets time pass."""
    clock, said = HandClock(), []
    refusals = Refusals(clock, lambda text: said.append((clock.now_ms(), text)))
    for step in steps:
        if step == END:
            refusals.end()
            continue
        clock.pass_to(step)
        if step == 0 or step % 10_000:
            refusals.add("10.0.0.7", "--max-connections 1")

    line = "refused %s since the last such line, the last from 10.0.0.7: --max-connections 1 is reached"
    assert said == [(at_ms, line % count) for at_ms, count in expected]
