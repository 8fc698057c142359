"""The bundled trace of the main job, made anew with every run, and how it is taken in."""

import shutil
from dataclasses import replace
from pathlib import Path

from headgate.conf import Conf
from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary
from headgate.trace.write import write_trace

DEMO = Path("output/demo")
PUBLISHES = TraceSpec(moves=1, files=20)
"""Two minutes of three brokers and five tenants: `hooli` floods, the largest topic of `globex` changes brokers."""
DEMO_TRACE = replace(
    PUBLISHES, events=75_000, dispatch_share=0.14, subscribe_share=0.02, unload_share=0.0008, connection_share=0.035
)
"""The same with rows of every kind; four of five are publishes."""


def write_demo() -> TraceSummary:
    """What an earlier run left in its place is removed."""
    shutil.rmtree(DEMO, ignore_errors=True)
    return write_trace(DEMO_TRACE, DEMO / "trace", "json")


def demo_conf(conf: Conf) -> Conf:
    """The conf for the bundled trace: its rows are what clients want to send, and come in a file a batch, as if live.

    So shares of quotas follow the traffic from batch to batch.
    """
    settings = conf.settings
    changed = {
        "input": settings.input.model_copy(update={"max_files_per_trigger": 1}),
        "operator": settings.operator.model_copy(update={"traffic": "offered"}),
    }
    return replace(conf, settings=settings.model_copy(update=changed))
