"""What spark-submit.sh does once this checkout is set up: Spark's own spark-submit with headgate's settings.

Runs on the Python of .venv, standard library only.
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import difflib
import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import jars
import steps
from child import run_job
from command_line import CommandLine, parse, properties
from java import ask
from package import package_zip
from steps import PYTHON, ROOT, SetupError

CONF = ROOT / "conf"
USAGE = 64  # sysexits: wrong command line
HELP = """\
usage: ./spark-submit.sh [options] JOB.py [job options]

Runs a job under Spark. The first start sets everything up in this folder (.venv, .cache); Python 3.11 and Java 17 are
all it needs.
Options after the job file go to the job: ./spark-submit.sh jobs/throttle.py --help

options before the job file:
  --show-spark-log    Spark's log on the screen instead of in .cache/logs
  --with-kafka        load Spark's Kafka connector; a job's own `--format kafka` does so by itself
  --with-s3           load what Spark needs for S3; places that begin with s3a:// do so by themselves
  --version           set up, then print the versions in use
  --help              this text
  anything else       goes to Spark's spark-submit: --master spark://HOST:7077, --conf KEY=VALUE, ...

Settings: conf/spark-defaults.conf (loses to --properties-file, which loses to --conf) and conf/log4j2.properties.
Ctrl-C or SIGTERM ends the job after the batch under way, exit status 0; a second one ends it at once.
Otherwise the exit status is the job's.
"""


def main(arguments: list[str]) -> int:
    """Run one command line, return its exit status."""
    line = parse(arguments)
    if line.own & {"--help", "-h"}:
        sys.stdout.write(HELP)
        return 0
    if "--version" in line.own:
        sys.stdout.write(versions())
        return 0
    if line.job is None:
        steps.say("headgate: no job file given, for example: ./spark-submit.sh jobs/throttle.py\n")
        steps.say(HELP, end="")
        return USAGE
    if not Path(line.job).exists() and "://" not in line.job:
        present = ", ".join(sorted(f"jobs/{job.name}" for job in ROOT.glob("jobs/*.py"))) or "none"
        near = difflib.get_close_matches(Path(line.job).stem, [job.stem for job in ROOT.glob("jobs/*.py")], 1)
        meant = f"; did you mean jobs/{near[0]}.py?" if near else ""
        steps.say(f"headgate: no job file {line.job}. Jobs here: {present}{meant}")
        return USAGE
    try:
        wanted = ["delta", *(["kafka"] if line.wants_kafka else []), *(["s3"] if line.wants_s3 else [])]
        extra_jars = [jar for name in wanted for jar in jars.fetch(name)]
    except SetupError as error:
        steps.say(f"headgate: {error}")
        return steps.UNAVAILABLE
    defaults = properties(CONF / "spark-defaults.conf")
    command = spark_command(line, extra_jars, [] if line.is_local(defaults) else [package_zip()])
    environment = {**os.environ, **spark_environment(os.environ, local=line.is_local(defaults))}
    return run_job(command, environment, name=Path(line.job).stem, show_log="--show-spark-log" in line.own)


def spark_command(line: CommandLine, extra_jars: list[Path], packages: list[Path]) -> list[str]:
    """Spark's spark-submit with the user's options last, so that theirs win; lists are joined."""
    command = [str(jars.spark_home() / "bin" / "spark-submit"), "--conf", "spark.jars.packages="]  # resolved already
    if "--properties-file" in line.conf:
        command.append("--load-spark-defaults")  # conf/spark-defaults.conf below the user's file instead of not at all
    command += line.spark
    for option, ours in (("--jars", extra_jars), ("--py-files", packages)):
        joined = ",".join([*map(str, ours), *line.lists[option]])
        command += [option, joined] if joined else []
    return [*command, str(line.job), *line.job_arguments]


def spark_environment(inherited: Mapping[str, str], *, local: bool) -> dict[str, str]:
    """What Spark, the job and its workers find in their environment."""
    environment = {
        "SPARK_HOME": str(jars.spark_home()),  # a SPARK_HOME of another Spark would be taken instead
        "SPARK_CONF_DIR": str(CONF),  # holds spark-defaults.conf and log4j2.properties
        "PYSPARK_PYTHON": str(PYTHON),
        "PYSPARK_DRIVER_PYTHON": str(ROOT / "scripts" / "driver.sh"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "lib"), inherited.get("PYTHONPATH", "")])),
        "HEADGATE_HOME": str(ROOT),
        "HEADGATE_PYTHON": str(PYTHON),
    }
    if local:
        # No port open to others, and no start that fails because the machine's own name does not resolve.
        environment["SPARK_LOCAL_IP"] = inherited.get("SPARK_LOCAL_IP", "127.0.0.1")
    environment["HEADGATE_TERMINAL"] = ""
    if sys.stdout.isatty():
        # Between the job and this terminal are two pipes of Spark's.
        environment["HEADGATE_TERMINAL"] = "1"
        environment["COLUMNS"] = str(shutil.get_terminal_size().columns)
    return environment


def versions() -> str:
    """One line per part that a bug report should name."""
    java = ask(Path(os.environ["JAVA_HOME"], "bin", "java"))
    lines = {
        "headgate": version("headgate"),
        "python": sys.version.split()[0],
        "java": java.version if java else "none",
    }
    lines |= {name: version(name) for name in ("pyspark", "delta-spark", "deltalake", "pyarrow")}
    return "".join(f"{name:<12} {number}\n" for name, number in lines.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
