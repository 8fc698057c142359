"""Starts and stops a standalone Spark cluster on this machine, with the pyspark of the Python that runs this file.

    python scripts/standalone_cluster.py start [--workers 2] [--cores 1]       prints the master's URL
    python scripts/standalone_cluster.py start --master spark://HOST:7077      workers alone, for a master elsewhere
    python scripts/standalone_cluster.py stop

`start` returns when the master has all workers; what runs already is kept, so it also brings a killed worker back.
Standard library only.
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import steps
from java import find_java
from steps import CACHE, SetupError

PATIENCE_S = 120
PAUSE_S = 0.2
PACKAGE = "org.apache.spark.deploy"


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 69 with a line that says what is missing."""
    options = parsed(arguments)
    try:
        Cluster(options).start() if options.action == "start" else stop(options.folder)
    except SetupError as error:
        steps.say(f"headgate: {error}")
        return steps.UNAVAILABLE
    return 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="on this machine; default 2")
    parser.add_argument("--cores", type=int, default=1, metavar="N", help="of a worker; default 1")
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="of a worker's executors; default 2g")
    parser.add_argument("--host", default="127.0.0.1", metavar="NAME", help="of this machine; default 127.0.0.1")
    parser.add_argument("--port", type=int, default=7077, metavar="N", help="of the master; default 7077")
    parser.add_argument("--web-port", type=int, default=8080, metavar="N", help="of the master's page; default 8080")
    parser.add_argument("--master", metavar="URL", help="of a master that runs elsewhere: start workers alone")
    parser.add_argument(
        "--folder", type=Path, default=CACHE / "cluster", metavar="DIR", help="logs, pids, files of workers"
    )
    return parser.parse_args(arguments)


class Cluster:
    """What `start` is to bring about."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._folder: Path = options.folder.resolve()
        self._url = options.master or f"spark://{options.host}:{options.port}"

    def start(self) -> None:
        """Raises SetupError where a port is taken, Java or pyspark is missing, or a process ends or is too slow."""
        self._environment = spark_environment(self._options.host)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"--folder: {self._folder} cannot be made: {error.strerror}; give another") from error
        if not os.access(self._folder, os.W_OK):
            raise SetupError(f"--folder: {self._folder} cannot be written by this user; give another")
        if self._options.master is None:
            self._start_master()
        names = [f"worker-{number}" for number in range(1, self._options.workers + 1)]
        for name in names:
            self._start_worker(name)
        for name in names:
            await_that(partial(self._is_registered, name), self._folder / f"{name}.log")
        sys.stdout.write(f"{self._url}\n")

    def _start_master(self) -> None:
        host, port, web_port = self._options.host, self._options.port, self._options.web_port
        if running(self._folder / "master.pid") is None:
            for option, number in (("--port", port), ("--web-port", web_port)):
                check_free(host, number, option)
        self._spawn("master", "master.Master", "--host", host, "--port", str(port), "--webui-port", str(web_port))
        await_that(lambda: asked(host, web_port).get("url") == self._url, self._folder / "master.log")

    def _start_worker(self, name: str) -> None:
        size = ("--cores", str(self._options.cores), "--memory", self._options.memory)
        place = ("--host", self._options.host, "--webui-port", "0", "--work-dir", str(self._folder / name))
        self._spawn(name, "worker.Worker", *size, *place, self._url)

    def _is_registered(self, name: str) -> bool:
        """As the master says; of one elsewhere, which may have no page here, the worker's own log has to do."""
        pid, log = running(self._folder / f"{name}.pid"), self._folder / f"{name}.log"
        if pid is None:
            raise ended(log)
        if "Successfully registered with master" not in log.read_text(errors="replace"):
            return False
        if self._options.master is not None:
            return True
        return bool(asked(self._options.host, self._options.web_port).get("aliveworkers", 0) >= self._options.workers)

    def _spawn(self, name: str, program: str, *arguments: str) -> None:
        """Unless it runs. Its pid and its log are in the folder."""
        pid_file, log = self._folder / f"{name}.pid", self._folder / f"{name}.log"
        if running(pid_file) is not None:
            return
        command = [f"{self._environment['SPARK_HOME']}/bin/spark-class", f"{PACKAGE}.{program}", *arguments]
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        pid_file.write_text(str(process.pid))


def spark_environment(host: str) -> dict[str, str]:
    """Of master and workers: pyspark's own Spark, no settings of the machine's."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupError(f"{sys.executable} has no pyspark: run this with a Python in which headgate is installed")
    home = Path(found.origin).parent
    empty = {"SPARK_CONF_DIR": str(home / "no-conf"), "SPARK_NO_DAEMONIZE": "1"}
    java = {"JAVA_HOME": str(find_java().home)}
    return os.environ | java | empty | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host}


def check_free(host: str, port: int, option: str) -> None:
    """Raise SetupError where something listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SetupError(
                f"{option}: {host}:{port} cannot be used: {error.strerror}; end what is there, or give another"
            ) from error


def asked(host: str, web_port: int) -> dict[str, Any]:
    """What the master says of itself and its workers; nothing while it does not answer."""
    with suppress(OSError, ValueError), urlopen(f"http://{host}:{web_port}/json/", timeout=5) as answer:
        return dict(json.load(answer))
    return {}


def await_that(reached: Callable[[], bool], log: Path) -> None:
    """Raise SetupError, with what the log says, where it takes too long or the process has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        if running(log.with_suffix(".pid")) is None:
            raise ended(log)
        if time.monotonic() > deadline:
            raise SetupError(
                f"{log.stem} is not ready after {PATIENCE_S} s; its log is {log}. One that was started with other "
                "options has to be stopped first"
            )
        time.sleep(PAUSE_S)


def ended(log: Path) -> SetupError:
    last = "\n".join(f"  | {line}" for line in steps.telling_lines(log.read_text(errors="replace")))
    return SetupError(f"{log.stem} ended, its log is {log}:\n{last}")


def running(pid_file: Path) -> int | None:
    """The process that the file names, if it is still one of Spark's."""
    with suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        shown = subprocess.run(
            ["ps", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
        if PACKAGE in shown and not shown.startswith("Z"):
            return pid
    return None


def stop(folder: Path) -> None:
    """Workers first. What does not end is killed."""
    for pid_file in sorted(folder.glob("*.pid"), reverse=True):
        deadline = time.monotonic() + PATIENCE_S / 4
        while (pid := running(pid_file)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
            time.sleep(PAUSE_S)
        pid_file.unlink()


if __name__ == "__main__":
    sys.exit(main())
