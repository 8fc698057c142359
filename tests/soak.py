"""Parts of headgate that a supervisor keeps running, traffic that counts what it sends, and faults that befall them."""

import json
import os
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
from pathlib import Path
from typing import NamedTuple, Self

import confluent_kafka

from soak_memory import WHOLE_HEAP, Sample, held_by

ROOT = Path(__file__).parents[1]
RESTART_S = 2
BROKERS, TOPICS = 8, 24
GOOD_PER_S, MALFORMED_PER_S = 200, 170
TICK_S = 0.1
GIVEN_BACK = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Allocators, that of delta-rs and glibc's, give back at once what is free: kept, it would look like growth."""


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
            self.samples.append(Sample(time.monotonic(), self.starts, held_by(process.pid)))

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
