"""Compiling is told, and only where something is compiled; what loading raises is not lost in its thread."""

import itertools

import pytest

from headgate.core.kernels.compiled import kernel
from headgate.engines.compiling import Loading, compiling_told


def compiled_anew():
    """A kernel that calls another; no machine code of it is kept."""
    inner = kernel(eval("lambda x: x + 1"))
    return kernel(eval("lambda x: inner(x) + 1", {"inner": inner}))


def test_compiling_is_told_as_it_begins_and_as_it_ends_though_kernels_call_each_other():
    lines, add_two = [], compiled_anew()
    with compiling_told(lines.append, clock=itertools.count(100, 30).__next__):
        assert add_two(3) == 5
        assert ["compiling the rules, once in an installation"] == [line.partition(" (")[0] for line in lines]

    assert ["compiled the rules in 60 s"] == lines[1:]


def test_nothing_is_told_where_all_is_compiled():
    lines, add_two = [], compiled_anew()
    add_two(3)
    with compiling_told(lines.append):
        add_two(4)

    assert [] == lines


def test_what_loading_raises_comes_out_where_it_is_waited_for():
    def load():
        raise ValueError("no rules")

    with pytest.raises(ValueError, match="no rules"):
        Loading(load, print).wait()
