"""Jobs of either engine behind one face: each takes an input that is there to its end, and leaves its tables."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.cache.events.parse import parse_cache_events
from headgate.cache.schemas import INPUT as CACHE_INPUT
from headgate.cache.schemas import OF_CACHE
from headgate.conf import Conf
from headgate.engines.local_throttle import LocalThrottle
from headgate.engines.tables import BufferedTables
from headgate.protocol.marks import COLUMNS as MARK_COLUMNS
from headgate.protocol.parse import parse_inputs
from headgate.protocol.schemas import INPUTS, OF_PROTOCOL
from headgate.rows.files import input_files, parsed_files
from headgate.rows.kinds import INPUT
from headgate.rows.traffic import Parsed, parse_traffic
from headgate.spark.entry_cache import CacheJob, CacheRun
from headgate.spark.protocol import ProtocolJob, ProtocolRun
from headgate.spark.state import read_state
from headgate.throttle.state_report import state_report
from headgate.throttle.tables import SCHEMAS, throttle_tables
from integration.runs import Run, settings
from local_jobs import LocalCache, LocalProtocol


class Done(NamedTuple):
    """A throttle job that came to its end. batches: what on_batch heard. state: its limiters (state_report.REPORT)."""

    output: Path
    batches: list[Any]
    state: Callable[[], pa.Table]


class Engine(Protocol):
    """Batches are of `max_files_per_trigger` files; a Delta table may come in one. Tables are under `output`.

    partitions: over how many tasks the keys of a batch are spread.
    """

    name: str

    def throttle(
        self, conf: Conf, trace: Path, output: Path, format_: str = "json", *, partitions: int = 2
    ) -> Done: ...
    def cache(self, conf: Conf, events: Path, output: Path, format_: str = "json") -> list[Any]: ...
    def protocol(self, conf: Conf, output: Path, inputs: Path | None = None) -> None: ...


@dataclass(frozen=True)
class OnSpark:
    """The jobs, with --once, in the session of the tests, which `session` gives."""

    session: Callable[[], SparkSession]
    name = "spark"

    @property
    def spark(self) -> SparkSession:
        return self.session()

    def throttle(self, conf: Conf, trace: Path, output: Path, format_: str = "json", *, partitions: int = 2) -> Done:
        with settings(self.spark, spark__sql__shuffle__partitions=partitions):
            done = Run(self.spark, conf, trace, output, format_).to_end()
        return Done(output, done.batches, lambda: read_state(self.spark, str(output / "checkpoint")))

    def cache(self, conf: Conf, events: Path, output: Path, format_: str = "json") -> list[Any]:
        heard: list[Any] = []
        job = CacheJob(str(events), str(output), str(output / "checkpoint"), format_, evictions=True, once=True)
        assert CacheRun(self.spark, job, conf, heard.append, Event()).run()
        return heard

    def protocol(self, conf: Conf, output: Path, inputs: Path | None = None) -> None:
        input_ = None if inputs is None else str(inputs)
        job = ProtocolJob(str(output), str(output / "checkpoint"), input_, once=True)
        assert ProtocolRun(self.spark, job, conf, lambda _: None, Event()).run()


@dataclass(frozen=True)
class Local:
    """The local engine, hostile: `seed` shuffles keys and blocks, and state goes through its codec between batches."""

    seed: int
    name = "local"

    def throttle(self, conf: Conf, trace: Path, output: Path, format_: str = "json", *, partitions: int = 2) -> Done:
        heard: list[Any] = []
        disorder = random.Random(self.seed + partitions)
        run = LocalThrottle(conf, BufferedTables(output, SCHEMAS), heard.append, str(output), disorder)
        for batch in _batches(conf, trace, format_, INPUT, partial(parse_traffic, settings=conf.settings.input)):
            run.take(batch)
        run.end()
        return Done(output, heard, lambda: _state_of(run))

    def cache(self, conf: Conf, events: Path, output: Path, format_: str = "json") -> list[Any]:
        heard: list[Any] = []
        disorder = random.Random(self.seed)
        run = LocalCache(conf, BufferedTables(output, OF_CACHE), heard.append, evictions=True, disorder=disorder)
        parse = partial(parse_cache_events, settings=conf.settings.input)
        for batch in _batches(conf, events, format_, CACHE_INPUT, parse):
            run.take(batch)
        run.end()
        return heard

    def protocol(self, conf: Conf, output: Path, inputs: Path | None = None) -> None:
        """Of inputs and of marks, one batch."""
        marks = throttle_tables(output).read("marks", MARK_COLUMNS)
        run = LocalProtocol(
            conf,
            BufferedTables(output, OF_PROTOCOL),
            lambda _: None,
            has_inputs=inputs is not None,
            follows_marks=True,
            disorder=random.Random(self.seed),
        )
        parse = partial(parse_inputs, until_ms=int(conf.settings.input.event_time_until.timestamp() * 1000))
        files = [] if inputs is None else input_files(str(inputs), "delta")
        run.take(parsed_files(files, "delta", INPUTS, parse), marks.to_batches())
        run.end()


def _batches(conf: Conf, folder: Path, format_: str, shape: pa.Schema, parse: Any) -> Iterator[list[Parsed]]:
    files, most = input_files(str(folder), format_), conf.settings.input.max_files_per_trigger
    for first in range(0, len(files), most):
        yield list(parsed_files(files[first : first + most], format_, shape, parse))


def _state_of(run: LocalThrottle) -> pa.Table:
    engine = run._engine
    codec = engine._operator.codec
    return state_report((codec.version, codec.encode(state)) for state in engine._states.values())
