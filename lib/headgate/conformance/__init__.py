"""Replay of vector files against the public core or its array form (the last section of each specification)."""

from headgate.conformance.report import Report, report_lines
from headgate.conformance.runner import replay

__all__ = ["Report", "replay", "report_lines"]
