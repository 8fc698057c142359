"""Parts of headgate that a supervisor keeps running, traffic that counts what it sends, and faults that befall them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from statistics import fmean, linear_regression
from typing import NamedTuple, Self

import confluent_kafka

ROOT = Path(__file__).parents[1]
RESTART_S = 2
BROKERS, TOPICS = 8, 24
GOOD_PER_S, MALFORMED_PER_S = 200, 170
TICK_S = 0.1
WHOLE_HEAP = "-Xms1g -Xmx1g -XX:+AlwaysPreTouch"
"""Java's heap is resident from the start."""
GIVEN_BACK = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Allocators, that of delta-rs and glibc's, give back at once what is free: kept, it would look like growth."""
WINDOW_S = 120
SHARES = {"between batches": 0.1, "half of the time": 0.5}
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Held(NamedTuple):
    """Resident memory of a part, with all processes that come of it. heap: of Java's what is in use after a collection.
    code: what Java has compiled, which has a bound. java: of Java all else, but for memory that its allocator has free.
    others: of processes without Java.
    """

    heap_mb: float
    code_mb: float
    java_mb: float
    others_mb: float

    def __str__(self) -> str:
        of_java = f"heap {self.heap_mb:.1f}, code {self.code_mb:.1f}, Java's other {self.java_mb:.1f}, "
        return f"{of_java if self.java_mb else ''}others {self.others_mb:.1f}"


class Sample(NamedTuple):
    """What a part holds at a time; start: how often it has started."""

    at_s: float
    start: int
    held: Held


class Slope(NamedTuple):
    """By least squares, and its standard error, both in MB an hour."""

    mb_per_h: float
    error_mb_per_h: float

    def is_above(self, mb_per_h: float) -> bool:
        """Whether it is by more than chance."""
        return self.mb_per_h - 2 * self.error_mb_per_h > mb_per_h

    def __str__(self) -> str:
        return f"{self.mb_per_h:.1f} MB/h (standard error {self.error_mb_per_h:.1f})"


class Part:
    """A command that is started again whenever it ends, as a service manager does; its screen goes to a file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name, self.screen = name, folder / f"{name}.log"
        self.starts, self.samples = 0, list[Sample]()
        self.command = list(command)
        self._is_over = self._is_held = False
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.kill(signal.SIGTERM)
        self._thread.join(60)
        self.kill()
        self._thread.join()

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """The whole process group at once."""
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, by)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Killed, and not started again while the block runs."""
        with self._starting:
            self._is_held = True
        self.kill()
        if self._process is not None:
            self._process.wait()
        try:
            yield
        finally:
            self._is_held = False

    def said_since(self, position: int) -> str:
        """What is on its screen from there on."""
        return self.screen.read_bytes()[position:].decode(errors="replace") if self.screen.exists() else ""

    @property
    def position(self) -> int:
        """How much is on its screen."""
        return self.screen.stat().st_size if self.screen.exists() else 0

    def sample(self) -> None:
        """Take its memory down."""
        process = self._process
        if process is not None and process.poll() is None:
            self.samples.append(Sample(time.monotonic(), self.starts, _held(process.pid)))

    def held_in_windows(self, settling_s: float, share: float) -> list[Sample]:
        """In each whole WINDOW_S after the last start that was sampled, once settled, what it held in so many samples
        or held less. A low share is what it keeps between batches, a half is batches under way, too; children just
        forked, and processes that were missed, are neither.
        """
        since = [sample for sample in self.samples if sample.start == self.samples[-1].start]
        late = [sample for sample in since if sample.at_s - since[0].at_s >= settling_s]
        windows = [list(one) for _, one in groupby(late, lambda sample: int((sample.at_s - late[0].at_s) / WINDOW_S))]
        if windows and late[-1].at_s - windows[-1][0].at_s < WINDOW_S * 0.9:
            windows.pop()
        return [one[0]._replace(held=_at_share([sample.held for sample in one], share)) for one in windows]

    def slopes_mb_per_h(self, settling_s: float) -> dict[str, Slope] | None:
        """How fast these grew, at SHARES; None: not for as long as it took to settle. What Java has compiled is left
        out.
        """
        found = {name: self.held_in_windows(settling_s, share) for name, share in SHARES.items()}
        if any(len(windows) < max(int(settling_s / WINDOW_S), 3) for windows in found.values()):
            return None
        return {name: _slope(windows) for name, windows in found.items()}

    def _supervise(self) -> None:
        while not self._is_over:
            process = self._start()
            if process is None:
                time.sleep(TICK_S)
                continue
            process.wait()
            until_s = time.monotonic() + RESTART_S
            while not self._is_over and time.monotonic() < until_s:
                time.sleep(TICK_S)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """None while it is held."""
        with self._starting, self.screen.open("ab") as screen:
            if self._is_held:
                return None
            self.starts += 1
            options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {WHOLE_HEAP}"
            environment = os.environ | GIVEN_BACK | {"PYTHONPATH": str(ROOT / "lib"), "SPARK_SUBMIT_OPTS": options}
            self._process = subprocess.Popen(
                self.command, cwd=ROOT, env=environment, stdout=screen, stderr=screen, start_new_session=True
            )
            return self._process


def headgate(*arguments: str) -> list[str]:
    """The command of this checkout."""
    return [sys.executable, "-m", "headgate", *arguments]


def _held(pid: int) -> Held:
    """Of the process and all below it: workers of Spark have groups of their own."""
    names, parents = dict[int, str](), dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().rpartition(") ")
            one = int(stat.parent.name)
            names[one], parents[one] = name.partition("(")[2], int(rest.split()[1])

    def is_below(one: int) -> bool:
        return one == pid or (one in parents and is_below(parents[one]))

    heap_mb = code_mb = java_mb = others_mb = 0.0
    for one in filter(is_below, names):
        if names[one] == "java":
            total_mb, used_mb, compiled_mb = _java_mb(one)
            heap_mb, code_mb = heap_mb + used_mb, code_mb + compiled_mb
            java_mb += _resident_mb(one) - total_mb - compiled_mb
        elif not _runs_java(one):  # it would be Java's memory once more, in a child just forked
            others_mb += _resident_mb(one)
    return Held(heap_mb, code_mb, java_mb, others_mb)


def _runs_java(pid: int) -> bool:
    """False: it may have ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    return False


def _java_mb(pid: int) -> tuple[float, float, float]:
    """All of Java's heap, which has to be resident (WHOLE_HEAP), what of it is in use after a collection, and what Java
    has compiled. What its allocator keeps for later is given back before.
    """
    commands = ("GC.run", "System.trim_native_heap", "GC.heap_info", "Compiler.codecache")
    words = ["jcmd", str(pid), "\n".join(commands)]
    return parsed_mb(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def parsed_mb(told: str) -> tuple[float, float, float]:
    """The same of what Java tells, with the serial collector or G1, and whichever compiler."""
    parts = re.findall(r" total (\d+)K, used (\d+)K", told)
    assert parts, told
    compiled_kb = sum(map(int, re.findall(r"^Code(?:Heap|Cache)\b.* used=(\d+)Kb", told, re.MULTILINE)))
    return *(sum(map(int, of_all)) / 2**10 for of_all in zip(*parts, strict=True)), compiled_kb / 2**10


def _resident_mb(pid: int) -> float:
    """0: it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    return 0.0


def _at_share(held: Sequence[Held], share: float) -> Held:
    """Of each kind of memory."""
    return Held(*(sorted(kind)[int(len(kind) * share)] for kind in zip(*held, strict=True)))


def _slope(samples: Sequence[Sample]) -> Slope:
    hours, held_mb = ([one.at_s / 3600 for one in samples], [sum(one.held) - one.held.code_mb for one in samples])
    fitted, offset = linear_regression(hours, held_mb)
    left = sum((mb - fitted * hour - offset) ** 2 for hour, mb in zip(hours, held_mb, strict=True))
    spread = sum((hour - fmean(hours)) ** 2 for hour in hours)
    return Slope(fitted, (left / (len(samples) - 2) / spread) ** 0.5)


class Traffic:
    """Publishes and malformed rows to a topic of Kafka, so many a second.

    sent: by topic the publishes, messages and bytes that Kafka has, once each. off_s: by broker how wrong its clock is.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.sent: dict[str, Counter[str]] = {f"persistent://acme/shop/t-{n}": Counter() for n in range(TOPICS)}
        self.malformed = 0
        self.off_s = dict.fromkeys(range(BROKERS), 0)
        self._topic, self._seq, self._is_over = topic, 0, threading.Event()
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 0, "linger.ms": 20}
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """All that was sent is with Kafka then."""
        self._is_over.set()
        self._thread.join()
        self._producer.flush()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._is_over.wait(max(due_s - time.monotonic(), 0)):
            due_s = max(due_s + TICK_S, time.monotonic() - 1)
            for _ in range(int(GOOD_PER_S * TICK_S)):
                self._publish()
            for _ in range(int(MALFORMED_PER_S * TICK_S)):
                self._send(f'{{"event_time": "never", "seq": {self._seq}')
                self.malformed += 1
            self._producer.poll(0)

    def _publish(self) -> None:
        self._seq += 1
        broker, topic = self._seq % BROKERS, f"persistent://acme/shop/t-{self._seq % TOPICS}"
        at = datetime.now(UTC) + timedelta(seconds=self.off_s[broker])
        amounts = {"messages": 1 + self._seq % 3, "bytes": 100}
        row = {
            "event_time": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "seq": self._seq,
            "broker": f"broker-{broker}",
            "topic": topic,
            "kind": "publish",
            "producer": f"p-{self._seq % 5}",
            "connection": f"c-{self._seq % 5}",
        }
        self._send(json.dumps(row | amounts))
        self.sent[topic].update(amounts | {"publishes": 1})

    def _send(self, line: str) -> None:
        while True:
            try:
                return self._producer.produce(self._topic, line.encode())
            except BufferError:
                self._producer.poll(TICK_S)


class Disk:
    """A small disk of its own, a tmpfs, that can be filled up and be read-only. Needs root."""

    def __init__(self, folder: Path, size: str = "2g") -> None:
        self.folder, self._size = folder, size

    def __enter__(self) -> Self:
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._size}", "tmpfs", self.folder], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", self.folder], check=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte is free while the block runs."""
        filler = self.folder / "filler"
        with suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(2**20))
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Nothing can be written while the block runs. What is being written just then has to be through first."""
        while subprocess.run(["mount", "-o", "remount,ro", self.folder], capture_output=True, check=False).returncode:
            time.sleep(TICK_S)
        try:
            yield
        finally:
            subprocess.run(["mount", "-o", "remount,rw", self.folder], check=True)


def killed_and_restarted(pid_file: Path, away_s: float) -> None:
    """Do kill -9 to the process of the file, and the same command again after `away_s`."""
    folder = Path(f"/proc/{pid_file.read_text().strip()}")
    command = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    environment = dict(one.split(b"=", 1) for one in (folder / "environ").read_bytes().split(b"\0") if b"=" in one)
    where = (folder / "cwd").readlink()
    os.kill(int(folder.name), signal.SIGKILL)
    time.sleep(away_s)
    start = '"$@" >>"$0" 2>&1 </dev/null & echo $!'  # not a child of this process, which nobody would wait for
    words = ["sh", "-c", start, pid_file.with_name("restarted.log"), *command]
    again = subprocess.run(
        words, env=environment, cwd=where, stdout=subprocess.PIPE, start_new_session=True, check=True
    )
    pid_file.write_bytes(again.stdout)


@contextmanager
def torn(folder: Path) -> Iterator[Path]:
    """The newest file of a folder is half as long while the block runs."""
    files = [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    kept = newest.read_bytes()
    newest.write_bytes(kept[: len(kept) // 2])
    try:
        yield newest
    finally:
        newest.write_bytes(kept)


@contextmanager
def missing(log: Path) -> Iterator[Path]:
    """The last entry but one of a Delta log is not there while the block runs, nor a checkpoint that replaces it."""
    entry = sorted(log.glob("*.json"))[-2]
    checkpoints = [one for one in log.glob("*.checkpoint*.parquet") if one.name >= entry.stem]
    asides = [(one, log.parent.parent / f"aside-{one.name}") for one in (entry, *checkpoints)]
    for one, aside in asides:
        shutil.move(one, aside)
    try:
        yield entry
    finally:
        for one, aside in asides:
            shutil.move(aside, one)


class Fault(NamedTuple):
    """What happens to a part. words: by which its screen names it, None: it cannot. metric: an expression of Prometheus
    that gives a number then; SINCE in it is the time since it began.
    """

    name: str
    part: Part
    befall: Callable[[], object]
    words: str | None
    metric: str
