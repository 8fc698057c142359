"""The token bucket kernel against Pulsar's own class, on the same events, one thread, event times given.

Ours is `consume_check_one` and `consume_check_many` of headgate.core.kernels.token_bucket; theirs is
`consumeTokensAndCheckIfContainsTokens` of AsyncTokenBucket in org.apache.pulsar:pulsar-broker, fetched by Maven, on a
clock that returns the event's time. Both sides take turns in one run, make the same decisions (checked event by event),
start every pass with fresh buckets, and are timed without making them. Theirs counts true results, ours stores each.

Needs java, javac and mvn. What it fetches and compiles stays in .cache/benchmarks.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from _bench import Results, interleave, parser, ratios

from headgate.core.kernels import token_bucket
from headgate.core.token_bucket import TokenBucket

PULSAR = "4.2.4"
ARTIFACT = f"org.apache.pulsar:pulsar-broker:{PULSAR}"
HARNESS = Path(__file__).parent / "pulsar" / "PulsarBuckets.java"
CACHE = Path(__file__).parents[2] / ".cache" / "benchmarks" / f"pulsar-{PULSAR}"
# Large pages for the heap as numpy has for its arrays; without them theirs is slower.
JVM_OPTIONS = ("-Xms1g", "-Xmx1g", "-XX:+UseTransparentHugePages")
START_NS = 1_700_000_000 * 10**9
JVM_WARMUPS = 10


@dataclass(frozen=True, slots=True)
class Pattern:
    """Events at random distances around `step_ns` with costs around `cost`, near the rate, so that decisions mix.

    Those of one bucket are few enough to stay in the processor's cache, as a batch does that was just read; they are
    replayed `passes` times a repetition.
    """

    name: str
    buckets: int
    step_ns: int
    rate: int
    cost: int
    initial: int
    events: int
    passes: int
    at_least: float


def one_bucket(name: str, *, step_ns: int, rate: int, cost: int, initial: int) -> Pattern:
    """Wanted: 5 times Pulsar."""
    return Pattern(f"1 bucket, {name}", 1, step_ns, rate, cost, initial, events=50_000, passes=40, at_least=5)


def many_buckets(name: str, *, step_ns: int, rate: int, cost: int, initial: int) -> Pattern:
    """Wanted: 3 times Pulsar. `step_ns` is that of each bucket."""
    count = 100_000
    name = f"{count:,} buckets at random, {name}"
    return Pattern(name, count, step_ns // count, rate, cost, initial, events=2_000_000, passes=1, at_least=3)


PATTERNS = (
    one_bucket("1 us apart (1 event in 16,000 refills)", step_ns=1_000, rate=10**8, cost=100, initial=800_000),
    one_bucket("1 ms apart (1 event in 17 refills)", step_ns=10**6, rate=10**5, cost=100, initial=800),
    one_bucket("25 ms apart (every event refills)", step_ns=25 * 10**6, rate=5_000, cost=125, initial=125),
    one_bucket(
        "25 ms apart, at 104,857,600 a second (every event refills, and the rate does not divide the period)",
        step_ns=25 * 10**6,
        rate=104_857_600,
        cost=2_621_440,
        initial=2_621_440,
    ),
    many_buckets("each 1 ms apart (1 event in 17 refills)", step_ns=10**6, rate=10**5, cost=100, initial=800),
    many_buckets("each 100 ms apart (most events refill)", step_ns=10**8, rate=1_000, cost=100, initial=100),
)


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a pattern, the same on both sides."""

    times: np.ndarray
    costs: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, pattern: Pattern) -> "Events":
        """Reproducible: the seed is fixed."""
        random = np.random.default_rng(1)
        steps = random.integers(pattern.step_ns * 2 // 3, pattern.step_ns * 4 // 3, pattern.events, endpoint=True)
        costs = random.integers(0, 2 * pattern.cost, pattern.events, endpoint=True)
        index = random.integers(0, pattern.buckets, pattern.events)
        return cls(START_NS + np.cumsum(steps), costs, index)


class Ours:
    """The kernel on the events of a pattern."""

    def __init__(self, pattern: Pattern, events: Events) -> None:
        self._pattern, self._events = pattern, events
        bucket = TokenBucket(pattern.rate, initial=pattern.initial, created_ns=int(events.times[0]))
        self._fresh = np.repeat(token_bucket.pack([bucket]), pattern.buckets)
        self._buckets = self._fresh.copy()
        self.decisions = np.zeros(pattern.events, np.bool_)

    def replay(self) -> float:
        """Nanoseconds an event."""
        events, spent_ns = self._events, 0
        for _ in range(self._pattern.passes):
            self._buckets[:] = self._fresh
            start_ns = perf_counter_ns()
            if self._pattern.buckets == 1:
                token_bucket.consume_check_one(self._buckets, 0, events.costs, events.times, self.decisions)
            else:
                token_bucket.consume_check_many(self._buckets, events.index, events.costs, events.times, self.decisions)
            spent_ns += perf_counter_ns() - start_ns
        return spent_ns / (self._pattern.passes * self._pattern.events)


class Theirs:
    """A Java process that replays the events of a pattern on request."""

    def __init__(self, pattern: Pattern, folder: Path, process: "subprocess.Popen[str]") -> None:
        self._pattern, self._folder, self._process = pattern, folder, process
        self.trues = 0

    def replay(self) -> float:
        """Nanoseconds an event."""
        nanoseconds, trues = self._ask("run").split()
        self.trues = int(trues)
        return int(nanoseconds) / (self._pattern.passes * self._pattern.events)

    def decisions(self) -> np.ndarray:
        """The result of each event."""
        self._ask("decide")
        return np.fromfile(self._folder / "decisions", np.bool_)

    def _ask(self, command: str) -> str:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the Java side ended with status {self._process.wait()} at {command!r}")
        return answer


@contextmanager
def java(pattern: Pattern, events: Events, class_path: str) -> Iterator[Theirs]:
    """A Java process of its own for each pattern, so that its compiler sees that pattern alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for field in ("times", "costs", "index"):
            getattr(events, field).astype("<i8").tofile(folder / field)
        numbers = map(str, (pattern.buckets, pattern.rate, pattern.initial, pattern.passes))
        command = ["java", *JVM_OPTIONS, "-cp", class_path, HARNESS.stem, str(folder), *numbers]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Theirs(pattern, folder, process)


def compile_harness() -> str:
    """The class path of the compiled harness and Pulsar's jar, which are made once."""
    jar = CACHE / f"pulsar-broker-{PULSAR}.jar"
    if not jar.exists():
        copy = [
            "mvn",
            "-q",
            "-B",
            "-Dstyle.color=never",
            "dependency:copy",
            f"-Dartifact={ARTIFACT}",
            f"-DoutputDirectory={CACHE}",
        ]
        subprocess.run(copy, check=True)
    subprocess.run(["javac", "-cp", str(jar), "-d", str(CACHE), str(HARNESS)], check=True)
    return os.pathsep.join((str(CACHE), str(jar)))


def compare(pattern: Pattern, class_path: str, repetitions: int, results: Results) -> bool:
    """Measure one pattern on both sides; whether all decisions were equal."""
    events = Events.of(pattern)
    ours = Ours(pattern, events)
    with java(pattern, events, class_path) as theirs:
        for _ in range(JVM_WARMUPS):
            theirs.replay()
        values = interleave({"ours": ours.replay, "theirs": theirs.replay}, repetitions)
        equal = np.array_equal(ours.decisions, theirs.decisions()) and int(ours.decisions.sum()) == theirs.trues
    results.measure(f"headgate: {pattern.name}", "ns per event", values["ours"])
    results.measure(f"Pulsar: {pattern.name}", "ns per event", values["theirs"])
    results.target(pattern.name, "x Pulsar", ratios(values["theirs"], values["ours"]), at_least=pattern.at_least)
    results.check(
        f"same decisions ({int(ours.decisions.sum()):,} of {pattern.events:,} true): {pattern.name}", passed=equal
    )
    return equal


def java_version() -> str:
    """The first line of `java -version`."""
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]


def main() -> int:
    """1 if any decision differed, else 0."""
    arguments = parser(__doc__).parse_args()
    class_path = compile_harness()
    with Results(
        "kernel_vs_pulsar",
        "Token bucket: kernel against Pulsar's own class",
        about=__doc__.split("\n\n")[1].replace("\n", " "),
        versions={"pulsar-broker": PULSAR, "java": java_version(), "java options": " ".join(JVM_OPTIONS)},
    ) as results:
        equal = [compare(pattern, class_path, arguments.repetitions, results) for pattern in PATTERNS]
        results.note(
            "The pattern decides. Inside the 16 ms resolution nothing refills and whole blocks of events are taken at "
            "once. A refill is a division; where the rate divides the period, divisions of different events overlap. "
            "Where it does not, each refill waits for the remainder of the one before, on both sides alike."
        )
    return 0 if all(equal) else 1


if __name__ == "__main__":
    raise SystemExit(main())
