"""`headgate demo`: from its start to its end by a signal."""

import argparse
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import headgate
from headgate.demo.traffic import feed
from headgate.errors import InputError
from headgate.hosts import listening
from headgate.places import check_writable, sole_use
from headgate.service.arguments import add_serve_arguments
from headgate.service.command import serve

DEMO = Path("output/live-demo")
ROOT = Path(headgate.__file__).resolve().parents[2]
_TRAFFIC = re.compile(r"^traffic = .*$", re.MULTILINE)
_LAST_BATCH_S = 60
"""So long the job may take to end its batch."""


def demo(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Make traffic, run the throttle job on it and serve the page, until SIGTERM or Ctrl-C. Raises HeadgateError.

    What an earlier run left is removed. The job has its limits from conf/, and its screen goes to a file.
    """
    launcher = ROOT / "spark-submit.sh"
    if not launcher.exists():
        raise InputError(
            f"headgate demo: {launcher} is not there; it is run in a checkout, where jobs and conf are: clone the "
            "repository, or start jobs/throttle.py and headgate serve by yourself"
        )
    check_writable(str(DEMO))
    if arguments.port:  # before anything is begun
        listening("127.0.0.1", arguments.port, "--port").close()
    with sole_use(str(DEMO.resolve())):
        return _run(arguments, launcher, tell)


def _run(arguments: argparse.Namespace, launcher: Path, tell: Callable[[str], None]) -> int:
    shutil.rmtree(DEMO, ignore_errors=True)
    tell(f"demo: traffic of 5 tenants on 3 brokers, as if it came now, into {DEMO}/traffic")
    with _traffic(), _job(launcher, _conf(), tell):
        tell("demo: the page fills in about a minute, when the first batch is through; Ctrl-C ends all")
        return serve(_serving(arguments), tell)


def _conf() -> Path:
    """conf/ with rows taken as offered: what clients want to send."""
    folder = DEMO / "conf"
    shutil.copytree(ROOT / "conf", folder)
    settings = folder / "headgate.toml"
    settings.write_text(_TRAFFIC.sub('traffic = "offered"', settings.read_text("utf-8"), count=1), "utf-8")
    return folder


def _serving(arguments: argparse.Namespace) -> argparse.Namespace:
    """Arguments of headgate serve."""
    parser = argparse.ArgumentParser()
    add_serve_arguments(parser)
    return parser.parse_args([str(DEMO / "tables"), "--port", str(arguments.port)])


@contextmanager
def _traffic() -> Iterator[None]:
    stop = Event()
    thread = Thread(target=feed, args=(DEMO / "traffic", stop), name="traffic")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _job(launcher: Path, conf: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Ended with SIGTERM, which lets it finish its batch; killed if that takes too long."""
    log = DEMO / "throttle.log"
    command = [
        *(str(launcher), str(ROOT / "jobs" / "throttle.py"), "--input", f"{DEMO}/traffic", "--format", "json"),
        *("--output", f"{DEMO}/tables", "--conf-dir", str(conf)),
    ]
    tell(f"demo: jobs/throttle.py starts; its screen is in {log}")
    with log.open("wb") as screen:
        job: subprocess.Popen[bytes] = subprocess.Popen(command, stdout=screen, stderr=screen, start_new_session=True)
        is_stopped = Event()

        def watch() -> None:
            """Say so if the job ends by itself."""
            job.wait()
            if not is_stopped.is_set():
                tell(f"demo: the job has ended; {log} says why")

        Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            is_stopped.set()
            job.terminate()
            try:
                job.wait(_LAST_BATCH_S)
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
