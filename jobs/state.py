"""What a job's state holds as of the last complete batch: limiters of the throttle job, caches of the entry cache's.

One row a topic, broker or group with a limiter of publishes, a level of dispatches, a consumer that subscribes. Of
unloads, connections and IO threads, which are in the state, too, nothing is told. One row the cache of a broker.

./spark-submit.sh jobs/state.py --checkpoint output/demo/checkpoint
./spark-submit.sh jobs/state.py --checkpoint output/demo/checkpoint --partitions 16    # splits it, of a stopped job
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from headgate.options import Parser, positive
from headgate.places import check_checkpoint, sole_use
from headgate.report.state_screen import json_lines, state_lines
from headgate.spark.job import exit_status
from headgate.spark.session import spark_session
from headgate.spark.state import read_state, repartition


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, 2 with a message if there is no state to read, or none that can be split; 1 if Spark, a store or a
    disk failed.
    """
    return exit_status("state", partial(state, parsed(arguments)))


def state(options: argparse.Namespace) -> int:
    """Show the state, or split it."""
    check_checkpoint(options.checkpoint)
    if options.partitions is not None:
        with sole_use(options.checkpoint):
            sys.stderr.write(f"state: splitting {options.checkpoint}, which can take minutes ...\n")
            repartition(spark_session("headgate state"), options.checkpoint, options.partitions)
        sys.stdout.write(f"state: in {options.partitions} parts from the next start of the job on\n")
        return 0
    report = read_state(spark_session("headgate state"), options.checkpoint)
    lines = json_lines(report) if options.format == "json" else state_lines(report)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="state", description=__doc__)
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="of a throttle or entry cache job")
    parser.add_argument(
        "--partitions", type=positive, metavar="N", help="split the state into N parts; the job must be stopped"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
