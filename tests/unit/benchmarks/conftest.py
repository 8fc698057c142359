"""Benchmarks are programs in a folder of their own; what they consist of is imported from there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
