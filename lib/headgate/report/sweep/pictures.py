"""Pictures of a sweep, as SVG: miss ratios, bytes saved and memory over the size of the cache, a line a policy."""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from headgate.core.cache.settings import PolicyName
from headgate.report.replay.pictures import SVG_STYLE, svg_of
from headgate.report.sweep.words import MIB_BYTES, changes, size
from headgate.sizing.advice import RowOfSweep, miss_ratio, saved

_PALETTE = (
    *("#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#7A5C3E", "#8A8F98", "#009E73", "#222222", "#F0E442"),
)
COLOURS = dict(zip(map(str, PolicyName), cycle(_PALETTE), strict=False))
"""Of each policy, in order. Distinguishable with any kind of colour vision (Okabe and Ito)."""
Value = Callable[[RowOfSweep], float]


def miss_ratio_curves(rows: Sequence[RowOfSweep], title: str) -> str:
    """Misses in percent by size: with the keys of now, and dashed the best of the others where they are better."""
    return _curves(rows, title, "% of entries from storage", lambda row: 100 * miss_ratio(row), best=min)


def savings(rows: Sequence[RowOfSweep], present: RowOfSweep) -> str:
    """Bytes from storage that are saved against the present conf, in percent of them."""
    return _curves(
        rows, "", "% fewer bytes from storage than now", lambda row: 100 * saved(row, present), best=max, floor=None
    )


def memory(rows: Sequence[RowOfSweep]) -> str:
    """Mean memory that cached entries keep, where it is known, else mean bytes cached; in MiB."""
    is_known = all(row["mean_pinned_bytes"] is not None for row in rows)
    name, words = ("mean_pinned_bytes", "MiB of memory kept, mean") if is_known else ("mean_bytes", "MiB cached, mean")
    return _curves(rows, "", words, lambda row: row[name] / MIB_BYTES, best=None)


def _curves(
    rows: Sequence[RowOfSweep],
    title: str,
    label: str,
    value: Value,
    *,
    best: Callable[..., float] | None,
    floor: float | None = 0,
) -> str:
    with mpl.rc_context(SVG_STYLE):
        figure = Figure(figsize=(10.0, 4.2), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        for policy in sorted({row["policy"] for row in rows}, key=list(COLOURS).index):
            _lines(axes, [row for row in rows if row["policy"] == policy], policy, value, best)
        present = next(row for row in rows if row["is_present"])
        axes.plot(
            [present["max_bytes"]],
            [value(present)],
            "o",
            color="#C1432E",
            markersize=9,
            label="now",
            zorder=5,
            clip_on=False,
        )
        _dress(axes, sorted({row["max_bytes"] for row in rows}), title, label, floor)
        return svg_of(figure)


def _lines(axes: Any, rows: Sequence[RowOfSweep], policy: str, value: Value, best: Callable[..., float] | None) -> None:
    as_now: dict[int, float] = {}
    others: dict[int, list[float]] = {}
    for row in rows:
        if not changes(row):
            as_now[row["max_bytes"]] = value(row)
        others.setdefault(row["max_bytes"], []).append(value(row))
    style = {"color": COLOURS[policy], "markersize": 3.5, "linewidth": 1.6}
    axes.plot(*_points(as_now), "o-", label=policy, **style)
    if best is not None and any(best(values) != as_now.get(at) for at, values in others.items()):
        axes.plot(
            *_points({at: best(values) for at, values in others.items()}), "o--", label=f"{policy}, best keys", **style
        )


def _points(by_size: dict[int, float]) -> tuple[list[int], list[float]]:
    sizes = sorted(by_size)
    return sizes, [by_size[at] for at in sizes]


def _dress(axes: Any, sizes: Sequence[int], title: str, label: str, floor: float | None) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    axes.tick_params(axis="x", rotation=45 if len(sizes) > 10 else 0, length=0)
    axes.set_xlabel("cache of each broker")
    axes.set_ylabel(label)
    if floor is not None:
        axes.set_ylim(bottom=floor)
    if title:
        axes.set_title(title, fontweight="bold")
    axes.grid(color="#E4E7EB", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
