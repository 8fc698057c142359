"""Options that several commands and jobs have. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.places import check_there
from headgate.rows.headers import check_headers
from headgate.rows.listing import format_of


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add --strict."""
    parser.add_argument("--strict", action="store_true", help="warnings about conf files are mistakes")


def is_topic(options: argparse.Namespace, configured: str) -> bool:
    """Whether --input is a Kafka topic. configured: the format by headgate.toml."""
    return (options.format or configured) == "kafka"


def input_format(options: argparse.Namespace, configured: str, *, recorded: bool = True) -> str:
    """The format of --input: as --format says, else as the names of its files say, else as `configured`.

    configured: by headgate.toml. Of a Kafka topic, and of a path that is not on this machine, no names are asked.
    recorded: what is there now is all there is. Raises InputError for an input that is not there or, if recorded, of
    which every row would be a dead letter.
    """
    path: str = options.input
    is_here = configured != "kafka" and "://" not in path
    format_: str = options.format or (format_of(path) if is_here else None) or configured
    if not is_topic(options, configured):
        check_there(path, "--input")
        if recorded:
            check_headers(path, format_, "--input")
    return format_
