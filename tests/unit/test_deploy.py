"""Units and manifests: systemd and Kubernetes take them, and each command has the options that they give it."""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.cli import main
from headgate.jobs import add_job_arguments

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
KUBERNETES = ROOT / "deploy" / "kubernetes"
WORKLOADS = [KUBERNETES / f"{name}.yaml" for name in ("throttle", "serve", "collect", "enforce")]


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


def arguments_of(manifest):
    (line,) = re.findall(r"^ +args: (.*)$", manifest.read_text(), re.MULTILINE)
    return json.loads(line)


COMMANDS = {f"systemd/{unit.stem}": command_of(unit) for unit in UNITS}
COMMANDS |= {f"kubernetes/{one.stem}": ["headgate", *arguments_of(one)] for one in WORKLOADS}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_have_the_options(command, capsys):
    program, subcommand, *arguments = command
    if Path(program).name == "headgate":
        shown = help_of(capsys, subcommand)
    else:
        assert Path(program).name == "spark-submit.sh"
        shown = help_of_job(Path(subcommand).relative_to("/opt/headgate"))
    if subcommand == "job":
        parser = argparse.ArgumentParser()
        add_job_arguments(parser)
        job = parser.parse_args(arguments)
        arguments, shown = job.arguments, help_of_job(Path("jobs", f"{job.job}.py"))
    options = {one for one in arguments if one.startswith("--")}
    assert options <= set(re.findall(r"--[a-z-]+", shown))
    assert len(options) > 1


def help_of(capsys, subcommand):
    with pytest.raises(SystemExit):
        main([subcommand, "--help"])
    return capsys.readouterr().out


def help_of_job(job):
    return subprocess.run([sys.executable, ROOT / job, "--help"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("manifest", WORKLOADS, ids=lambda manifest: manifest.stem)
def test_a_pod_mounts_what_it_has_and_reads_and_writes_there_alone(manifest):
    text = manifest.read_text()
    parts = re.search(r"volumeMounts:\n(.*?) {6}volumes:\n(.*?)(?:^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    mounts, volumes = parts.groups()
    names = re.compile(r"^ +- name: (.*)$", re.MULTILINE)
    assert names.findall(mounts) == names.findall(volumes)
    folders = re.findall(r"mountPath: (.*)", mounts)
    paths = [one for one in arguments_of(manifest) if one.startswith("/")]
    assert paths
    assert all(any(Path(path).is_relative_to(folder) for folder in folders) for path in paths)


@pytest.mark.parametrize("manifest", WORKLOADS, ids=lambda manifest: manifest.stem)
def test_a_probe_asks_where_the_program_listens(manifest):
    text, arguments = manifest.read_text(), arguments_of(manifest)
    (container_port,) = re.findall(r"containerPort: (.*)", text)
    port = arguments[arguments.index("--port" if "--port" in arguments else "--metrics-port") + 1]
    assert port == container_port
    assert {port} >= set(re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", text))
    assert text.count("Probe:") == 2


def test_kubernetes_takes_the_manifests_together(tmp_path):
    """With the shipped conf files for those of an operator."""
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("no kubectl")
    folder = shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    shutil.copytree(ROOT / "conf", folder / "conf")
    made = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True).stdout
    kinds = ["ConfigMap", "Deployment", "Namespace", "PersistentVolumeClaim", *["Service"] * 2, *["StatefulSet"] * 3]
    assert kinds == sorted(re.findall("^kind: (.*)$", made, re.MULTILINE))
    (conf,) = re.findall(r"^kind: ConfigMap\nmetadata:\n  name: (.*)$", made, re.MULTILINE)
    assert made.count(f"name: {conf}\n") == 3, "the job and the page have it"


def test_the_image_is_made_of_what_is_there():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile, re.MULTILINE) for name in line.split()]
    assert [] == [name for name in copied if not (ROOT / name).exists()]
    installed = re.search(r"cp -R \"\$root\"/\{(.*?)\} \"\$work/source\"", (ROOT / "deploy" / "install.sh").read_text())
    assert set(installed[1].split(",")) <= set(copied)
