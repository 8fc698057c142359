"""Jobs run in this process, as a start of Python for each of many arguments would take the time of all the rest."""

import runpy
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

JOBS = Path(__file__).parents[2] / "jobs"


@cache
def main_of(name):
    return runpy.run_path(str(JOBS / f"{name}.py"))["main"]


def run_here(capsys, name, *arguments):
    """What the job's `main` prints and returns for these arguments, and argparse's refusals, as a process would."""
    given = list(map(str, arguments))
    capsys.readouterr()
    try:
        status = main_of(name)(given)
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    return CompletedProcess([name, *given], status, printed.out, printed.err)
