"""The bundled trace of the main job, made anew with every run, and how it is taken in."""

import shutil
from dataclasses import replace
from pathlib import Path

from headgate.conf import Conf
from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary
from headgate.trace.write import write_trace

DEMO = Path("output/demo")
DEMO_TRACE = TraceSpec(moves=1, files=24)
"""Two minutes of three brokers and five tenants: `hooli` floods, the largest topic of `globex` changes brokers."""


def write_demo() -> TraceSummary:
    """What an earlier run left in its place is removed."""
    shutil.rmtree(DEMO, ignore_errors=True)
    return write_trace(DEMO_TRACE, DEMO / "trace", "json")


def file_by_file(conf: Conf) -> Conf:
    """The conf for batches of one file each, as if the trace came live: shares follow from batch to batch."""
    source = conf.settings.input.model_copy(update={"max_files_per_trigger": 1})
    return replace(conf, settings=conf.settings.model_copy(update={"input": source}))
