"""Pulsar's own command line against `headgate serve` and against a real broker: the same, but for what is meant."""

import os
import re
import subprocess
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from cluster_processes import Tenant
from pulsar_standalone import Pulsar
from unit.quota.places import tables
from unit.service.test_serve import TOKEN, service, token_file

DIST = Path(__file__).parents[2] / ".cache" / "pulsar" / "apache-pulsar-4.0.8"
TIMEOUT_S = 120
COMMANDS = """resourcegroups create gold -mp 100 -bp 1000
resourcegroups get gold
resourcegroups update gold -md 50
resourcegroups get gold
resourcegroups list
resourcegroups get none
resourcegroups delete none
namespaces set-resource-group TENANT/a -rgn gold
namespaces get-resource-group TENANT/a
resourcegroups delete gold
namespaces remove-resource-group TENANT/a
namespaces get-resource-group TENANT/a
namespaces set-resource-group TENANT/none -rgn gold
namespaces set-resource-group TENANT/a -rgn none
resourcegroups delete gold
resourcegroups list"""
MEANT = {
    "resourcegroups delete none": (
        "--- An unexpected error occurred in the server ---",
        "ResourceGroup does not exist",
    ),
    "resourcegroups delete gold": (
        "ResourceGroup is in use",
        "ResourceGroup is in use; detach it from every tenant, namespace and topic first",
    ),
    "namespaces set-resource-group TENANT/none -rgn gold": (
        "Namespace policies does not exist",
        "Namespace does not exist",
    ),
}
"""What a broker says first, and what headgate does. docs/serve.md has them all."""


def answers(url: str, tenant: str, folder: Path, *conf: str) -> list[tuple[str, str]]:
    """Each command, and the first paragraph that was printed for it; all run in one process of Pulsar's shell."""
    folder.mkdir()
    (folder / "client.conf").write_text(
        "\n".join([f"webServiceUrl={url}", "brokerServiceUrl=pulsar://127.0.0.1:1", *conf])
    )
    commands = COMMANDS.splitlines()
    (folder / "commands").write_text("".join(f"admin {one.replace('TENANT', tenant)}\n" for one in commands))
    done = subprocess.run(
        [DIST / "bin" / "pulsar-shell", "-c", folder / "client.conf", "-f", folder / "commands", "--no-progress"],
        env=os.environ | {"PULSAR_EXTRA_OPTS": f"-Duser.home={folder}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,  # some commands are refused
        timeout=TIMEOUT_S,
    )
    _, *parts = re.split(r"^\[\d+/\d+\] Executing .*\n", done.stdout, flags=re.MULTILINE)
    assert len(parts) == len(commands), done.stdout
    return [(one, first_paragraph(part)) for one, part in zip(commands, parts, strict=True)]


def first_paragraph(text: str) -> str:
    lines = [line for line in text.splitlines() if " WARN " not in line and line != "Goodbye!"]
    return "\n".join(lines).strip().split("\n\n")[0].strip()


def test_pulsars_command_line_works_as_with_a_broker(pulsar_standalone: Pulsar, tmp_path: Path) -> None:
    tenant = Tenant(pulsar_standalone, tmp_path)
    of_broker = answers(pulsar_standalone.admin_url, tenant.name, tmp_path / "broker")
    tables(tmp_path / "out")
    write_deltalake(f"{tmp_path}/out/topic_usage", pa.table({"topic": [f"persistent://{tenant.name}/a/1"]}))
    with service(tmp_path / "out", "--token-file", token_file(tmp_path)) as one:
        plugin = "authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken"
        of_headgate = answers(one.url, tenant.name, tmp_path / "headgate", plugin, f"authParams=token:{TOKEN}")
    differences = {
        command: (said, answered)
        for (command, said), (_, answered) in zip(of_broker, of_headgate, strict=True)
        if said != answered
    }
    assert differences == MEANT
    assert dict(of_headgate)["resourcegroups get none"] == "ResourceGroup does not exist"
