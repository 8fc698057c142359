"""Pictures of a replay, as SVG: the confs beside each other by group, and each group over time."""

import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headgate.report.replay import words
from headgate.report.replay.series import UNITS, Course, Steps

MOST_BROKERS = 6
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Distinguishable with any kind of colour vision (Okabe and Ito)."""
ADMITTED, DELAYED, FAILED, OFFERED, QUOTA = "#3B7EA1", "#E8B450", "#C1432E", "#C9CED6", "#333333"
PARTS = {"admitted at once": ADMITTED, "delayed": DELAYED, "failed": FAILED}
SVG_STYLE: Any = {
    "svg.hashsalt": "headgate",
    "text.parse_math": False,  # names may hold dollars
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8A8F98",
    "axes.labelcolor": "#3A3F47",
    "xtick.color": "#3A3F47",
    "ytick.color": "#3A3F47",
    "axes.titlesize": 11,
}
_MINUTES_FROM_S, _HOURS_FROM_S = 300, 3 * 3600


def outcome_bars(rows: Sequence[words.Row], confs: Sequence[str]) -> str:
    """What became of the messages offered, a bar for each group and conf. rows: of replay_groups."""
    groups = sorted({row["group"] for row in rows}, key=lambda name: (name is None, name or ""))
    by_place = {(row["group"], row["conf"]): row for row in rows}
    height = 0.28 * len(groups) * len(confs) + 0.22 * len(groups) + 1.1
    with mpl.rc_context(SVG_STYLE):
        figure, axes = _figure(10.0, height)
        labels: list[tuple[float, str]] = []
        at = 0.0
        for group in groups:
            for conf in confs:
                row = by_place.get((group, conf))
                if row is not None:
                    _bar(axes, at, row)
                    labels.append((at, conf if len(confs) > 1 else ""))
                at += 1
            middle = at - len(confs) / 2 - 0.5
            name = group or words.NO_GROUP
            axes.annotate(
                *(name, (0, middle)),
                xytext=(-12 - 6.2 * max(map(len, confs)) * (len(confs) > 1), 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontweight="bold",
            )
            at += 0.8
        axes.set_yticks([place for place, _ in labels], [label for _, label in labels])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the messages offered")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color="#E4E7EB", linewidth=0.8)
        axes.set_axisbelow(True)
        handles = [Patch(color=colour, label=name) for name, colour in PARTS.items()]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(PARTS), frameon=False)
        return svg_of(figure)


def _bar(axes: Any, at: float, row: words.Row) -> None:
    delayed, failed = words.part(row, "delayed_msgs"), words.part(row, "failed_msgs")
    at_once = words.part(row, "admitted_msgs") - delayed
    left = 0.0
    for width, colour in zip((at_once, delayed, failed), PARTS.values(), strict=True):
        axes.barh(at, width, left=left, color=colour, height=0.78)
        if width >= 6:
            light = colour != DELAYED
            axes.text(
                left + width / 2,
                at,
                f"{width:.0f} %",
                ha="center",
                va="center",
                fontsize=8.5,
                color="white" if light else "#333333",
            )
        left += width


def group_over_time(
    found: Mapping[str, Course], confs: Sequence[str], quotas: Mapping[str, int | None], steps: Steps, unit: str
) -> str:
    """One group: the cluster above, its brokers below, a column for each conf. quotas: by conf, a second."""
    with mpl.rc_context(SVG_STYLE):
        brokers = _brokers(found)
        has_limits = any(course.limits for course in found.values())
        rows = 3 if has_limits else 2
        figure = Figure(figsize=(max(10.0, 5.0 * len(confs)), 2.5 * rows + 0.4), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(rows, len(confs), sharex=True, sharey="row", squeeze=False)
        zero = np.zeros(steps.count)
        for column, conf in enumerate(confs):
            course = found.get(conf, Course(zero, zero))
            _cluster(panels[0][column], course, quotas.get(conf), steps)
            _by_broker(panels[-1][column], course, brokers, steps)
            if has_limits:
                _limits(panels[1][column], course, brokers, quotas.get(conf), steps)
            panels[0][column].set_title(conf, fontweight="bold")
            panels[-1][column].set_xlabel(_time_label(steps))
            for panel in panels[:, column]:
                _dress(panel, steps)
        panels[0][0].set_ylabel(f"all brokers\n{UNITS[unit]}")
        panels[-1][0].set_ylabel(f"admitted by broker\n{UNITS[unit]}")
        if has_limits:
            panels[1][0].set_ylabel(f"limits by broker\n{UNITS[unit]}")
        for panel in panels[:, -1]:
            panel.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
            panel.set_ylim(bottom=0)
        return svg_of(figure)


def _cluster(panel: Any, course: Course, quota: int | None, steps: Steps) -> None:
    at = steps.starts_s
    panel.fill_between(at, course.offered, step="post", color=OFFERED, label="offered", linewidth=0)
    panel.step(at, course.admitted, where="post", color=ADMITTED, linewidth=1.3, label="admitted")
    if quota is not None:
        panel.axhline(quota, color=QUOTA, linestyle="--", linewidth=1.1, label="quota")


def _by_broker(panel: Any, course: Course, brokers: Sequence[str], steps: Steps) -> None:
    at = steps.starts_s
    zero = np.zeros(steps.count)
    for broker, colour in zip(brokers, COLOURS, strict=False):
        panel.step(at, course.by_broker.get(broker, zero), where="post", color=colour, linewidth=1.1, label=broker)


def _limits(panel: Any, course: Course, brokers: Sequence[str], quota: int | None, steps: Steps) -> None:
    """Limits one above the other: together they are the quota, and the floors of brokers that ask for nothing."""
    others = [values for name, values in course.limits.items() if name not in brokers]
    layers = [np.nan_to_num(course.limits.get(broker, np.zeros(steps.count))) for broker in brokers]
    labels, colours = list(brokers), list(COLOURS[: len(brokers)])
    if others:
        layers.append(np.nan_to_num(np.sum(others, axis=0)))
        labels, colours = [*labels, "others"], [*colours, OFFERED]
    base = np.zeros(steps.count)
    for values, label, colour in zip(layers, labels, colours, strict=True):
        panel.fill_between(
            steps.starts_s, base, base + values, step="post", color=colour, alpha=0.75, linewidth=0, label=label
        )
        base = base + values
    if quota is not None:
        panel.axhline(quota, color=QUOTA, linestyle="--", linewidth=1.1, label="quota")


def _brokers(found: Mapping[str, Course]) -> list[str]:
    """Those with the most traffic, by name."""
    totals: dict[str, float] = {}
    for course in found.values():
        for broker, values in course.by_broker.items():
            totals[broker] = totals.get(broker, 0) + float(values.sum())
    return sorted(sorted(totals, key=lambda name: (-totals[name], name))[:MOST_BROKERS])


def left_out(found: Mapping[str, Course]) -> int:
    """How many brokers are not drawn."""
    return len({broker for course in found.values() for broker in course.by_broker} - set(_brokers(found)))


def _dress(panel: Any, steps: Steps) -> None:
    panel.grid(axis="y", color="#E4E7EB", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.margins(x=0)
    panel.tick_params(length=0)
    panel.yaxis.set_major_locator(MaxNLocator(5))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 3, 6, 10]))
    divisor = _divisor(steps)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / divisor:g}"))


def _short(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if suffix == 'k' else size):g} {suffix}"
    return f"{value:,.0f}"


def _divisor(steps: Steps) -> int:
    length_s = steps.count * steps.step_s
    return 3600 if length_s >= _HOURS_FROM_S else 60 if length_s >= _MINUTES_FROM_S else 1


def _time_label(steps: Steps) -> str:
    return {1: "seconds", 60: "minutes", 3600: "hours"}[_divisor(steps)] + " from the beginning"


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.subplots()


def svg_of(figure: Figure) -> str:
    """The figure as a file that is the same for the same numbers."""
    out = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # names may be of any script, and are in the tables
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue().decode()
