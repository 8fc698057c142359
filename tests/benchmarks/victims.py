"""Two producers on one connection, one of them over its quota: what becomes of the other one.

    python tests/benchmarks/victims.py [--seconds 15] [--runs 20] [--receipt-wait-ms 1000] [--draw]

A real Pulsar broker, a real client of it with one connection, two RateLimitedProducers: `greedy` sends four times its
topic's quota, `innocent` sends steadily to a topic without one. Cases, in turn, each with topics of its own:

* alone: nobody limits, greedy is silent.
* Pulsar's own limit: a publish rate for the topic of greedy, set at the broker; no protocol.
* without the protocol: headgate's limiter in front of the broker (tests/limited_broker.py), a client without the flag.
* with the protocol: the same, and a client that is told by a gate.

A producer keeps what was acknowledged within a second of when it was due, whether the client sent it then or later.

The last case comes `--runs` times. With `--draw` draws docs/pictures/victims.svg.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from _bench import Results, parser
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))
from pulsar_standalone import Pulsar
from real_broker import free_ports
from two_producers import (
    DEFAULT_WAIT_MS,
    GREEDY,
    GREEDY_PER_S,
    INNOCENT,
    INNOCENT_PER_S,
    QUOTA_PER_S,
    Case,
    CaseName,
    Stack,
)

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "victims.svg"
WARM_UP_S = 5.0
SLOT_S = 0.5
LEAST_KEPT, WITHIN_S = 0.99, 1.0
"""Of what was due, how much has to be acknowledged, and how soon."""
MS = 1000.0
COLOURS = {GREEDY: ("greedy", "#cc4125"), INNOCENT: ("innocent", "#0b5394")}
COLUMNS = (
    "case",
    "innocent, acknowledged/s",
    "of alone",
    "kept",
    "p50 ms",
    "p99 ms",
    "greedy, acknowledged/s",
    "commands",
    "receipts in time",
    "fallbacks",
    "reads off",
    "load",
)


def per_s(case: Case, producer: int, seconds: float) -> float:
    return case.producers[producer].between(WARM_UP_S, WARM_UP_S + seconds) / seconds


def kept_of(case: Case, seconds: float) -> float:
    """What innocent got through in time of what was due."""
    return sum(took_s <= WITHIN_S for took_s in latencies_of(case, seconds)) / (seconds * INNOCENT_PER_S)


def latencies_of(case: Case, seconds: float) -> list[float]:
    return case.producers[INNOCENT].of_due(WARM_UP_S, WARM_UP_S + seconds)


def percentile_ms(case: Case, seconds: float, percent: int) -> str:
    """The latency within which this percentage of what was due was acknowledged."""
    latencies, place = latencies_of(case, seconds), int(seconds * INNOCENT_PER_S * percent / 100)
    return f"{latencies[place] * MS:,.1f}" if place < len(latencies) else "never"


def counted(case: Case, name: str) -> int:
    return sum(count for key, count in case.counts.items() if key.startswith(name))


def reads_off_s(case: Case) -> float:
    return counted(case, "headgate.broker.reads.off.duration") / MS


def row(name: str, case: Case, alone: Case, seconds: float) -> list[str]:
    innocent, greedy = (per_s(case, producer, seconds) for producer in (INNOCENT, GREEDY))
    times = [percentile_ms(case, seconds, percent) for percent in (50, 99)]
    fallbacks = ", ".join(f"{cause} {number:,}" for cause, number in sorted(case.fallbacks().items()))
    return [
        name,
        f"{innocent:,.1f}",
        f"{100 * innocent / per_s(alone, INNOCENT, seconds):.1f} %",
        f"{100 * kept_of(case, seconds):.1f} %",
        *times,
        f"{greedy:,.1f}",
        f"{counted(case, 'headgate.broker.throttle.command.count'):,}",
        f"{counted(case, 'headgate.broker.throttle.receipt.count{outcome=in_time}'):,}",
        fallbacks or "none",
        f"{reads_off_s(case):,.1f} s",
        f"{case.load:.1f}",
    ]


def figure(cases: dict[CaseName, Case], seconds: float) -> Figure:
    """A panel a case: what was acknowledged of both producers over time."""
    made = Figure(figsize=(2.9 * len(cases), 2.6), layout="constrained")
    FigureCanvasSVG(made)
    panels = made.subplots(1, len(cases), sharey=True, squeeze=False)[0]
    for panel, (name, case) in zip(panels, cases.items(), strict=True):
        draw(panel, case, seconds)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("seconds", fontsize=8)
    panels[0].set_ylabel("messages acknowledged a second", fontsize=8)
    handles = [mpl.lines.Line2D([], [], color=colour) for _, colour in COLOURS.values()]
    labels = [label for label, _ in COLOURS.values()]
    made.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9, frameon=False)
    return made


def draw(panel: Any, case: Case, seconds: float) -> None:
    slots = [number * SLOT_S for number in range(int((WARM_UP_S + seconds) / SLOT_S))]
    for producer, (_, colour) in COLOURS.items():
        sent = case.producers[producer]
        panel.step(
            slots,
            [sent.between(at_s, at_s + SLOT_S) / SLOT_S for at_s in slots],
            where="post",
            color=colour,
            linewidth=1.0,
        )
    panel.axhline(QUOTA_PER_S, color="#999999", linestyle=":", linewidth=1.0)
    panel.set_ylim(0, 1.6 * INNOCENT_PER_S)
    panel.tick_params(labelsize=7, length=0)
    panel.spines[["top", "right"]].set_visible(False)


def write(picture: Figure) -> None:
    mpl.rcParams["svg.hashsalt"] = "headgate"
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["font.family"] = "sans-serif"
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(PICTURE, metadata={"Date": None, "Creator": None, "Title": "Two producers on one connection"})
    PICTURE.write_text("\n".join(line.rstrip() for line in PICTURE.read_text().splitlines()) + "\n")


def measured(seconds: float, runs: int, receipt_wait_ms: int) -> tuple[dict[CaseName, Case], list[Case]]:
    """Every case, and all runs of the one with the protocol, on a broker of their own."""
    broker = Pulsar(*free_ports(3))
    with tempfile.TemporaryDirectory() as folder, broker.started(Path(folder)):
        stack = Stack(broker, receipt_wait_ms)
        whole_s = WARM_UP_S + seconds + WITHIN_S
        cases = {name: stack.run(name, whole_s) for name in CaseName}
        with_protocol = list[Case]()
        for number in range(1, runs + 1):
            case = cases[CaseName.WITH] if number == 1 else stack.run(CaseName.WITH, whole_s)
            with_protocol.append(case)
            kept = f"kept {100 * kept_of(case, seconds):.1f} %, reads off {reads_off_s(case):.1f} s of {whole_s:.0f}"
            sys.stderr.write(f"run {number}: innocent {kept}\n")
        return cases, with_protocol


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=15.0, metavar="S", help="of each case, after 5 s")
    options.add_argument("--runs", type=int, default=1, metavar="N", help="of the case with the protocol")
    options.add_argument(
        "--receipt-wait-ms",
        type=int,
        default=DEFAULT_WAIT_MS,
        metavar="MS",
        help="throttleProducerReceiptWaitTimeMillis",
    )
    options.add_argument("--draw", action="store_true", help="draw docs/pictures/victims.svg")
    arguments = options.parse_args()
    about = (
        f"A real Pulsar broker and its own client with one connection; greedy sends {GREEDY_PER_S} messages of 1 kB a "
        f"second to a topic with a quota of {QUOTA_PER_S}, innocent {INNOCENT_PER_S} to one without. "
        f"{arguments.seconds:.0f} s of each case count, after {WARM_UP_S:.0f} s. Kept: of what was due in that time, "
        f"what was acknowledged within {WITHIN_S:.0f} s; latencies too are of what was due then. Commands, receipts, "
        f"fallbacks and reads off are of the whole case. "
        f"The gate waits {arguments.receipt_wait_ms:,} ms for a receipt."
    )
    with Results("victims", "Two producers on one connection", about=about) as results:
        cases, runs = measured(arguments.seconds, arguments.runs, arguments.receipt_wait_ms)
        alone = cases[CaseName.ALONE]
        results.table("By case:", COLUMNS, [row(name, one, alone, arguments.seconds) for name, one in cases.items()])
        if len(runs) > 1:
            rows = [row(f"run {n}", one, alone, arguments.seconds) for n, one in enumerate(runs, 1)]
            results.table("With the protocol:", COLUMNS, rows)
        kept = [kept_of(one, arguments.seconds) for one in runs]
        least = f"innocent kept 99 % of what was due in every run, at least {100 * min(kept):.1f} %"
        results.check(least, passed=min(kept) >= LEAST_KEPT)
        results.note(
            "Without the protocol the broker reads nothing while greedy is over its quota, and what innocent has sent "
            "lies behind in the same socket. With it greedy stops by itself: when a pause is over it writes what it "
            "held back, until the next command. Reads off: of the door's machine; Pulsar tells nobody. "
            "Load: of the machine, in the minute before a case ended."
        )
    if arguments.draw:
        write(figure(cases, arguments.seconds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
