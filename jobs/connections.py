"""When was each connection read, what kept it from being read, and who was paused with whom?

Follows the table `marks` of a throttle job, live or as it is. See docs/operations.md for running it, and
docs/tables.md for what it writes.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from headgate.conf import load_conf
from headgate.engines.stops import Stop
from headgate.metrics import serving, url_of
from headgate.options import Parser, port
from headgate.places import check_folders, sole_use
from headgate.quota.tables.topic_tables import output_of
from headgate.report.screen import Screen, terminal_console
from headgate.spark.connections import ConnectionsJob, ConnectionsResult, ConnectionsRun
from headgate.spark.job import ended, exit_status, heed_signals, stop_asked
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

DEFAULT_OUTPUT = "output/throttle"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 after the end of the marks, or a stop without --once; STOPPED for a stop of --once.

    1 if Spark, a store or a disk failed, 2 for wrong options, conf or output.
    """
    stop = stop_asked()
    options = parsed(arguments)
    return exit_status("connections", partial(connections, options, stop))


def connections(options: argparse.Namespace, stop: Stop) -> int:
    screen = Screen(terminal_console(), "connections")
    output = options.output if options.broker is None else output_of(options.output, options.broker)
    checkpoint = options.checkpoint or f"{output}/connections-checkpoint"
    check_folders(output, checkpoint)
    settings = load_conf(options.conf_dir).settings
    hours = settings.state.silent_hours, settings.tables.kept_hours
    job = ConnectionsJob(output, checkpoint, options.once, settings.trigger.interval_ms, *hours)
    metrics_at = settings.metrics.model_copy(update={"port": options.metrics_port})
    with sole_use(checkpoint), sole_use(f"{output}/connections"), serving(metrics_at) as metrics:
        if metrics is not None:
            screen.say(f"connections: metrics at {url_of(metrics_at)}")
        screen.say(f"connections: starting Spark for the marks under {output}")
        spark = spark_session("headgate connections")
        heed_signals(stop)
        run = ConnectionsRun(spark, job, partial(tell, screen), stop, metrics=metrics)
        used_up = run.run()
        screen.say(f"Tables (Delta): {output}/connections  connection_topics")
        close_stores(spark)
    return ended(screen.say, "marks were", once=job.once, used_up=used_up, broken_off=run.broken_off)


def tell(screen: Screen, batch: ConnectionsResult) -> None:
    """One line a batch in which reads were switched off or on."""
    if batch.paused or batch.resumed:
        screen.say(f"batch={batch.batch_id} paused={batch.paused} resumed={batch.resumed}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="connections", description=__doc__)
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help="of the throttle job; its tables, too")
    parser.add_argument("--broker", metavar="NAME", help="follow the throttle job of this broker under the output")
    parser.add_argument("--checkpoint", metavar="DIR", help="default: connections-checkpoint under the output")
    conf_help = "[trigger], [state], [tables] and [metrics] address of headgate.toml; default conf"
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help=conf_help)
    parser.add_argument(
        "--metrics-port", type=port, default=0, metavar="PORT", help="where Prometheus finds metrics; default nowhere"
    )
    parser.add_argument("--once", action="store_true", help="use up the marks that are there and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
