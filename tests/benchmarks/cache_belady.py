"""How near each policy of the entry cache comes to Belady's rule, what it reads from storage, what it keeps in memory.

python tests/benchmarks/cache_belady.py                            all of it: half an hour of CPU and more
python tests/benchmarks/cache_belady.py --family replay --seeds 1  a part

Settings and targets: entry-cache 16. Counts do not depend on the machine or on what else it does.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from _bench import Results, parser

from headgate.core.cache.settings import MIB_BYTES, CacheSettings, PolicyName
from headgate.core.cache.traces.workload import Family, generate
from headgate.sizing.instants import Span
from headgate.sizing.measure import measure
from headgate.sizing.trace import batches_of

SIZES_MIB = {
    Family.FANOUT: (0.5, 1, 2, 4),
    Family.CATCHUP: (1, 2, 4, 8, 16),
    Family.REPLAY: (0.5, 1, 2, 4),
    Family.MIXED: (1, 2, 4, 8, 16),
}
SEEDS = (1, 2, 3)
OURS, UPSTREAM, BOUND = PolicyName.CURSOR_DISTANCE, PolicyName.PIP430, PolicyName.BELADY
POLICIES = (BOUND, OURS, *(name for name in PolicyName if name not in {BOUND, OURS}))


class Place(NamedTuple):
    """One cell of the grid."""

    family: Family
    seed: int
    mib: float
    policy: PolicyName


Cells = Mapping[Place, Mapping[str, Any]]


class Target(NamedTuple):
    """A bound of entry-cache 16 on a figure, for the sizes of a family from `least` to `most` MiB, in percent."""

    family: Family
    bound: float
    least: float = 0
    most: float = 16


SHARES = (
    Target(Family.FANOUT, 95),
    Target(Family.MIXED, 95),
    Target(Family.REPLAY, 93),
    Target(Family.REPLAY, 99, 1),
    Target(Family.CATCHUP, 91),
    Target(Family.CATCHUP, 95, 8),
)
STORAGE = (
    Target(Family.FANOUT, -20),
    Target(Family.CATCHUP, -20, 4),
    Target(Family.CATCHUP, -30, 8),
    Target(Family.MIXED, -15, 1, 8),
    Target(Family.REPLAY, -15, 0.5, 0.5),
    Target(Family.REPLAY, -90, 1, 1),
)
MEMORY = (Target(Family.REPLAY, 50, 2), Target(Family.MIXED, 60, 8, 8))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--family", choices=[str(one) for one in Family], action="append", help="default all")
    options.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="S", help="default 1 2 3")
    options.add_argument("--processes", type=int, default=2, metavar="N", help="at once; default 2")
    given = options.parse_args()
    families = [Family(name) for name in given.family or Family]
    cells = dict(_measured(families, given.seeds, given))
    about = (
        "Profile `pip`, hits entry by entry, entries of one size, traffic of the generator (entry-cache 15, 16). "
        "Shares are of the hits of `belady`, which knows the future and is the bound for entries of one size. "
        "A cell is the mean of the seeds; targets hold for the worst of them. Nothing here depends on the load of "
        "the machine."
    )
    with Results("cache_belady", "Policies of the entry cache beside Belady's rule", about=about) as results:
        report(results, families, given.seeds, cells)
    return 0


def _measured(
    families: Sequence[Family], seeds: Sequence[int], given: argparse.Namespace
) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    tasks = list(product(families, seeds, POLICIES))
    with ProcessPoolExecutor(given.processes) as pool:
        for number, found in enumerate(pool.map(_of_all_sizes, tasks), 1):
            yield from found
            family, seed, policy = tasks[number - 1]
            print(f"{number} of {len(tasks)}: {family} seed {seed} {policy}", flush=True)


def _of_all_sizes(task: tuple[Family, int, PolicyName]) -> list[tuple[Place, Mapping[str, Any]]]:
    family, seed, policy = task
    rows = list(generate(family, seed))
    span, batches = Span(rows[0].t_us, rows[-1].t_us), list(batches_of(rows))
    conf = {"headgate.cache.policy": policy, "headgate.cache.rangeHits": "entry", "headgate.cache.reasonMemory": 0}
    found = []
    for mib in SIZES_MIB[family]:
        settings = CacheSettings.of({**conf, "headgate.cache.maxBytes": round(mib * MIB_BYTES)})
        found.append((Place(family, seed, mib, policy), measure(settings, lambda: batches, span)))
    return found


def report(results: Results, families: Sequence[Family], seeds: Sequence[int], cells: Cells) -> None:
    """Every cell as a row, a table a family, and the targets of those families that ran."""
    for place, found in cells.items():
        results.row(
            {**place._asdict(), **{name: found[name] for name in ("hits", "storage_bytes", "mean_bytes", "peak_bytes")}}
        )
    for family in families:
        columns = ("policy", *(f"{mib} MiB" for mib in SIZES_MIB[family]))
        of_policies = shares(cells, family, seeds)
        rows = [(policy, *(f"{100 * share:.1f}" for share in found.values())) for policy, found in of_policies.items()]
        results.table(f"{family}: hits, % of those of belady", columns, rows)
    figure = partial(_target, results, families, seeds, cells)
    for target in SHARES:
        figure(target, "hits of those of belady, worst", _share, at_least=True)
    for target in STORAGE:
        figure(target, f"bytes from storage against {UPSTREAM}, worst", _storage, at_least=False)
    for target in MEMORY:
        figure(target, f"mean bytes cached of those of {UPSTREAM}, worst", _memory, at_least=False)
    ours = [(place, found) for place, found in cells.items() if place.policy == OURS]
    results.check(
        f"{OURS} is never above the limit",
        passed=all(found["peak_bytes"] <= place.mib * MIB_BYTES for place, found in ours),
    )
    best = all(found["hits"] <= cells[place._replace(policy=BOUND)]["hits"] for place, found in cells.items())
    results.check("no policy has more hits than belady", passed=best)


def _target(
    results: Results,
    families: Sequence[Family],
    seeds: Sequence[int],
    cells: Cells,
    target: Target,
    what: str,
    figure: Any,
    *,
    at_least: bool,
) -> None:
    if target.family not in families:
        return
    sizes = [mib for mib in SIZES_MIB[target.family] if target.least <= mib <= target.most]
    values = [100 * figure(cells, target.family, seed, mib) for seed, mib in product(seeds, sizes)]
    span = f"{sizes[0]} MiB" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} MiB"
    name = f"{target.family}, {span}: {OURS}, {what}"
    if at_least:
        results.target(name, "%", [min(values)], at_least=target.bound)
    else:
        results.target(name, "%", [max(values)], at_most=target.bound)


def shares(cells: Cells, family: Family, seeds: Sequence[int]) -> dict[str, dict[float, float]]:
    """By policy and size the hits as a part of belady's, the mean of the seeds."""
    return {
        str(policy): {
            mib: sum(_part(cells, Place(family, seed, mib, policy), "hits", BOUND) for seed in seeds) / len(seeds)
            for mib in SIZES_MIB[family]
        }
        for policy in POLICIES
    }


def _share(cells: Cells, family: Family, seed: int, mib: float) -> float:
    return _part(cells, Place(family, seed, mib, OURS), "hits", BOUND)


def _storage(cells: Cells, family: Family, seed: int, mib: float) -> float:
    return _part(cells, Place(family, seed, mib, OURS), "storage_bytes", UPSTREAM) - 1


def _memory(cells: Cells, family: Family, seed: int, mib: float) -> float:
    return _part(cells, Place(family, seed, mib, OURS), "mean_bytes", UPSTREAM)


def _part(cells: Cells, place: Place, name: str, of: PolicyName) -> float:
    """A figure of a cell as a part of that of another policy; 1 where both are 0."""
    whole: int = cells[place._replace(policy=of)][name]
    return cells[place][name] / whole if whole else float(cells[place][name] == 0)


if __name__ == "__main__":
    raise SystemExit(main())
