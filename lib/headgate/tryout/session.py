"""Runs of conf folders over one trace: shown once, or again whenever a conf file is saved."""

import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Self

from headgate.conf import Conf
from headgate.engines.compiling import compiling_told
from headgate.engines.kernel_units import load_units, throttle_units
from headgate.engines.stops import STOPPED, WRONG, Stop, handled
from headgate.errors import AwayError, ConfError, HeadgateError
from headgate.places import claimed
from headgate.report.screen import terminal_console
from headgate.report.try_screen import TryScreen, is_mostly_bad, output_of
from headgate.rows.listing import STDIN
from headgate.trace.demo import DEMO_TRACE, demo_conf
from headgate.trace.write import write_trace
from headgate.tryout.batches import Trace
from headgate.tryout.conf_changes import conf_changes
from headgate.tryout.folders import Loaded, loaded
from headgate.tryout.inputs import Source
from headgate.tryout.trial import Trial, run_trial
from headgate.tryout.watch import Watched


class Session:
    """One call of the command. source: None for the bundled trace, which is there while the session is open.

    output: a new folder to keep the tables in, None: they are not kept. traffic: offered or admitted, of all confs.
    stop: ends a run after its batch.
    """

    def __init__(
        self,
        source: Source | None,
        folders: Sequence[str],
        output: str | None,
        traffic: str,
        stop: threading.Event,
    ) -> None:
        self._folders, self._output, self._traffic, self._stop = folders, output, traffic, stop
        self._screen = TryScreen(terminal_console())
        self._scratch = tempfile.TemporaryDirectory(prefix="headgate-try-")
        if source is None:
            trace = Path(self._scratch.name) / "trace"
            made = write_trace(DEMO_TRACE, trace, "parquet")
            self._screen.say(
                f"try: no PATH, so the bundled trace: {made.rows:,} rows of 5 tenants on 3 brokers, 2 minutes"
            )
            source = Source(str(trace), "parquet", is_demo=True)
        elif source.path == STDIN and len(folders) > 1:
            source = source._replace(path=self._copied_stdin())
        self._source, self._trace = source, Trace(source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def _copied_stdin(self) -> str:
        """A file with all of stdin, which is read once, for runs that read it each."""
        path = Path(self._scratch.name) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(path)

    def load_rules(self, confs: Mapping[str, Conf]) -> None:
        """Compile what the confs need, or load it from disk."""
        with compiling_told(_on_stderr):
            for conf in confs.values():
                operator = conf.settings.operator
                load_units(throttle_units(operator.kernel, shares=operator.group_limits == "shared"))

    def run(self, found: Loaded) -> int:
        """Try the confs and show what came of it; the exit status. Raises ConfError for wrong ones."""
        confs = right(found)
        self._warn(confs)
        self._keys = found.keys
        with claimed(self._output):
            self._trials = trials = self._tried(confs)
        if not any(trial.rows for trial in trials) and _is_whole(confs, trials):
            self._screen.in_vain(trials[0], self._trace.files, self._output)
            return WRONG
        if len(confs) == 1:
            self._screen.one(trials[0], self._output)
        else:
            self._screen.several(trials, conf_changes(self._keys[: len(trials)]), self._output)
        self._screen.empty_files(self._trace.empty_files)
        self._warn(confs)  # once more, where it is seen
        if _is_whole(confs, trials):
            return WRONG if any(map(is_mostly_bad, trials)) else 0
        self._screen.stopped([name for name in confs if name not in {trial.name for trial in trials}])
        return STOPPED

    def watch(self, found: Loaded, watched: Watched) -> int:
        """Try the confs, and again whenever a file is saved, until Ctrl-C; 0, or STOPPED before the first was through.

        Mistakes are shown, and do not end it.
        """
        status: int | None = None
        newest: Loaded | None = found
        while True:
            try:
                newest = newest or loaded(self._folders)
                status = self.run(newest) if status is None else self._again(newest)
            except HeadgateError as error:
                self._screen.say(f"\n{error}")
                if isinstance(error, AwayError):
                    watched.forget()
            if status == STOPPED or self._stop.is_set():
                break
            self._screen.say(f"\ntry: watching the conf files of {', '.join(self._folders)}; Ctrl-C ends")
            if not watched.saved(self._stop):
                break
            newest = None
        return STOPPED if status in {None, STOPPED} else 0

    def _again(self, found: Loaded) -> int:
        """Try those confs that say something else than before, and show what that changed; 0."""
        confs, keys = right(found), found.keys
        changed = {
            name: conf for (name, conf), was, now in zip(confs.items(), self._keys, keys, strict=True) if was != now
        }
        if not changed:
            self._screen.say("\nSaved; the conf files say the same as before.")
            return 0
        self._warn(changed)
        tried = self._tried(changed)
        if not _is_whole(changed, tried):
            self._screen.say("\nStopped before the end of the trace: what the edit changed is not known.")
            return 0
        by_name = {trial.name: trial for trial in tried}
        for trial, was, now in zip(self._trials, self._keys, keys, strict=True):
            if trial.name in by_name:
                self._screen.again(trial, by_name[trial.name], conf_changes([was, now]))
        self._trials = [by_name.get(trial.name, trial) for trial in self._trials]
        self._keys = keys
        return 0

    def _tried(self, confs: Mapping[str, Conf]) -> list[Trial]:
        """A trial of each conf; after a stop, of those that began before it."""
        trials: list[Trial] = []
        self.load_rules(confs)
        for name, conf in confs.items():
            if trials and self._stop.is_set():
                break
            meant = self._meant(conf)
            output = None if self._output is None else output_of(self._output, name, len(confs))
            trial = run_trial(name, meant, self._trace.batches(meant), output, self._stop, _on_stderr)
            trials.append(replace(trial, late=self._trace.behind))
            if self._trace.behind:
                self._screen.say(
                    f"\nwarning: {name}: {self._trace.behind:,} rows came more than trigger.interval_ms behind others, "
                    "so brokers did not share quotas as they would live, and figures of groups are wrong; put all rows "
                    "in one order of event_time, or use headgate replay, which does"
                )
        return trials

    def _meant(self, conf: Conf) -> Conf:
        conf = demo_conf(conf) if self._source.is_demo else conf
        operator = conf.settings.operator.model_copy(update={"traffic": self._traffic})
        return replace(conf, settings=conf.settings.model_copy(update={"operator": operator}))

    def _warn(self, confs: Mapping[str, Conf]) -> None:
        self._screen.warnings([f"{name}: {warning}" for name, conf in confs.items() for warning in conf.warnings])


@contextmanager
def ended_by_signals(stop: Stop) -> Iterator[None]:
    """`stop` is set by the first Ctrl-C, SIGTERM or terminal that closes while the block runs. A second Ctrl-C or
    SIGTERM ends the process at once; what it has in TMPDIR is removed.
    """

    def heed(number: int, frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.set()
            with suppress(OSError):  # of a pipe whose reader has heard the signal, too
                _on_stderr("stopping after this batch; Ctrl-C again ends at once")
        elif number != signal.SIGHUP:
            signal.default_int_handler(number, frame)

    with handled(heed):
        yield


def right(found: Loaded) -> Mapping[str, Conf]:
    """The confs. Raises ConfError for wrong ones."""
    if isinstance(found.confs, ConfError):
        raise found.confs
    return found.confs


def _is_whole(confs: Mapping[str, Conf], trials: Sequence[Trial]) -> bool:
    return len(trials) == len(confs) and all(trial.is_whole for trial in trials)


def _on_stderr(line: str) -> None:
    sys.stderr.write(f"try: {line}\n")
