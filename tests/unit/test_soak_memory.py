"""What the soak takes from what Java tells of its memory, whichever collector and compiler it has."""

import pytest

from soak import parsed_mb

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
