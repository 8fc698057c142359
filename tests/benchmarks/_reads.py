"""Notes when a reader of rg_usage has read up to which version: in this process, or in a throttle job.

    spark-submit.sh tests/benchmarks/_reads.py OPTIONS OF jobs/throttle.py

with HEADGATE_READS, the file to write to: a line a read, seconds since 1970 and the version.
"""

import os
import runpy
import time
from pathlib import Path
from typing import Any

from headgate.quota.tables.rg_usage import UsageReader

JOB = Path(__file__).parents[2] / "jobs" / "throttle.py"


def note_reads(file: Path) -> None:
    """From now on, of every reader in this process."""
    read = UsageReader.read

    def noted(reader: UsageReader, *arguments: Any) -> Any:
        found = read(reader, *arguments)
        with file.open("a") as notes:
            notes.write(f"{time.time()} {found.version}\n")
        return found

    UsageReader.read = noted  # type: ignore[method-assign]


def noted_reads(file: Path) -> list[tuple[float, int]]:
    """Time and version of each read, in order."""
    lines = (line.split() for line in file.read_text().splitlines())
    return [(float(at_s), int(version)) for at_s, version in lines]


if __name__ == "__main__":
    note_reads(Path(os.environ["HEADGATE_READS"]))
    runpy.run_path(str(JOB), run_name="__main__")
