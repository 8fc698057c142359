"""What the soak takes from what Java tells of its memory, whichever collector and compiler, and what of it counts."""

from pathlib import Path

import pytest

from soak import WINDOW_S, Held, Part, Sample, parsed_mb

SERIAL = """27422:
 def new generation   total 314368K, used 1024K [0x00000000c0000000, 0x00000000d5550000)
  eden space 279616K,  87% used [0x00000000c0000000, 0x00000000cf029b58)
 tenured generation   total 699392K, used 112640K [0x00000000d5550000, 0x0000000100000000)
   the space 699072K,  16% used [0x00000000d5550000, 0x00000000dc2c1810)
 Metaspace       used 139994K, committed 141888K, reserved 1179648K
CodeCache: size=49152Kb used=29696Kb max_used=29696Kb free=19774Kb
"""
G1 = """27575:
 garbage-first heap   total 1048576K, used 67584K [0x00000000c0000000, 0x0000000100000000)
  region size 1024K, 5 young (5120K), 0 survivors (0K)
 Metaspace       used 139994K, committed 141888K, reserved 1179648K
CodeHeap 'non-profiled nmethods': size=120036Kb used=4096Kb max_used=4096Kb free=116418Kb
 bounds [0x00007f05e8000000, 0x00007f05e8270000, 0x00007f05ef539000]
CodeHeap 'profiled nmethods': size=120032Kb used=13312Kb max_used=13315Kb free=106716Kb
"""


@pytest.mark.parametrize(("told", "found"), [(SERIAL, (990, 111, 29)), (G1, (1024, 66, 17))])
def test_heap_what_is_used_of_it_and_compiled_code_are_told_apart(told, found):
    assert parsed_mb(told) == found


@pytest.mark.parametrize("grows_mb_per_h", [0, 30])
def test_what_is_held_for_a_moment_is_no_growth(grows_mb_per_h):
    """Each third sample alone has neither a batch under way nor a child just forked."""
    part = Part("job", ["true"], Path())
    for n in range(600):
        floor_mb = 100 + (n * 10 // WINDOW_S * WINDOW_S) / 3600 * grows_mb_per_h
        batch_mb, child_mb = (40 if n % 3 == 1 else 0), (n if n % 3 == 2 else 0)
        part.samples.append(Sample(n * 10, 1, Held(floor_mb + batch_mb, n, 300, 50 + child_mb)))
    slope = part.slope_mb_per_h(900)
    assert slope is not None
    assert slope.mb_per_h == pytest.approx(grows_mb_per_h, abs=0.2)
    assert slope.is_above(1) is bool(grows_mb_per_h)


def test_no_slope_before_it_was_settled_for_long_enough():
    part = Part("job", ["true"], Path())
    part.samples = [Sample(n * 10, 1, Held(1, 1, 1, 1)) for n in range(170)]
    assert part.slope_mb_per_h(900) is None
