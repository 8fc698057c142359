"""The arguments of `headgate collect` and `headgate enforce`. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.options import add_metrics_port


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what both take."""
    parser.add_argument("--cluster", required=True, metavar="FILE", help="cluster.toml: how to reach it, and quotas")
    parser.add_argument("--output", required=True, metavar="DIR", help="where the tables are, one folder a cluster")
    add_metrics_port(parser)


def add_enforce_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `headgate enforce` takes besides."""
    add_cluster_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--apply", action="store_true", help="set limits; without it, only tell what would be set")
    what.add_argument("--shadow", action="store_true", help="set nothing, and record in a table what would be set")
    what.add_argument("--release", action="store_true", help="put back every limit that was set and left, and end")
    parser.add_argument("--keep", action="store_true", help="leave limits as they are at the end")
    parser.add_argument("--fail-closed", action="store_true", help="keep limits also while there are no counters")


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `headgate cluster check` takes."""
    parser.add_argument("--cluster", required=True, metavar="FILE", help="cluster.toml")
    parser.add_argument("--output", metavar="DIR", help="of an enforcer: says which limits are its own")
