"""Draws docs/pictures/quota-shares.svg: shares over rounds in the step scenarios, ours beside what others do.

python tests/benchmarks/quota_pictures.py

Nothing is lost, the view is one round old. The same numbers give the same file, byte for byte.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from quota_traffic import EVENT_ROUND, SCENARIOS, Group, scenario

from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters
from headgate.core.quota.simulation.measures import exact_split
from headgate.core.quota.simulation.rounds import play
from headgate.core.quota.simulation.trace import PlayedRound, RoundParameters

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "quota-shares.svg"
BROKERS = 5
SHOWN = range(EVENT_ROUND - 5, EVENT_ROUND + 25)
TOP = 1.65
SIDES = {
    "headgate, fast": StepParameters(),
    "headgate, strict": StepParameters(mode=Mode.STRICT),
    "Pulsar's formula": StepParameters(profile=Profile.PULSAR),
    "PIP-82: residual, equal": StepParameters(profile=Profile.PIP82_RESIDUAL_EQUAL),
    "PIP-82: residual, proportional": StepParameters(profile=Profile.PIP82_RESIDUAL_PROPORTIONAL),
    "PIP-82: steal": StepParameters(profile=Profile.PIP82_STEAL),
}
LINES = (
    ("first broker", "#0b5394", "-"),
    ("last broker", "#cc4125", "-"),
    ("all together", "#444444", "-"),
    ("fair shares (max-min)", "#999999", ":"),
)
"""What a panel shows; the colours of the brokers are told apart with any sight, and in print by their place."""


def shares(rounds: list[PlayedRound]) -> list[list[float]]:
    """What the first and the last broker admit and what all do, as parts of the quota; then both fair shares."""
    columns: list[list[float]] = [[], [], [], [], []]
    for number in SHOWN:
        one = rounds[number]
        quota = one.quota or 1
        split = exact_split(one.quota, one.demand, [1] * BROKERS, [True] * BROKERS)
        values = (one.admitted[0], one.admitted[-1], sum(one.admitted))
        fair = (split.parts[0] / split.scale, split.parts[-1] / split.scale)
        for column, value in zip(columns, (*values, *fair), strict=True):
            column.append(value / quota)
    return columns


def draw(panel: Any, rounds: list[PlayedRound]) -> None:
    """One scenario under one rule."""
    at = [number - EVENT_ROUND for number in SHOWN]
    *told, fair_first, fair_last = shares(rounds)
    _, colour, style = LINES[-1]
    for fair in (fair_first, fair_last):
        panel.plot(at, fair, color=colour, linestyle=style, linewidth=1.6)
    for values, (_, colour, style) in zip(told, LINES, strict=False):
        panel.plot(at, values, color=colour, linestyle=style, linewidth=1.0)
    panel.axhline(1, color="#dddddd", linewidth=0.6, zorder=0)
    panel.set_ylim(-0.05, TOP)
    panel.set_yticks([0, 0.5, 1, 1.5])
    panel.tick_params(labelsize=7, length=0)
    panel.spines[["top", "right"]].set_visible(False)


def figure() -> Figure:
    """A row for each step scenario, a column for each rule."""
    names = [name for name, one in SCENARIOS.items() if one.group is Group.STEP]
    made = Figure(figsize=(2.2 * len(SIDES), 1.45 * len(names) + 0.7), layout="constrained")
    FigureCanvasSVG(made)
    panels = made.subplots(len(names), len(SIDES), sharex=True, sharey=True, squeeze=False)
    for row, name in zip(panels, names, strict=True):
        trace = scenario(name, BROKERS)
        for panel, (side, step) in zip(row, SIDES.items(), strict=True):
            draw(panel, play(trace, RoundParameters(step)))
            if name == names[0]:
                panel.set_title(side, fontsize=9)
            if name == names[-1]:
                panel.set_xlabel("rounds from the event", fontsize=8)
        row[0].set_ylabel(f"{name}\npart of the quota", fontsize=8)
    handles = [mpl.lines.Line2D([], [], color=colour, linestyle=style) for _, colour, style in LINES]
    labels = [label for label, *_ in LINES]
    made.legend(handles, labels, loc="outside upper center", ncols=len(LINES), fontsize=9, frameon=False)
    return made


def main() -> None:
    mpl.rcParams["svg.hashsalt"] = "headgate"
    mpl.rcParams["path.simplify_threshold"] = 0.5
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["font.family"] = "sans-serif"
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure().savefig(PICTURE, metadata={"Date": None, "Creator": None, "Title": "Shares of a quota over rounds"})
    PICTURE.write_text("\n".join(line.rstrip() for line in PICTURE.read_text().splitlines()) + "\n")


if __name__ == "__main__":
    main()
