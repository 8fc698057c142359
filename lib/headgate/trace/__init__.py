"""Reproducible traces of publish events: the same spec gives the same rows, on any machine and for any number of files.

Free of Spark: numpy draws, pyarrow holds and writes. docs/traces.md has the model.
"""

from headgate.trace.events import SCHEMA, TraceGenerator, generate_file, generate_files
from headgate.trace.options import add_options, spec_from
from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary
from headgate.trace.write import write_trace

__all__ = [
    "SCHEMA",
    "TraceGenerator",
    "TraceSpec",
    "TraceSummary",
    "add_options",
    "generate_file",
    "generate_files",
    "spec_from",
    "write_trace",
]
