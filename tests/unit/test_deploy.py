"""The systemd units: systemd takes them, and each command has the options that they give it."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.cli import main

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def command_of(unit):
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_the_unit(unit, tmp_path):
    if (verify := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd-analyze")
    program = tmp_path / "program"
    program.touch(0o755)
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={program}", unit.read_text(), flags=re.MULTILINE)
    own = tmp_path / unit.name
    own.write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE))
    done = subprocess.run([verify, "verify", "--man=no", own], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, "".join(line for line in done.stderr.splitlines() if unit.name in line))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_commands_have_the_options(unit, capsys):
    program, subcommand, *arguments = command_of(unit)
    assert (ROOT / Path(program).name).exists()
    if program.endswith("headgate"):
        with pytest.raises(SystemExit):
            main([subcommand, "--help"])
        shown = capsys.readouterr().out
    else:
        job = ROOT / Path(subcommand).relative_to("/opt/headgate")
        shown = subprocess.run([sys.executable, job, "--help"], capture_output=True, text=True, check=True).stdout
    options = {one for one in arguments if one.startswith("--")}
    assert options <= set(re.findall(r"--[a-z-]+", shown))
    assert len(options) > 1
