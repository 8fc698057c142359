"""Arguments of `headgate usage`, which need no table to be understood."""

import argparse
from datetime import datetime

from headgate.core.quota.groups import TrafficClass
from headgate.options import positive

VIEWS = ("group", "broker", "tenant", "topic")
EPOCHS = 30
EPOCHS_MAX = 100_000
SHOWN = 20
CLASSES = {one.name.lower(): one for one in TrafficClass}
LAST_INSTANT_MS = 253_402_300_800_000
"""The year 10000, which no calendar here can write."""
_LOCATIONS = ("group", "attachment", "member", "usage", "limit")
_ABOUT = (
    "Who uses what of the quotas, from the tables alone: first who is throttled, by which limit, and who is only a "
    "victim of others. Rates are per second."
)
_TIMES = (
    "TIME is event time, that of the traffic, be it live or recorded: the rows up to the epoch that holds TIME count, "
    "with the quotas and attachments that the brokers had read by then. Whether a broker was up is asked of "
    "rg_members as it was at TIME (Delta's time travel, by wall clock); a TIME before its first commit is that of "
    "recorded traffic, and then every broker counts that reported."
)


def add_usage_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what follows `headgate usage`."""
    parser.description, parser.epilog = _ABOUT, _TIMES
    parser.add_argument("output", metavar="OUTPUT", help="the job's --output")
    parser.add_argument(
        "--by", choices=VIEWS, help="a line for each of these (default: group where quotas are shared, else tenant)"
    )
    parser.add_argument("--group", metavar="NAME", help="this group alone")
    parser.add_argument("--class", dest="traffic_class", choices=CLASSES, help="this direction alone")
    parser.add_argument(
        "--at",
        metavar="TIME",
        type=instant_ms,
        help="the past: ISO 8601 with a zone, or ms since 1970 (see below); without it now or, where no job runs any "
        "more, the worst time there was",
    )
    parser.add_argument(
        "--epochs",
        metavar="N",
        type=_epochs,
        default=EPOCHS,
        help="show the course of so many epochs, and tenants and topics by their mean; reports of a group that are "
        "older than 2 N, and than 60, are gone (default: %(default)s)",
    )
    parser.add_argument(
        "--top", metavar="N", type=positive, default=SHOWN, help="show so many at most (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="JSON, whole; null is not limited or not known")
    for name in _LOCATIONS:
        key = f"resourceGroup{name.capitalize()}Table"
        parser.add_argument(f"--{name}-table", metavar="LOCATION", help=f"{key}, if the job has it")


def instant_ms(text: str) -> int:
    """The instant that `text` means, ms since 1970: that number itself, or ISO 8601 with a zone.

    From 1970 to the year 9999. Raises ArgumentTypeError for anything else.
    """
    allowed = "allowed: ISO 8601 with a zone, as 2026-03-01T12:00:07Z, or ms since 1970, up to the year 9999"
    if text.isascii() and text.isdigit():
        instant = int(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"got {text!r}; {allowed}") from None
        if moment.tzinfo is None:
            raise argparse.ArgumentTypeError(f"got {text!r}, which has no zone; {allowed}")
        instant = _milliseconds(moment)
    if not 0 <= instant < LAST_INSTANT_MS:
        raise argparse.ArgumentTypeError(f"got {text!r}; {allowed}")
    return instant


def _milliseconds(moment: datetime) -> int:
    since = moment - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _epochs(text: str) -> int:
    if positive(text) > EPOCHS_MAX:
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: an integer from 1 to {EPOCHS_MAX}")
    return int(text)
