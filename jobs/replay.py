"""Replay recorded traffic under other limits, on Spark: `headgate replay` for traces that one machine cannot hold.

Options, tables and report are the same: docs/replay.md.
"""

import sys
from collections.abc import Sequence
from functools import partial

from headgate.options import Parser
from headgate.replay.arguments import DESCRIPTION, add_replay_arguments
from headgate.replay.asked import asked
from headgate.report.replay.command import ReplayEngine, replay
from headgate.spark.job import status_of_whole
from headgate.spark.replay import run_replay
from headgate.spark.session import spark_session

SPARK = ReplayEngine(
    lambda: partial(run_replay, spark_session("headgate replay")),
    "starting Spark (headgate replay, with the same options, answers sooner on up to some million rows), reading",
    ", with Spark's start",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when the report is written; 1 if Spark, a store or a disk failed, 2 for wrong options, conf or
    input, 3 if stopped.
    """
    parser = Parser(prog="replay", description=DESCRIPTION)
    add_replay_arguments(parser)
    return status_of_whole("replay", lambda: replay(asked(parser.parse_args(arguments)), SPARK))


if __name__ == "__main__":
    sys.exit(main())
