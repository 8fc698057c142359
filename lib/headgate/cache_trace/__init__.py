"""Public traces of cache requests as cache events, so that policies can be compared with published figures.

Free of Spark: numpy and pyarrow read. docs/traces.md has the layouts and where policies differ.
"""

from headgate.cache_trace.convert import LARGEST_BYTES, convert
from headgate.cache_trace.layout import FORMATS, Layout
from headgate.cache_trace.reading import Requests, read_requests

__all__ = ["FORMATS", "LARGEST_BYTES", "Layout", "Requests", "convert", "read_requests"]
