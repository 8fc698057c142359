"""What benchmarks on running clusters share: publishers, what comes of them second by second, and enforcing."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

TESTS = Path(__file__).parents[1]
LIB = Path(__file__).parents[2] / "lib"
SETTLING_S = 30
"""After a start, until a quota is to be kept."""


def script(name: str, *arguments: str, **environment: str) -> None:
    """Run one of the scripts that start real brokers. environment: what they look at there."""
    done = subprocess.run(
        [TESTS / name, *arguments], check=False, stdout=subprocess.DEVNULL, env=os.environ | environment
    )
    if done.returncode:
        raise SystemExit(f"{name} {arguments[0]} ended with {done.returncode}")


class Publishers:
    """A process that publishes. program: in this folder. prefix: of the names of its topics."""

    def __init__(self, program: str, *arguments: str, prefix: str) -> None:
        self._prefix = prefix
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def set(self, rates: Mapping[str, float]) -> None:
        """By topic, in what the program counts, a second."""
        assert self._process.stdin
        for topic, rate in rates.items():
            self._process.stdin.write(f"{self._prefix}{topic} {rate}\n")
        self._process.stdin.flush()

    def end(self) -> str:
        """What it printed."""
        return self._process.communicate(timeout=60)[0]


class Seconds:
    """What has come, second by second, from a thread. Seconds are since the start.

    totals: asks the brokers for all that has come so far, by topic.
    """

    def __init__(self, totals: Callable[[], Mapping[str, int]]) -> None:
        self._totals, self._stop = totals, threading.Event()
        self._looks: list[tuple[float, Mapping[str, int]]] = []
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _run(self) -> None:
        while not self._stop.wait(1 - self.now_s % 1):
            at_s = self.now_s
            self._looks.append((at_s, self._totals()))

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def seconds(self) -> list[tuple[float, float]]:
        """Of all topics: the end of each second, and what came in it, a second."""
        return [
            (end_s, (sum(now.values()) - sum(before.values())) / (end_s - start_s))
            for (start_s, before), (end_s, now) in pairwise(self._looks)
        ]

    def mean(self, first_s: float, last_s: float, topic: str | None = None) -> float:
        """A second; of all topics if none is named."""
        looks = [(at_s, now) for at_s, now in self._looks if first_s <= at_s <= last_s]
        (start_s, before), (end_s, after) = looks[0], looks[-1]
        count = sum(after.values()) - sum(before.values()) if topic is None else after[topic] - before.get(topic, 0)
        return count / (end_s - start_s)

    def worst_second(self, first_s: float, last_s: float) -> float:
        return max(rate for at_s, rate in self.seconds() if first_s < at_s <= last_s)

    def off_in_a_minute(self, first_s: float, last_s: float, quota: float) -> float:
        """Of all minutes in this time, how far the mean of the worst is off the quota."""
        starts = [at_s for at_s, _ in self._looks if first_s <= at_s <= last_s - 60]
        return max((self.mean(start_s, start_s + 60) / quota - 1 for start_s in starts), key=abs)


@contextmanager
def enforced(file: Path, output: Path) -> Iterator[Path]:
    """Collect and enforce --apply while the block runs; gives what enforce says. file: a cluster.toml."""
    given = ["--cluster", str(file), "--output", str(output)]
    environment = os.environ | {"PYTHONPATH": str(LIB)}
    screens = {name: Path(f"{output}-{name}.log") for name in ("collect", "enforce")}
    with screens["collect"].open("w") as of_collect, screens["enforce"].open("w") as of_enforce:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "headgate", name, *given, *more], env=environment, stdout=to, stderr=to
            )
            for name, more, to in (("collect", [], of_collect), ("enforce", ["--apply"], of_enforce))
        ]
        try:
            yield screens["enforce"]
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def pushes_in(screen: Path) -> int:
    return sum(" push " in line for line in screen.read_text().splitlines())
