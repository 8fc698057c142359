"""The bundled trace of the main job, made anew with every run."""

import shutil
from pathlib import Path

from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary
from headgate.trace.write import write_trace

DEMO = Path("output/demo")


def write_demo() -> TraceSummary:
    """What an earlier run left in its place is removed."""
    shutil.rmtree(DEMO, ignore_errors=True)
    return write_trace(TraceSpec(), DEMO / "trace", "json")
