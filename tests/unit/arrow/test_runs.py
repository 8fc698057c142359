"""Equal rows as one: what comes of them is what was meant, and never much of it at once."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.arrow import runs
from headgate.arrow.runs import in_full, times_of, together, with_times


@given(times=st.lists(st.integers(1, 9), min_size=1, max_size=12), once=st.integers(0, 3), at_once=st.integers(1, 20))
def test_each_row_comes_as_often_as_it_stands_for_and_so_many_at_once(times, once, at_once):
    rows = with_times(pa.table({"x": range(len(times))}), np.array(times))
    both = together([rows, pa.table({"x": [-1] * once})])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "AT_ONCE", at_once)
        pieces = list(in_full(both))
    found = [value for piece in pieces for value in piece["x"].to_pylist()]
    assert [*np.repeat(range(len(times)), times), *[-1] * once] == found
    assert len(found) == times_of(both).sum()
    if max(times) > 1:
        assert at_once >= max(map(len, pieces))
    assert {"x"} == {name for piece in pieces for name in piece.column_names}


def test_rows_that_are_there_once_stay_as_they_are():
    rows = pa.table({"x": range(5)})
    assert rows is with_times(rows, np.ones(5, np.int64))
    (found,) = in_full(rows)
    assert rows is found
