"""`headgate job`: the jobs of a headgate that pip installed, where there is no checkout with a spark-submit.sh."""

import argparse
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

from headgate.errors import InputError

DESCRIPTION = """\
Runs a job under Spark, in this process: SIGTERM and Ctrl-C end it as docs/operations.md says. Spark's log is on stderr.
On a cluster headgate has to be installed on each worker, under the same path as here. Options after the job are the
job's own: headgate job throttle --help
"""


def home() -> Path:
    """The folder that holds conf and jobs: HEADGATE_HOME, else the checkout that this file is in, else where pip has
    put them.
    """
    if given := os.environ.get("HEADGATE_HOME"):
        return Path(given)
    checkout = Path(__file__).resolve().parents[2]
    is_checkout = (checkout / "conf" / "spark-defaults.conf").exists()
    return checkout if is_checkout else Path(sysconfig.get_path("data"), "share", "headgate")


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what follows `headgate job`."""
    parser.add_argument("--master", metavar="URL", help="spark://HOST:7077, local[N]; default as spark-defaults.conf")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark's")
    parser.add_argument("--properties-file", metavar="FILE", help="more of them; spark-defaults.conf is below it")
    parser.add_argument("job", metavar="JOB", help=f"one of {home() / 'jobs'}, without .py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the job's own")


def run_job(arguments: argparse.Namespace) -> NoReturn:
    """Become the job's process. Raises InputError where there is no such job, or no Java."""
    jobs = home() / "jobs"
    file = jobs / f"{arguments.job}.py"
    if not file.is_file():
        present = ", ".join(sorted(job.stem for job in jobs.glob("*.py"))) or "none"
        raise InputError(f"job: got {arguments.job}; allowed is what is in {jobs}: {present}")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None or not Path(java).exists():
        raise InputError(f"job: Spark needs Java 17 to 21, and there is no {java or 'java on the PATH'}: install it")
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": shlex.join(spark_arguments(arguments))}
    os.execve(sys.executable, [sys.executable, str(file), *arguments.arguments], environment)  # noqa: S606


def spark_arguments(arguments: argparse.Namespace) -> list[str]:
    """What pyspark gives to Spark's own spark-submit."""
    master = ["--master", arguments.master] if arguments.master else []
    properties = ["--properties-file", arguments.properties_file, "--load-spark-defaults"]
    settings = [part for setting in arguments.conf for part in ("--conf", setting)]
    return [*master, *(properties if arguments.properties_file else []), *settings, "pyspark-shell"]
