"""What the soak takes from what Java tells of its memory, whichever collector and compiler, and what of it counts."""

import shutil
import subprocess

import pytest

from soak_memory import Held, Sample, Slope, held_by, parsed_mb, runs_java, slopes_mb_per_h

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


def test_a_process_that_has_ended_holds_nothing():
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert (0, 0, 0, 0) == held_by(ended.pid)
    assert runs_java(ended.pid) is False


def test_a_child_of_java_just_forked_is_not_counted_as_a_process_of_its_own(tmp_path):
    """It still runs Java's program, under the name of the thread that forked it."""
    shutil.copy(shutil.which("bash"), tmp_path / "java")
    words = [tmp_path / "java", "-c", "echo thread >/proc/$$/comm; echo; read -r"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forked:
        forked.stdout.readline()
        assert runs_java(forked.pid)
        assert (0, 0, 0, 0) == held_by(forked.pid)
        forked.communicate(b"\n")


@pytest.mark.parametrize(("slope", "is_above"), [(Slope(4.1, 1), True), (Slope(3.9, 1), False), (Slope(0.9, 0), False)])
def test_a_slope_is_above_another_one_by_three_errors(slope, is_above):
    assert is_above == slope.is_above(1)


def sampled(held_mb, samples=600):
    """A sample every 10 s. held_mb: by the number of the sample, floor and what is on top."""
    found = []
    for n in range(samples):
        floor_mb, on_top_mb = held_mb(n)
        found.append(Sample(n * 10, 1, Held(floor_mb, n, 300, on_top_mb)))
    return found


def growing(n, mb_per_h):
    return n * 10 / 3600 * mb_per_h


GROWTH = {
    "none": (lambda n: (100, 40 * (n % 3 > 0)), False, False),
    "a child just forked": (lambda n: (100, 40 * (n % 3 > 0) + n * (n % 12 == 1)), False, False),
    "what is kept": (lambda n: (100 + growing(n, 30), 40 * (n % 3 > 0)), True, True),
    "a process missed now and then": (lambda n: ((100 + growing(n, 30)) * (n % 40 > 0), 0), True, True),
    "what a batch needs": (lambda n: (100, (40 + growing(n, 30)) * (n % 3 > 0)), False, True),
}


@pytest.mark.parametrize(("held_mb", "between", "half"), GROWTH.values(), ids=GROWTH)
def test_growth_is_seen_in_what_is_kept_and_in_what_batches_need(held_mb, between, half):
    slopes = slopes_mb_per_h(sampled(held_mb), 900)
    assert slopes is not None
    assert (between, half) == tuple(slopes[name].is_above(1) for name in ("between batches", "half of the time"))
    for slope, grows in zip(slopes.values(), (between, half), strict=True):
        assert slope.mb_per_h == pytest.approx(30 * grows, abs=1)


def test_memory_before_the_last_start_counts_for_nothing():
    level = sampled(lambda _: (100, 0))
    before = [one._replace(at_s=one.at_s - 6000, start=0, held=Held(n, 0, 0, 0)) for n, one in enumerate(level)]
    assert slopes_mb_per_h([*before, *level], 900) == slopes_mb_per_h(level, 900)


def test_no_slope_before_it_was_settled_for_long_enough():
    assert slopes_mb_per_h(sampled(lambda _: (1, 1), 170), 900) is None
