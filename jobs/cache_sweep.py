"""Compare entry caches on Spark: `headgate sweep` for traces that one machine cannot hold.

Options, tables and report are the same: docs/sizing.md.
"""

import sys
from collections.abc import Sequence

from headgate.options import Parser
from headgate.report.sweep.command import SweepRunner, sweep
from headgate.sizing.arguments import DESCRIPTION, add_sweep_arguments
from headgate.sizing.asked import asked
from headgate.spark.cache_sweep import SparkSweep
from headgate.spark.job import status_of_whole
from headgate.spark.session import spark_session

SPARK = SweepRunner(
    "cache_sweep",
    lambda: SparkSweep(spark_session("headgate cache_sweep")),
    "starting Spark (headgate sweep, with the same options, answers sooner on up to some million rows), reading",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when the report is written; 1 if Spark, a store or a disk failed, 2 for wrong options, conf or
    input, 3 if stopped.
    """
    parser = Parser(prog="cache_sweep", description=DESCRIPTION)
    add_sweep_arguments(parser)
    return status_of_whole("cache_sweep", lambda: sweep(asked(parser.parse_args(arguments)), SPARK))


if __name__ == "__main__":
    sys.exit(main())
