"""Traffic of the bundled trace as if it came now, round after round."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from headgate.trace.demo import DEMO_TRACE
from headgate.trace.spec import TraceSpec
from headgate.trace.write import write_trace

KEPT_ROUNDS = 15
"""Files of older ones are removed: the job has read them long since."""
LEAD_S = 5
"""A round begins so long after it is asked for: it has to be written first."""


def round_of(number: int, start: datetime) -> TraceSpec:
    """The trace of a round: that of the first answer, in about a file for each second of it."""
    return replace(DEMO_TRACE, seed=DEMO_TRACE.seed + number, start=start, files=int(DEMO_TRACE.duration_s))


def feed(folder: Path, stop: Event, now: Callable[[], float] = time.time) -> None:
    """Put files into the folder, each once its last row has happened, until `stop` is set.

    Event times are those of the clock. Files appear whole and in order, so that a stream can follow the folder.
    """
    scratch = folder.with_name(f"{folder.name}-to-come")
    folder.mkdir(parents=True, exist_ok=True)
    number, start_s = 0, int(now()) + LEAD_S
    while not stop.is_set():
        spec = round_of(number, datetime.fromtimestamp(start_s, UTC))
        shutil.rmtree(scratch, ignore_errors=True)
        write_trace(spec, scratch, "json")
        for path in sorted(scratch.iterdir()):
            if stop.wait(max(_last_s(path) - now(), 0)):
                break
            os.utime(path)
            path.rename(folder / f"{number:06d}-{path.name}")
        for old in folder.glob(f"{number - KEPT_ROUNDS:06d}-*"):
            old.unlink()
        number, start_s = number + 1, start_s + int(spec.duration_s)


def _last_s(path: Path) -> float:
    """The event time of its last row, since 1970."""
    *_, last = path.read_text("utf-8").splitlines()
    return datetime.fromisoformat(json.loads(last)["event_time"]).timestamp()
