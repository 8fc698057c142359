"""What does a broker tell its clients, and when does it stop reading from them (PIP-385)?

Follows the table `marks` of a throttle job, and with --input what clients do. Without --input every client is taken
to support the protocol and to answer at once. See docs/operations.md for running it, and docs/tables.md
for what it writes.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from headgate.conf import load_conf
from headgate.engines.compiling import Loading
from headgate.engines.stops import Stop
from headgate.options import Parser
from headgate.places import check_folders, sole_use
from headgate.protocol.key_operator import form_of
from headgate.report.screen import Screen, terminal_console
from headgate.spark.job import ended, exit_status, heed_signals, stop_asked
from headgate.spark.protocol import FORMATS, ProtocolJob, ProtocolResult, ProtocolRun
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores
from headgate.stores import check_reachable

DEFAULT_OUTPUT = "output/throttle"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 after the end of the input, or a stop without --once; STOPPED for a stop of --once.

    1 if Spark, a store or a disk failed, 2 for wrong options, conf or input.
    """
    stop = stop_asked()
    options = parsed(arguments)
    return exit_status("protocol", partial(protocol, options, stop))


def protocol(options: argparse.Namespace, stop: Stop) -> int:
    screen = Screen(terminal_console(), "protocol")
    conf = load_conf(options.conf_dir)
    checkpoint = options.checkpoint or f"{options.output}/protocol-checkpoint"
    check_folders(options.output, checkpoint)
    if options.input is not None and options.format == "delta":
        check_reachable(options.input, "--input")
    job = ProtocolJob(options.output, checkpoint, options.input, options.format, options.commands_topic, options.once)
    with sole_use(checkpoint), sole_use(f"{job.output}/throttle_decisions"):
        screen.say(f"protocol: starting Spark for the tables under {job.output}")
        rules = Loading(partial(form_of, conf.settings.operator.kernel), lambda line: screen.say(f"protocol: {line}"))
        spark = spark_session("headgate protocol")
        heed_signals(stop)
        run = ProtocolRun(spark, job, conf, partial(tell, screen), stop)
        rules.wait()
        used_up = run.run()
        screen.say(f"Tables (Delta): {job.output}/throttle_decisions  throttle_metrics  protocol_dead_letters")
        close_stores(spark)
    return ended(screen.say, "input was", once=job.once, used_up=used_up, broken_off=run.broken_off)


def tell(screen: Screen, batch: ProtocolResult) -> None:
    """One line a batch that brought something."""
    if batch.rows or batch.commands or batch.pauses:
        counts = f"rows={batch.rows} commands={batch.commands} pauses={batch.pauses}"
        screen.say(f"batch={batch.batch_id} {counts} late={batch.late} dead_letters={batch.dead_letters}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="protocol", description=__doc__)
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help="of a throttle job; its tables, too")
    parser.add_argument("--input", metavar="PATH_OR_TOPIC", help="what clients do: a Delta table or Kafka topic")
    parser.add_argument("--format", choices=FORMATS, default="delta", help="of the input; default delta")
    parser.add_argument("--commands-topic", metavar="TOPIC", help="Kafka topic that decisions are sent to as well")
    parser.add_argument("--checkpoint", metavar="DIR", help="default: protocol-checkpoint under the output")
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help="default conf")
    parser.add_argument("--once", action="store_true", help="use up what is there and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
