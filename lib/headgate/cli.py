"""The command `headgate`: one function per subcommand adds its parser; its `run` returns the exit status."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate import __version__
from headgate.cluster.arguments import add_check_arguments, add_cluster_arguments, add_enforce_arguments
from headgate.demo.arguments import add_demo_arguments
from headgate.engines.stops import broken_off_by_signals
from headgate.errors import HeadgateError
from headgate.gate.arguments import add_gate_arguments
from headgate.jobs import DESCRIPTION as JOB
from headgate.jobs import add_job_arguments, run_job
from headgate.options import Parser
from headgate.places import RUNNING, check_tables_here, tried
from headgate.quota.groups.parser import add_groups_actions
from headgate.quota.usage.parser import add_usage_arguments
from headgate.replay.arguments import DESCRIPTION as REPLAY
from headgate.replay.arguments import add_replay_arguments
from headgate.service.arguments import add_serve_arguments
from headgate.sizing.arguments import DESCRIPTION as SWEEP
from headgate.sizing.arguments import add_assumed_lags, add_sweep_arguments
from headgate.store_errors import is_of_disk, is_transient, transient_line
from headgate.stores import check_reachable
from headgate.tryout.arguments import add_try_arguments
from headgate.why.arguments import add_why_arguments

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[Any]

EXIT_TRANSIENT, EXIT_ERROR = 1, 2
"""Transient: an object store does not answer, or a disk is full or read-only, so another start may do."""
EXIT_PIPE = 1
"""rich has the same status for it."""
EXIT_STOPPED = 130
"""Of a process that Ctrl-C ended before it had anything to show."""


_MALLOC = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0"}
"""jemalloc in delta-rs reads this as it is loaded: memory is given back after 0.1 s, not 10 s. A view of a day of marks
takes 200 MB for a second or two, and the next one comes soon.
"""


class _WithoutPandas(MetaPathFinder):
    """pyarrow loads pandas where it is installed, to tell its objects from others; no command has any."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command headgate does without pandas", name=fullname)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; an error that headgate raises on purpose prints its message alone and gives 2.

    Where another start may do, 1: an object store does not answer, or a disk is full or read-only.
    """
    if argv is None:  # the process is ours
        _open_streams()
        sys.meta_path.insert(0, _WithoutPandas())
    parser = Parser(prog="headgate", description="Quotas and throttling for messaging clusters.")
    parser.add_argument("--version", action="version", version=f"headgate {__version__}")
    subcommands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add_to in SUBCOMMANDS:
        add_to(subcommands)
    arguments = parser.parse_args(argv)
    try:
        if hasattr(arguments, "of_tables"):
            _look_at(arguments.output)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has enough
        _print_no_more()
        return EXIT_PIPE
    except HeadgateError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return EXIT_TRANSIENT if is_transient(error) else EXIT_ERROR
    except OSError as error:
        if not is_transient(error):
            raise
        print(f"headgate: {transient_line(error)}", file=sys.stderr)
        if is_of_disk(error):
            _print_no_more()
        return EXIT_TRANSIENT
    except KeyboardInterrupt:
        print("headgate: stopped", file=sys.stderr)
        return EXIT_STOPPED
    return status


def _open_streams() -> None:
    """Streams that were closed before the start are empty, here and in what is started from here."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123  for as long as the process lives
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _print_no_more() -> None:
    """What is printed and cannot be written is dropped: what Python flushes at its end must not fail as well."""
    with suppress(OSError):
        sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _look_at(output: str) -> None:
    """Raise TableError where the tables are in folders below; say so on stderr where a run is not through."""
    check_reachable(output, "the output")
    check_tables_here(output)
    if tried(output) == RUNNING:
        print(
            f"headgate: warning: a run writes to {output}, or it failed or was killed: its tables are not whole",
            file=sys.stderr,
        )


def add_try(subcommands: "Subcommands") -> None:
    """`headgate try [PATH] ...`: what conf files would do to a trace, in seconds, without Spark."""
    parser = subcommands.add_parser("try", help="what conf files would do to a trace, in seconds")
    add_try_arguments(parser)
    parser.set_defaults(run=run_try)


def run_try(arguments: argparse.Namespace) -> int:
    """Show what came of it."""
    from headgate.tryout.command import run  # noqa: PLC0415  other subcommands do not need the rules

    return run(arguments)


def add_replay(subcommands: "Subcommands") -> None:
    """`headgate replay ...`: recorded traffic under several confs; jobs/replay.py without Spark."""
    parser = subcommands.add_parser("replay", help="replay recorded traffic under several confs", description=REPLAY)
    add_replay_arguments(parser)
    parser.set_defaults(run=run_replay)


def run_replay(arguments: argparse.Namespace) -> int:
    """Write tables and a report."""
    from headgate.replay.asked import asked  # noqa: PLC0415  other subcommands do not need the rules

    def work() -> int:
        checked = asked(arguments)
        from headgate.report.replay.command import LOCAL, replay  # noqa: PLC0415  takes seconds: after the checks

        return replay(checked, LOCAL)

    return broken_off_by_signals("replay", work)


def add_sweep(subcommands: "Subcommands") -> None:
    """`headgate sweep ...`: many entry caches over one trace; jobs/cache_sweep.py without Spark."""
    parser = subcommands.add_parser("sweep", help="which entry cache traffic would have needed", description=SWEEP)
    add_sweep_arguments(parser)
    add_assumed_lags(parser)
    parser.set_defaults(run=run_sweep)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Write tables and a report."""
    from headgate.sizing.asked import asked  # noqa: PLC0415  other subcommands do not need the rules

    def work() -> int:
        checked = asked(arguments)
        from headgate.report.sweep.command import LOCAL, sweep  # noqa: PLC0415  takes seconds: after the checks

        return sweep(checked, LOCAL)

    return broken_off_by_signals("sweep", work)


def add_job(subcommands: "Subcommands") -> None:
    """`headgate job [OPTIONS FOR SPARK] NAME ...`: a job of an installed headgate, under Spark."""
    parser = subcommands.add_parser("job", help="run a job under Spark", description=JOB)
    add_job_arguments(parser)
    parser.set_defaults(run=run_job)


def add_conformance(subcommands: "Subcommands") -> None:
    """`headgate conformance PATH... [--kernel]`: replay vector files; 1 with any failure."""
    parser = subcommands.add_parser("conformance", help="replay vector files against the public core")
    parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a vector file, or a folder of *.json")
    parser.add_argument("--kernel", action="store_true", help="replay the array forms, where they exist")
    parser.set_defaults(run=run_conformance)


def run_conformance(arguments: argparse.Namespace) -> int:
    """Print the report of a replay."""
    from headgate.conformance import replay, report_lines  # noqa: PLC0415  other subcommands do not need the core

    report = replay(arguments.paths, kernel=arguments.kernel)
    for line in report_lines(report):
        print(line)
    return report.exit_status


def add_sql(subcommands: "Subcommands") -> None:
    """`headgate sql OUTPUT "SELECT ..."`: one query over the tables of a job, without Spark."""
    parser = subcommands.add_parser("sql", help="query a job's tables")
    parser.add_argument("output", help="the job's --output")
    parser.add_argument("query", help="SQL over marks, topic_usage, dead_letters, batches, control")
    parser.set_defaults(run=run_sql, of_tables=True)


def run_sql(arguments: argparse.Namespace) -> int:
    """Print the result of the query. Ctrl-C ends the process at once: the engine hears of no signal while it works."""
    from headgate.report.sql import print_rows, query  # noqa: PLC0415  other subcommands do not need the tables

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        rows = query(arguments.output, arguments.query)
    finally:
        signal.signal(signal.SIGINT, before)
    print_rows(rows)
    return 0


def add_tables(subcommands: "Subcommands") -> None:
    """`headgate tables OUTPUT`: which tables a job has written."""
    parser = subcommands.add_parser("tables", help="which tables a job has written, with rows and times")
    parser.add_argument("output", metavar="OUTPUT", help="the job's --output")
    parser.set_defaults(run=run_tables, of_tables=True)


def run_tables(arguments: argparse.Namespace) -> int:
    """Print a row a table."""
    from headgate.report.sql import print_rows  # noqa: PLC0415  other subcommands do not need the tables
    from headgate.report.tables_command import listed  # noqa: PLC0415

    print_rows(listed(arguments.output))
    return 0


def add_groups(subcommands: "Subcommands") -> None:
    """`headgate groups ACTION OUTPUT ...`: look at resource groups and change them, while jobs run or not."""
    parser = subcommands.add_parser("groups", help="look at resource groups and change them")
    add_groups_actions(parser)
    parser.set_defaults(run=run_groups, of_tables=True)


def run_groups(arguments: argparse.Namespace) -> int:
    """Print what was found, or what was changed."""
    from headgate.quota.groups.command import run  # noqa: PLC0415  other subcommands do not need the tables

    for line in run(arguments):
        print(line)
    return 0


def add_usage(subcommands: "Subcommands") -> None:
    """`headgate usage OUTPUT ...`: who uses what of the quotas, who is throttled and by which limit."""
    parser = subcommands.add_parser("usage", help="who uses what of the quotas, now or in the past")
    add_usage_arguments(parser)
    parser.set_defaults(run=run_usage, of_tables=True)


def run_usage(arguments: argparse.Namespace) -> int:
    """Print what was asked for."""
    from headgate.report.usage.command import run  # noqa: PLC0415  other subcommands do not need the tables

    for line in run(arguments):
        print(line)
    return 0


def add_why(subcommands: "Subcommands") -> None:
    """`headgate why TOPIC OUTPUT ...`: why a topic is held, whose fault that is, and what would help."""
    parser = subcommands.add_parser("why", help="why a topic is or was held, and what would have helped")
    add_why_arguments(parser)
    parser.set_defaults(run=run_why, of_tables=True)


def run_why(arguments: argparse.Namespace) -> int:
    """Print the answer."""
    from headgate.report.why.command import run  # noqa: PLC0415  other subcommands do not need the tables

    for line in run(arguments):
        print(line)
    return 0


def add_gate(subcommands: "Subcommands") -> None:
    """`headgate gate machine|table ...`: a service that speaks the throttle protocol with clients."""
    parser = subcommands.add_parser("gate", help="speak the throttle protocol with clients, over TCP")
    add_gate_arguments(parser)
    parser.set_defaults(run=run_gate)


def run_gate(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    from headgate.gate.command import run  # noqa: PLC0415  other subcommands need no network

    run(arguments, lambda text: print(text, flush=True))
    return 0


def add_collect(subcommands: "Subcommands") -> None:
    """`headgate collect --cluster FILE --output DIR`: the counters of a running cluster, in a table."""
    parser = subcommands.add_parser("collect", help="follow the counters of a running cluster")
    add_cluster_arguments(parser)
    parser.set_defaults(run=run_collect)


def run_collect(arguments: argparse.Namespace) -> int:
    """Collect until a signal ends it."""
    from headgate.cluster.collect_command import collect  # noqa: PLC0415  other subcommands need no network
    from headgate.cluster.running import say  # noqa: PLC0415

    return collect(arguments, say)


def add_enforce(subcommands: "Subcommands") -> None:
    """`headgate enforce --cluster FILE --output DIR [--apply]`: tenants of a running cluster within their quotas."""
    parser = subcommands.add_parser("enforce", help="keep tenants of a running cluster within their quotas")
    add_enforce_arguments(parser)
    parser.set_defaults(run=run_enforce)


def run_enforce(arguments: argparse.Namespace) -> int:
    """Enforce until a signal ends it."""
    from headgate.cluster.enforce_command import enforce  # noqa: PLC0415  other subcommands need no network
    from headgate.cluster.running import say  # noqa: PLC0415

    return enforce(arguments, say)


def add_cluster(subcommands: "Subcommands") -> None:
    """`headgate cluster check --cluster FILE`: what would be collected and set, and what is in the way."""
    parser = subcommands.add_parser("cluster", help="check whether a running cluster can be connected")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add_check_arguments(actions.add_parser("check", help="read everything, change nothing"))
    parser.set_defaults(run=run_cluster_check)


def run_cluster_check(arguments: argparse.Namespace) -> int:
    """Tell what was found."""
    from headgate.cluster.check import check  # noqa: PLC0415  other subcommands need no network

    return check(arguments, lambda text: print(text, flush=True))


def add_serve(subcommands: "Subcommands") -> None:
    """`headgate serve OUTPUT`: the admin API of resource groups, over HTTP."""
    parser = subcommands.add_parser("serve", help="serve the admin API of resource groups, for stock clients")
    add_serve_arguments(parser)
    parser.set_defaults(run=run_serve)


def run_serve(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    os.environ.update(_MALLOC | os.environ)
    from headgate.cluster.running import say  # noqa: PLC0415
    from headgate.service.command import serve  # noqa: PLC0415  other subcommands need no network

    return serve(arguments, say)


def add_demo(subcommands: "Subcommands") -> None:
    """`headgate demo`: live traffic, the throttle job and the page, together."""
    parser = subcommands.add_parser("demo", help="run the throttle job on live traffic, with the page")
    add_demo_arguments(parser)
    parser.set_defaults(run=run_demo)


def run_demo(arguments: argparse.Namespace) -> int:
    """Run until a signal ends it."""
    os.environ.update(_MALLOC | os.environ)
    from headgate.cluster.running import say  # noqa: PLC0415
    from headgate.demo.command import demo  # noqa: PLC0415  other subcommands need no network

    return demo(arguments, say)


SUBCOMMANDS = (
    *(add_try, add_replay, add_sweep, add_conformance, add_sql, add_tables, add_groups, add_usage, add_why),
    *(add_gate, add_collect, add_enforce, add_cluster, add_serve, add_demo, add_job),
)
