"""Draws docs/pictures/cache-belady.svg: hits as a share of Belady's by size of the cache, a panel a family."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from headgate.report.replay.pictures import SVG_STYLE, svg_of
from headgate.report.sweep.pictures import COLOURS

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "cache-belady.svg"


def draw_shares(by_family: Mapping[str, Mapping[str, Mapping[float, float]]], picture: Path = PICTURE) -> None:
    """By family, policy and MiB: parts of Belady's hits. The same numbers give the same file."""
    with mpl.rc_context(SVG_STYLE):
        figure = Figure(figsize=(11, 6.6), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(2, 2, sharey=True).flat
        for panel, (family, by_policy) in zip(panels, by_family.items(), strict=False):
            for policy, found in by_policy.items():
                values = [100 * share for share in found.values()]
                panel.plot(list(found), values, "o-", color=COLOURS[policy], label=policy, markersize=3.5)
            panel.set_title(family, fontweight="bold")
            panel.set_xscale("log", base=2)
            panel.xaxis.set_major_locator(FixedLocator([*next(iter(by_policy.values()))]))
            panel.xaxis.set_minor_locator(NullLocator())
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} MiB"))
            panel.set_ylabel("hits, % of belady")
            panel.grid(color="#E4E7EB", linewidth=0.8)
            panel.set_axisbelow(True)
        handles, labels = next(iter(figure.axes)).get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        picture.write_text(svg_of(figure), "utf-8")
