"""The hits of every policy on the generator's traffic are those of the table of section 16, to the entry."""

from functools import cache

import pytest

from headgate.core.cache.traces.workload import generate
from unit.core.cache.traces import cache_of

MIB = 1 << 20
SIZES_MIB = {"fanout": (0.5, 1, 2, 4), "catchup": (1, 2, 4, 8, 16), "replay": (0.5, 1, 2, 4), "mixed": (1, 2, 4, 8, 16)}
TABLE = """
belady            270569 286902 300775 310667|98611 119144 145949 179758 212552|214726 228818 229092 229092|197634 219551 241307 260230 266345
cursor_distance   261970 277556 293239 310667|92887 113447 139964 172514 208513|200923 228532 229092 229092|189936 213071 237065 258968 266345
pip430            234492 263326 284072 306522|57064  68042  83695 113839 165350|194278 220914 229050 229092|153554 180841 206746 237472 265095
lru               231378 257145 277496 293735|55798  65693  80096 103564 149527|173352 200532 220244 228194|143813 163973 191625 221146 254755
sieve             239456 262693 278898 295187|51410  57544  67111  80477 107218|156083 192864 216875 226583|143526 158749 173981 193464 229947
s3fifo            234094 258203 277137 293679|51443  59352  70756  92708 132127|143484 186314 216950 226989|134531 153397 174599 205266 237081
fifo              226277 254147 274910 293867|55334  65615  79651 105900 155340|173482 201520 219293 227502|141486 163883 194340 216946 255253
by_mark_delete    249742 268883 282091 282163|55662  56457  56457  56457  56457|183328 202453 217323 224284|156313 165546 166725 166725 166725
size_proportional 251544 270742 282163 282163|55688  56457  56457  56457  56457|184235 184650 184650 184650|153261 154665 154665 154665 154665
"""  # noqa: E501  as in the specification
IN_THE_NORMAL_RUN = {("catchup", 4, "pip430")}


def cells():
    for line in TABLE.strip().splitlines():
        policy, figures = line.split(maxsplit=1)
        for (family, sizes), part in zip(SIZES_MIB.items(), figures.split("|"), strict=True):
            for size_mib, hits in zip(sizes, map(int, part.split()), strict=True):
                marks = [] if (family, size_mib, policy) in IN_THE_NORMAL_RUN else [pytest.mark.long]
                yield pytest.param(family, size_mib, policy, hits, id=f"{family}-{size_mib}-{policy}", marks=marks)


@cache
def rows_of(family, seed):
    return list(generate(family, seed))


def played(policy, family, size_mib, seed=1):
    replayed = cache_of(policy=policy, rangeHits="entry", maxBytes=int(size_mib * MIB), reasonMemory=0)
    rows = rows_of(family, seed)
    if policy == "belady":
        replayed.foresee(rows)
    for row in rows:
        replayed.feed(row)
    return replayed.totals()


@pytest.mark.parametrize(("family", "size_mib", "policy", "hits"), sorted(cells(), key=lambda cell: cell.values[:2]))
def test_hits_are_those_of_the_reference(family, size_mib, policy, hits):
    totals = played(policy, family, size_mib)

    assert hits == totals["hits"]
    assert totals["dead"] == 0
    if policy not in {"pip430", "by_mark_delete", "size_proportional"}:
        assert totals["peak_bytes"] <= size_mib * MIB


SHARES = [
    ("fanout", 0.5, 95),
    ("mixed", 0.5, 95),
    ("replay", 0.5, 93),
    ("replay", 1, 99),
    ("catchup", 1, 91),
    ("catchup", 8, 95),
]
"""Least share of belady's hits that cursor_distance has, in percent, by family and from a size on."""


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("family", SIZES_MIB)
def test_cursor_distance_has_its_share_of_the_hits_that_can_be_had(family, seed):
    for size_mib in SIZES_MIB[family]:
        percent = max(least for name, from_mib, least in SHARES if name == family and from_mib <= size_mib)
        possible = played("belady", family, size_mib, seed)["hits"]

        assert 100 * played("cursor_distance", family, size_mib, seed)["hits"] >= percent * possible, size_mib
