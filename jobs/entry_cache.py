"""What do the entry caches of brokers hit, read from storage, evict and keep in memory (PIP-430)?

Takes cache events in, and models the cache of each broker by the keys of broker.conf. See docs/operations.md for
running it, and docs/tables.md for what it takes and writes.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from headgate.conf import Conf, load_conf
from headgate.engines.cache_batches import kernel_of
from headgate.engines.compiling import Loading
from headgate.engines.kernel_units import CACHE, load_units
from headgate.engines.stops import Stop
from headgate.errors import Mistakes
from headgate.options import Parser, add_strict, input_format, is_topic
from headgate.places import check_places, check_writable, sole_use
from headgate.report.cache_screen import CacheScreen
from headgate.report.screen import terminal_console
from headgate.rows.listing import FORMATS
from headgate.spark.entry_cache import CacheJob, CacheRun
from headgate.spark.job import ended, exit_status, heed_signals, stop_asked
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

DEFAULT_OUTPUT = "output/entry-cache"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 after the end of the input, or a stop without --once; STOPPED for a stop of --once.

    1 if Spark, a store or a disk failed, 2 for wrong options, conf or input.
    """
    stop = stop_asked()
    options = parsed(arguments)
    return exit_status("entry_cache", partial(entry_cache, options, stop))


def entry_cache(options: argparse.Namespace, stop: Stop) -> int:
    screen = CacheScreen(terminal_console())
    job, conf = checked(options)
    checkpoint = job.checkpoint
    screen.warnings(conf.warnings)
    with sole_use(checkpoint), sole_use(f"{job.output}/cache_metrics"):
        screen.say(f"entry_cache: starting Spark for the events of {job.input}")
        rules = Loading(partial(load_rules, conf), lambda line: screen.say(f"entry_cache: {line}"))
        spark = spark_session("headgate entry cache")
        heed_signals(stop)
        run = CacheRun(spark, job, conf, screen.batch, stop)
        rules.wait()
        screen.begin()
        used_up = run.run()
        screen.say(f"Tables (Delta): {job.output}/cache_metrics  cache_evictions  dead_letters  cache_batches")
        close_stores(spark)
    return ended(screen.say, "input was", once=job.once, used_up=used_up, broken_off=run.broken_off)


def checked(options: argparse.Namespace) -> tuple[CacheJob, Conf]:
    """What the options and conf files say. Raises HeadgateError with all that is wrong, before Spark starts."""
    mistakes, conf, format_ = Mistakes(), Conf(), ""
    checkpoint = options.checkpoint or f"{options.output}/checkpoint"
    with mistakes.collected():
        conf = load_conf(options.conf_dir, strict=options.strict)
    configured = conf.settings.input.format
    with mistakes.collected():
        format_ = input_format(options, configured, recorded=options.once)
    with mistakes.collected():
        check_places(options.input, options.output, checkpoint, files=not is_topic(options, configured))
        check_writable(options.output)
    mistakes.raise_all()
    return CacheJob(options.input, options.output, checkpoint, format_, options.evictions, options.once), conf


def load_rules(conf: Conf) -> None:
    if kernel_of(conf) != "python":
        load_units([CACHE])


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="entry_cache", description=__doc__)
    parser.add_argument("--input", required=True, metavar="PATH_OR_TOPIC", help="cache events")
    parser.add_argument(
        "--format", choices=(*FORMATS, "kafka"), help="default: by the names of the files, else as headgate.toml says"
    )
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help=f"default {DEFAULT_OUTPUT}")
    parser.add_argument("--checkpoint", metavar="DIR", help="default: checkpoint under the output")
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help="default conf")
    add_strict(parser)
    parser.add_argument("--evictions", action="store_true", help="tell of each entry that left, in cache_evictions")
    parser.add_argument("--once", action="store_true", help="use up what is there and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
