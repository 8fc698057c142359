"""Write a reproducible trace of publish events: files, a Delta table or a Kafka topic. docs/traces.md has the model.

python jobs/generate.py --output /data/trace --format json --seed 7 --events 60000
python jobs/generate.py --output /data/cache --format json --cache replay            # cache events instead
"""

import argparse
import sys
import time
from collections.abc import Sequence

from headgate.cache.trace import write_cache_trace
from headgate.cache.trace_options import add_cache_options, cache_trace_from, check_without_cache
from headgate.errors import ConfError, HeadgateError
from headgate.options import Parser
from headgate.rows.listing import FORMATS
from headgate.trace import TraceSpec, TraceSummary, add_options, spec_from, write_trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; the exit status is 0, or 2 with a message on stderr if an argument is refused."""
    options = parsed(arguments)
    try:
        if options.cache:
            return write_cache_events(options)
        check_without_cache(options)
        spec = spec_from(options)
        began_s = time.perf_counter()
        summary = written(spec, options)
        took_s = time.perf_counter() - began_s
    except HeadgateError as error:
        sys.stderr.write(f"generate: {error}\n")
        return 2
    sys.stdout.write(f"{summary.describe()}\n")
    sys.stdout.write(f"speed       {summary.rows / took_s:,.0f} rows/s, {took_s:.2f} s in all\n")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="generate", description=__doc__)
    parser.add_argument("--output", required=True, help="new or empty folder; with --format kafka, the Kafka topic")
    parser.add_argument("--format", default="json", choices=[*FORMATS, "kafka"], help="default json")
    parser.add_argument("--kafka-servers", help="host:port[,host:port], with --format kafka only")
    add_options(parser)
    add_cache_options(parser)
    return parser.parse_args(arguments)


def write_cache_events(options: argparse.Namespace) -> int:
    trace = cache_trace_from(options)
    rows = write_cache_trace(trace, options.output, options.format)
    sys.stdout.write(
        f"{rows:,} cache events of {trace.brokers} brokers, family {trace.family}, in {trace.files} files\n"
    )
    return 0


def written(spec: TraceSpec, options: argparse.Namespace) -> TraceSummary:
    def on_file(summary: TraceSummary) -> None:
        if summary.files % max(1, spec.files // 20) == 0:
            sys.stderr.write(f"file {summary.files:,} of {spec.files:,}: {summary.rows:,} of {spec.events:,} rows\n")

    if (options.format == "kafka") != bool(options.kafka_servers):
        got = options.kafka_servers or "nothing"
        raise ConfError(
            [f"kafka-servers: got {got} with --format {options.format}; needed with kafka, refused otherwise"]
        )
    if options.format != "kafka":
        return write_trace(spec, options.output, options.format, on_file)
    from headgate.spark.session import spark_session  # noqa: PLC0415 -- only this format starts a JVM
    from headgate.spark.trace_to_kafka import send_trace  # noqa: PLC0415

    return send_trace(spec, spark_session("generate"), options.kafka_servers, options.output, on_file)


if __name__ == "__main__":
    sys.exit(main())
