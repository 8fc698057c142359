"""Which of spark-submit.sh's arguments belong to the wrapper, to Spark and to the job."""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

# Spark's options that take no value; every other one takes one (spark-submit --help).
SPARK_SWITCHES = frozenset({"--verbose", "-v", "--supervise", "--load-spark-defaults", "--usage-error"})
OWN_SWITCHES = frozenset({"--help", "-h", "--version", "--show-spark-log", "--with-kafka", "--with-s3"})
# Lists: what the wrapper adds is joined with what the user gave, where Spark itself would let the last one win.
LISTS = ("--jars", "--py-files")


@dataclass
class CommandLine:
    """The arguments, sorted out. `spark` keeps the user's order; `lists` holds the values of --jars and --py-files."""

    own: set[str] = field(default_factory=set)
    spark: list[str] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in LISTS})
    conf: dict[str, str] = field(default_factory=dict)
    job: str | None = None
    job_arguments: list[str] = field(default_factory=list)

    @property
    def wants_kafka(self) -> bool:
        """Whether to load Spark's Kafka connector: asked for before the job, or by the job's own options."""
        options = {argument.partition("=")[0] for argument in self.job_arguments}
        asked = "--with-kafka" in self.own or "--format=kafka" in self.job_arguments or "--commands-topic" in options
        return asked or ("--format", "kafka") in pairwise(self.job_arguments)

    @property
    def wants_s3(self) -> bool:
        """Whether to load S3A: asked for before the job, or where the job is to read or write."""
        values = (argument.rpartition("=")[2] for argument in self.job_arguments)
        return "--with-s3" in self.own or any(map(is_on_s3, values))

    def master(self, defaults: Mapping[str, str]) -> str:
        """The master in force: the options before the job, the user's properties file, then `defaults`."""
        theirs = properties(Path(self.conf["--properties-file"])) if "--properties-file" in self.conf else {}
        named = (self.conf.get("--master"), self.conf.get("spark.master"), theirs.get("spark.master"))
        return next((master for master in named if master), defaults.get("spark.master", "local[*]"))

    def is_local(self, defaults: Mapping[str, str]) -> bool:
        return self.master(defaults).startswith("local")


def is_on_s3(place: str) -> bool:
    return place.startswith("s3a://")


def parse(arguments: Sequence[str]) -> CommandLine:
    """Sort the arguments out; the first one that is neither an option nor an option's value is the job file.

    An option without its value stays with Spark, which says so.
    """
    line = CommandLine()
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name in OWN_SWITCHES:
            line.own.add(name)
        elif name in SPARK_SWITCHES:
            line.spark.append(name)
        else:
            take_spark_option(line, name, value if equals else rest.pop(0) if rest else None)
    if rest:
        line.job, *line.job_arguments = rest
    return line


def take_spark_option(line: CommandLine, name: str, value: str | None) -> None:
    if value is None:
        line.spark.append(name)
    elif name in LISTS:
        line.lists[name].append(value)
    else:
        line.spark += [name, value]
        key, _, setting = value.partition("=") if name in ("--conf", "-c") else (name, "", value)
        line.conf[key] = setting


def properties(path: Path) -> dict[str, str]:
    """The settings in a Spark properties file, as far as the wrapper needs them: `key value` or `key=value` lines.

    An unreadable file gives none: Spark, which is given the same path, says what is wrong with it.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    settings = {}
    for line in map(str.strip, lines):
        if line and not line.startswith(("#", "!")):
            key, value = re.split(r"\s*[=:\s]\s*", f"{line} ", maxsplit=1)
            settings[key] = value.rstrip()
    return settings
