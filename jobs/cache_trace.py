"""Turn a public trace of cache requests into cache events that jobs/cache_sweep.py and jobs/entry_cache.py read.

python jobs/cache_trace.py --input wiki.oracleGeneral.zst --format oracleGeneral --output /data/wiki
python jobs/cache_trace.py --input requests.csv --format csv --time-column 2 --id-column 5 --size-column 4 --header \
    --output /data/requests

Columns are counted from 1. Files that end in .zst, .gz, .bz2 or .lz4 are unpacked on the way.
docs/traces.md has the layouts.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from headgate.cache_trace import FORMATS, LARGEST_BYTES, Layout, convert
from headgate.cache_trace.layout import TIME_UNITS_NS
from headgate.errors import HeadgateError
from headgate.options import Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; the exit status is 0, or 2 with a message on stderr if an argument or the trace is refused."""
    options = parsed(arguments)
    try:
        done = convert(
            options.input,
            layout_of(options),
            options.output,
            broker=options.broker,
            topic=options.topic,
            all_of_one_byte=options.count_objects,
        )
    except HeadgateError as error:
        sys.stderr.write(f"cache_trace: {error}\n")
        return 2
    sys.stdout.write(f"{done.requests:,} requests in {done.files} file{'s' * (done.files != 1)}: {options.output}\n")
    if done.without_size:
        sys.stdout.write(f"{done.without_size:,} requests for 0 bytes left out\n")
    if done.too_large:
        sys.stdout.write(f"{done.too_large:,} requests for more than {LARGEST_BYTES:,} bytes left out\n")
    if done.moved:
        sys.stdout.write(f"{done.moved:,} requests moved to the time of the one before them, which was later\n")
    return 0


def layout_of(options: argparse.Namespace) -> Layout:
    return Layout(
        format=options.format,
        id_column=options.id_column,
        time_column=options.time_column,
        size_column=options.size_column,
        time_unit=options.time_unit,
        delimiter="\t" if options.delimiter == "\\t" else options.delimiter,
        has_header=options.header,
        ids_are_numbers=options.ids == "numbers",
        record=options.record,
    )


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="cache_trace",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--input", required=True, type=Path, help="the trace, one file")
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("--output", required=True, type=Path, help="new or empty folder for Parquet files")
    parser.add_argument("--id-column", type=int, default=0, help="csv, binary: column of the object's id")
    parser.add_argument("--time-column", type=int, default=0, help="csv, binary: column of the time, if there is one")
    parser.add_argument("--size-column", type=int, default=0, help="csv, binary: column of the size, if there is one")
    parser.add_argument("--time-unit", default="s", choices=TIME_UNITS_NS, help="csv, binary; default s")
    parser.add_argument("--delimiter", default=",", help="csv; default a comma; \\t: a tab")
    parser.add_argument("--header", action="store_true", help="csv, txt: the first line has names")
    parser.add_argument("--ids", default="numbers", choices=["numbers", "text"], help="csv, txt; default numbers")
    parser.add_argument("--record", default="", help="binary: letters of Python's struct, such as <IQI")
    parser.add_argument("--count-objects", action="store_true", help="each object has 1 byte, whatever its size")
    parser.add_argument("--broker", default="broker-1", help="broker of all events; default broker-1")
    parser.add_argument("--topic", default="requests", help="topic of all events; default requests")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
