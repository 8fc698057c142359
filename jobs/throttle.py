"""Which producers would the limits throttle, when, for how long, and by which limiter?

Without --input it answers for a bundled trace: 3 brokers, 5 tenants, two minutes, the limits of conf/.
See docs/operations.md for starting, stopping and restarting it, and docs/tables.md for what it writes.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from headgate.conf import Conf, MetricsSettings, check_streaming, load_conf
from headgate.engines.compiling import Loading
from headgate.engines.kernel_units import load_units, throttle_units
from headgate.engines.stops import Stop
from headgate.errors import Mistakes
from headgate.metrics import check_port, serving, url_of
from headgate.options import Parser, add_strict, input_format, is_topic, port
from headgate.places import check_places, check_writable, sole_use
from headgate.quota.tables.topic_tables import output_of
from headgate.report.modes import mode_line
from headgate.report.screen import terminal_console
from headgate.report.throttle_screen import Ended, ThrottleScreen
from headgate.report.throttling.blame import throttling
from headgate.report.throttling.unused import has_publish_limits
from headgate.rows.listing import FORMATS
from headgate.spark.job import WRONG, ended, exit_status, heed_signals, stop_asked
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.trace.demo import DEMO, demo_conf, write_demo

DEFAULT_OUTPUT = "output/throttle"
DEMO_JOB = ThrottleJob(f"{DEMO}/trace", "json", str(DEMO), f"{DEMO}/checkpoint", once=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 after the end of the input, or a stop without --once; STOPPED for a stop of --once.

    1 if Spark, a store or a disk failed, 2 for wrong options, conf or input, and where --once took in no row that says
    what the limits do.
    """
    stop = stop_asked()
    options = parsed(arguments)
    return exit_status("throttle", partial(throttle, options, stop))


def throttle(options: argparse.Namespace, stop: Stop) -> int:
    screen = ThrottleScreen(terminal_console(), recorded=options.once or options.input is None)
    job, conf, metrics_at = checked(options)
    screen.warnings(conf.warnings)
    with sole_use(job.checkpoint, job.broker), sole_use(job.output, job.broker), serving(metrics_at) as metrics:
        if metrics is not None:
            screen.say(f"throttle: metrics at {url_of(metrics_at)}")
        if options.input is None:
            screen.demo(write_demo(), job.input)
        operator = conf.settings.operator
        mode = mode_line(operator.traffic, operator.send_timeout_ms)
        screen.say(f"throttle: {mode}")
        screen.say(f"throttle: starting Spark for {job.format} input {job.input}")
        units = throttle_units(operator.kernel, shares=operator.group_limits == "shared")
        rules = Loading(partial(load_units, units), lambda line: screen.say(f"throttle: {line}"))
        spark = spark_session("headgate throttle")
        heed_signals(stop)
        run = ThrottleRun(spark, job, conf, screen.batch, stop, metrics=metrics)
        screen.warnings(run.warnings)
        said = len(run.warnings)
        rules.wait()
        screen.say("throttle: the first batch takes some seconds more: workers start")
        used_up = run.run()
        throttled = throttling(run.tables, conf.resource_groups, has_all_brokers=job.broker is None)
        found = Ended(
            *(run.tables, throttled, mode, job.output),
            has_limits=job.broker is not None or has_publish_limits(conf),
            is_offered=operator.traffic == "offered",
        )
        in_vain = (
            job.once
            and used_up
            and screen.in_vain(
                found, job.input, options.conf_dir, has_rows=run.has_rows, limits_changed=run.limits_changed
            )
        )
        screen.warnings(run.warnings[said:])
        if not in_vain:
            screen.end(found, run.quota_courses(), job.shared)
        screen.warnings([*conf.warnings, *run.warnings])  # once more, where they are seen
        close_stores(spark)
    status = ended(screen.say, "input was", once=job.once, used_up=used_up, broken_off=run.broken_off)
    return WRONG if in_vain else status


def checked(options: argparse.Namespace) -> tuple[ThrottleJob, Conf, MetricsSettings]:
    """What the options and conf files say. Raises HeadgateError with all that is wrong, before Spark starts."""
    mistakes, conf, job = Mistakes(), Conf(), DEMO_JOB
    with mistakes.collected():
        conf = load_conf(options.conf_dir, strict=options.strict)
        check_streaming(conf)
    metrics_at = metrics_settings(options, conf)
    with mistakes.collected():
        check_port(metrics_at)
    if options.input is not None:
        configured, format_ = conf.settings.input.format, ""
        with mistakes.collected():
            format_ = input_format(options, configured, recorded=options.once)
        with mistakes.collected():
            job = given(options, format_, files=not is_topic(options, configured))
    with mistakes.collected():
        check_writable(job.output)
    mistakes.raise_all()
    return job, demo_conf(conf) if options.input is None else conf, metrics_at


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="throttle", description=__doc__)
    parser.add_argument("--input", metavar="PATH_OR_TOPIC", help="files, folder, Delta table or Kafka topic")
    parser.add_argument(
        "--format", choices=(*FORMATS, "kafka"), help="default: by the names of the files, else as headgate.toml says"
    )
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help=f"tables; default {DEFAULT_OUTPUT}")
    parser.add_argument("--checkpoint", metavar="DIR", help="default: checkpoint under the output")
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help="default conf")
    add_strict(parser)
    parser.add_argument("--broker", metavar="NAME", help="take in this broker alone; quotas are shared with other jobs")
    parser.add_argument("--metrics-port", type=port, metavar="PORT", help="where Prometheus finds metrics; 0: nowhere")
    parser.add_argument("--once", action="store_true", help="use up what is there and end")
    options = parser.parse_args(arguments)
    others = options.format or options.checkpoint or options.broker or options.output != DEFAULT_OUTPUT
    if options.input is None and others:
        parser.error("--format, --output, --checkpoint and --broker need --input: without it the bundled trace runs")
    return options


def given(options: argparse.Namespace, format_: str, *, files: bool) -> ThrottleJob:
    """The tables of a job of one broker are under `brokers` of the output, whose rg_ tables all such jobs share."""
    output = options.output if options.broker is None else output_of(options.output, options.broker)
    checkpoint = f"{output}/checkpoint" if options.checkpoint is None else options.checkpoint
    check_places(options.input, options.output, checkpoint, files=files)
    return ThrottleJob(options.input, format_, output, checkpoint, options.once, options.broker, options.output)


def metrics_settings(options: argparse.Namespace, conf: Conf) -> MetricsSettings:
    """Those of headgate.toml, with the port of the command line if there is one."""
    settings = conf.settings.metrics
    return settings if options.metrics_port is None else settings.model_copy(update={"port": options.metrics_port})


if __name__ == "__main__":
    sys.exit(main())
