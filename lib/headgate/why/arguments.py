"""The arguments of `headgate why`. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.quota.usage.parser import instant_ms

ABOUT = (
    "Why a topic is or was held: when and by which limit, the limits in force, who filled the one that held it, "
    "whether its tenant is the cause or a victim, and what would have helped."
)


def add_why_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what it takes."""
    parser.description = ABOUT
    parser.add_argument("topic", metavar="TOPIC", help="persistent://tenant/namespace/topic, or without persistent://")
    parser.add_argument("output", metavar="OUTPUT", help="the job's --output")
    time = "ISO 8601 with a zone, or ms since 1970"
    parser.add_argument("--at", metavar="TIME", type=instant_ms, help=f"the minute up to then: {time}")
    parser.add_argument("--from", dest="first", metavar="TIME", type=instant_ms, help="from then on")
    parser.add_argument(
        "--to",
        dest="last",
        metavar="TIME",
        type=instant_ms,
        help="up to then; without all of these the last 5 minutes of live traffic, or all of recorded traffic",
    )
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--subscription", metavar="NAME", help="why this subscription of the topic has a backlog")
    of.add_argument("--connection", action="store_true", help="TOPIC is a connection, as BROKER/CONNECTION")
    of.add_argument("--cache", action="store_true", help="why entries of the topic left the entry cache")
    parser.add_argument("--json", action="store_true", help="JSON, whole; null is not limited or not known")
