"""`headgate why`: the answer on the screen."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from headgate.core.numbers import SECOND_MS
from headgate.errors import TableError
from headgate.report.why.others import cache_lines, connection_lines, subscription_lines
from headgate.report.why.screen import lines
from headgate.why.as_json import as_json
from headgate.why.cached import why_cached
from headgate.why.connections import why_connection
from headgate.why.subscriptions import why_subscription
from headgate.why.tables import OutputTables
from headgate.why.topics import why


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines that the command prints. Raises TableError where a table is missing or has nothing to say."""
    if arguments.at is not None and (arguments.first is not None or arguments.last is not None):
        raise TableError("got --at and --from or --to; allowed: an instant or a span; leave one of them out")
    at_s, first_s, last_s = (
        None if time_ms is None else time_ms // SECOND_MS for time_ms in (arguments.at, arguments.first, arguments.last)
    )
    when = {"at_s": at_s, "first_s": first_s, "last_s": last_s}
    tables = OutputTables(arguments.output)
    found: Any
    if arguments.subscription is not None:
        found = why_subscription(tables, arguments.topic, arguments.subscription, **when)
        shown = subscription_lines(found)
    elif arguments.connection:
        found = why_connection(tables, arguments.topic, **when)
        shown = connection_lines(found)
    elif arguments.cache:
        found = why_cached(tables, arguments.topic, **when)
        shown = cache_lines(found)
    else:
        found = why(tables, arguments.topic, **when)
        shown = lines(found)
    yield from [json.dumps(as_json(found), indent=2)] if arguments.json else shown
