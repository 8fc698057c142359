"""`headgate why`: the answer on the screen."""

import argparse
import json
from collections.abc import Iterator

from headgate.core.numbers import SECOND_MS
from headgate.errors import TableError
from headgate.report.why.screen import lines
from headgate.why.as_json import as_json
from headgate.why.topics import why


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines that the command prints. Raises TableError where a table is missing or has nothing to say."""
    if arguments.at is not None and (arguments.first is not None or arguments.last is not None):
        raise TableError("got --at and --from or --to; allowed: an instant or a span; leave one of them out")
    at_s, first_s, last_s = (
        None if time_ms is None else time_ms // SECOND_MS for time_ms in (arguments.at, arguments.first, arguments.last)
    )
    found = why(arguments.output, arguments.topic, at_s=at_s, first_s=first_s, last_s=last_s)
    if arguments.json:
        yield json.dumps(as_json(found), indent=2)
    else:
        yield from lines(found)
