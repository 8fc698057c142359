"""Pictures of characters keep their width and the order of what they show."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.report.bars import bar, sparkline

VALUES = st.lists(st.none() | st.integers(0, 2**53), max_size=50)
HEIGHTS = " ▁▂▃▄▅▆▇█"


def test_a_bar_fills_by_eighths():
    assert ["    ", "▏   ", "█▌  ", "███▉", "████", "████"] == [
        bar(part, 4) for part in (0, 0.001, 0.375, 0.999, 1, 7.5)
    ]


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 30))
def test_a_bar_is_as_wide_as_asked_and_never_shorter_for_more(part, other, width):
    less, more = sorted([part, other])

    assert width == len(bar(part, width))
    assert bar(less, width).count("█") <= bar(more, width).count("█")


def test_a_sparkline_has_gaps_and_heights_from_0_to_the_largest():
    assert "▁ ▄█" == sparkline([0, None, 5, 10], 10)
    assert "▁▁" == sparkline([0, 0], 10)
    assert "" == sparkline([], 10)


@given(VALUES)
def test_a_sparkline_has_a_character_a_value_in_their_order(values):
    line = sparkline(values, 50)
    pairs = list(zip(values, map(HEIGHTS.index, line), strict=True))
    known = sorted((value, height) for value, height in pairs if value is not None)

    assert [character == " " for character in line] == [value is None for value in values]
    assert [height for _, height in known] == sorted(height for _, height in known)


@given(st.lists(st.integers(0, 9), min_size=11, max_size=60))
def test_a_long_sparkline_keeps_its_width_and_its_peak(values):
    line = sparkline(values, 10)

    assert (10, "█" if any(values) else "▁") == (len(line), max(line, key=HEIGHTS.index))
