"""The commands of kubectl in runbooks and on the page of backups, run by the real kubectl on the real control plane."""

import asyncio
import json
import re
import shlex
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hack.build import KUBECTL
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import gpu_node, gpu_pod, job
from tests.docs.pages import TEXTS, blocks

pytestmark = pytest.mark.e2e

PAGES = [page for page in TEXTS if page.startswith("docs/runbooks/") or page == "docs/backup.md"]
IMAGE = "example/gputally"
[RESTORE] = blocks(re.sub(r"^ {3}", "", TEXTS["docs/backup.md"], flags=re.MULTILINE), "yaml")
NEEDS = {
    "exec": "a container; tests/docs run what comes after the dashes, and tests/node all of it",
    "logs": "a container",
    "wait": "a container",
    "pod/gputally-restore": "a container",
    "certificates": "cert-manager",
    "certificaterequests": "cert-manager",
}
"""What a command needs that this cluster lacks, by its verb or resource."""


def shown(page: str) -> list[str]:
    """The page's commands, without what reads their output."""
    text = re.sub(r"^ {3}", "", TEXTS[page], flags=re.MULTILINE)
    console = "\n".join(blocks(text, "console")).replace("\\\n", " ")
    found = re.findall(r"^\$ kubectl (.*(?:\n[ ].*)*)", console, re.MULTILINE)
    return [re.split(r" [|<>] ", each)[0] for each in found]


COMMANDS = sorted({command for page in PAGES for command in shown(page)})
PLUGIN = "gputally "
"""Runs in the container of the aggregator."""
RUNNABLE = [each for each in COMMANDS if not each.startswith(PLUGIN) and not set(each.split()) & NEEDS.keys()]


class Ran(NamedTuple):
    status: int
    out: str


class Kubectl(NamedTuple):
    """kubectl as admin, in a namespace that stands for the installation's, with a node and its pod."""

    config: str
    place: str
    folder: Path
    """The current directory, with the file that the page of backups shows."""

    async def run(self, command: str) -> Ran:
        """Run a documented command, with names instead of placeholders. Nothing is applied: no container would run."""
        names = {"NODE": self.node, "NAMESPACE": self.place, "POD": "waits", "JOB": "waits", "NAME": "waits"}
        words = [names.get(word, word) for word in shlex.split(command.replace("-n gputally", f"-n {self.place}"))]
        words = [re.sub(r"=NODE$", f"={self.node}", word) for word in words]
        words += ["--dry-run=server", "--output=json"] if words[0] == "apply" else []
        process = await asyncio.create_subprocess_exec(
            KUBECTL.path, f"--kubeconfig={self.config}", *words, stdout=PIPE, stderr=STDOUT, cwd=self.folder
        )
        out, _ = await process.communicate()
        return Ran(process.returncode or 0, out.decode())

    @property
    def node(self) -> str:
        return f"{self.place}-node"


@pytest.fixture
async def kubectl(control_plane: ControlPlane, api: Api, place: str, tmp_path: Path) -> AsyncIterator[Kubectl]:
    found = Kubectl(str(control_plane.kubeconfig("admin")), place, tmp_path)
    (tmp_path / "restore.yaml").write_text(RESTORE.replace("namespace: gputally", f"namespace: {place}"))
    await api.create(gpu_node(found.node, gpus=1, pool=place))
    await api.create(gpu_pod("waits", place, gpus=2))
    await api.create(job(gpu_pod("waits", place), suspend=True))
    await api.create(aggregator(place))
    yield found
    await api.delete(f"/apis/apps/v1/namespaces/{place}/deployments/gputally-aggregator")


def aggregator(place: str) -> dict[str, object]:
    labels = {"app.kubernetes.io/component": "aggregator"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "aggregator", "image": IMAGE}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gputally-aggregator", "namespace": place},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }


def test_most_commands_can_be_run() -> None:
    assert len(RUNNABLE) > 20
    assert {command.split()[0] for command in RUNNABLE} == {"apply", "describe", "get", "scale"}


async def test_every_documented_command_is_valid(kubectl: Kubectl) -> None:
    ran = {command: await kubectl.run(command) for command in RUNNABLE}

    assert {command: found.out for command, found in ran.items() if found.status} == {}


async def test_columns_show_what_they_are_called(kubectl: Kubectl) -> None:
    columns = [command for command in RUNNABLE if "custom-columns" in command and " nodes " in command]
    assert len(columns) == 4

    for command in columns:
        lines = (await kubectl.run(command)).out.splitlines()
        [ours] = [line.split() for line in lines if line.startswith(kubectl.node)]
        assert ours[1:] == ["1"] * (len(ours) - 1), command


async def test_the_pod_that_restores_mounts_the_ledger_where_its_variable_says(kubectl: Kubectl) -> None:
    [command] = [command for command in RUNNABLE if command.startswith("apply ")]

    pod = json.loads((await kubectl.run(command)).out)

    [container] = pod["spec"]["containers"]
    [ledger] = [each["value"] for each in container["env"] if each["name"] == "GPUTALLY_LEDGER"]
    [folder] = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "ledger"]
    assert ledger == f"{folder}/gputally.db"
    assert {"name": "ledger", "persistentVolumeClaim": {"claimName": "gputally-ledger"}} in pod["spec"]["volumes"]
