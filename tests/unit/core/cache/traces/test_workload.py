"""The generator of cache workloads is the one of the specification, bit for bit."""

import hashlib
from itertools import islice

import pytest

from headgate.core.cache.traces.workload import generate
from headgate.errors import InvalidArgument

PUBLISHED = [
    ("fanout", 1, "equal", 159185, 39781, 310667, "781fc24c54739aef"),
    ("fanout", 2, "equal", 162948, 40342, 318141, "a6735d0ecddd0b5a"),
    ("fanout", 3, "equal", 190144, 39476, 313539, "23b10cb965a87766"),
    ("catchup", 1, "equal", 38280, 14666, 289117, "419d5b92ed80505d"),
    ("catchup", 2, "equal", 36994, 14414, 287936, "f27838c03b028000"),
    ("catchup", 3, "equal", 36636, 14430, 287990, "7dbb95660c5dc561"),
    ("replay", 1, "equal", 196618, 59842, 229092, "766e59c0176ebefc"),
    ("replay", 2, "equal", 197608, 59927, 229793, "6ff76c2487ec6f84"),
    ("replay", 3, "equal", 197349, 60217, 230196, "dc259e3703e177e6"),
    ("mixed", 1, "equal", 135519, 39107, 323345, "881da776b6d22eb9"),
    ("mixed", 2, "equal", 123800, 38767, 321224, "f4caa3d3e08a9d29"),
    ("mixed", 3, "equal", 123806, 39323, 324326, "c8c39f389b8dd6b1"),
    ("mixed", 1, "skewed", None, None, None, "5504120cb3592d4d"),
]


def digest(rows):
    total = hashlib.sha256()
    for row in rows:
        sizes = ";".join(map(str, row.sizes or ()))
        total.update(f"{','.join('' if cell is None else str(cell) for cell in row[:8])},{sizes}\n".encode())
    return total.hexdigest()[:16]


IN_THE_NORMAL_RUN = {("catchup", 1, "equal")}


def in_the_normal_run(case):
    return pytest.param(
        *case, id="-".join(map(str, case[:3])), marks=[] if case[:3] in IN_THE_NORMAL_RUN else [pytest.mark.long]
    )


@pytest.mark.parametrize(
    ("family", "seed", "sizes", "count", "added", "read", "digest_16"), list(map(in_the_normal_run, PUBLISHED))
)
def test_rows_are_those_whose_digest_the_specification_tells(family, seed, sizes, count, added, read, digest_16):
    rows = list(generate(family, seed, sizes))

    assert digest_16 == digest(rows)
    if count is not None:
        assert count == len(rows)
        assert added == sum(row.count for row in rows if row.kind == "add")
        assert read == sum(row.count for row in rows if row.kind in {"read", "replay_read"})


@pytest.mark.parametrize(("family", "digest_16"), [("mixed", "f7f22211553b0598"), ("fanout", "c3d5575589b394f2")])
def test_the_first_rows_are_those_of_a_trace_whose_digest_the_specification_tells(family, digest_16):
    """The digests of these rows were taken from traces that had the whole one."""
    assert digest_16 == digest(islice(generate(family, 1, "skewed" if family == "mixed" else "equal"), 10_000))


def test_scale_multiplies_the_topics():
    topics = {row.topic for row in islice(generate("mixed", 1, scale=2), 2000) if row.kind == "open"}

    assert len(topics) == 2 * 12


@pytest.mark.parametrize("wrong", [{"family": "fan"}, {"seed": -1}, {"sizes": "even"}, {"scale": 0}])
def test_unknown_names_and_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        generate(**{"family": "fanout", "seed": 1, **wrong})
