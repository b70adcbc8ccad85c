"""A real Kueue beside the real control plane, without webhooks: tests suspend their Jobs themselves."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from hack.build import KUEUE
from tests.chart.schemas import module_folder
from tests.cluster.api import Api
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, ControlPlane, free_ports
from tests.cluster.manifests import GPU, POOL, Json, metadata
from tests.cluster.objects import condition
from tests.fakes.certificates import Certificates

_CERTIFICATES = Path("/etc/kueue/metrics/certs")
"""Where Kueue reads the certificate of its metrics; it has no setting for that."""
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
API = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
CLASS = "kueue.x-k8s.io/priority-class"


@asynccontextmanager
async def kueue(plane: ControlPlane, api: Api, scratch: Path) -> AsyncIterator[None]:
    """Run Kueue for Jobs of batch/v1. Skips the test where nobody may write to /etc."""
    if os.geteuid():
        pytest.skip(f"Kueue reads a certificate in {_CERTIFICATES}: needs root")
    await _define(api)
    with_certificates(scratch)
    health, metrics, webhooks = free_ports(3)
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}"},
        "webhook": {"port": webhooks, "host": LOOPBACK, "certDir": str(_CERTIFICATES)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    (scratch / "kueue.yaml").write_text(yaml.safe_dump(config))
    environment = ["/usr/bin/env", f"KUBECONFIG={plane.kubeconfig('admin')}", str(KUEUE.path)]
    arguments = [f"--config={scratch / 'kueue.yaml'}", "--feature-gates=VisibilityOnDemand=false"]
    component = Component(
        [*environment, *arguments], log=scratch / "kueue.log", health=f"http://{LOOPBACK}:{health}/readyz"
    )
    component.launch()
    try:
        await component.ready()
        yield
    finally:
        component.kill()
        shutil.rmtree(_CERTIFICATES, ignore_errors=True)


def with_certificates(scratch: Path) -> None:
    """Write a certificate where Kueue expects it."""
    (scratch / "certificates").mkdir()
    made = Certificates(scratch / "certificates")
    _CERTIFICATES.mkdir(parents=True, exist_ok=True)
    shutil.copy(made.certificate("server"), _CERTIFICATES / "tls.crt")
    shutil.copy(made.key("server"), _CERTIFICATES / "tls.key")


async def _define(api: Api) -> None:
    """Create Kueue's CRDs."""
    for file in sorted((module_folder("sigs.k8s.io/kueue", "kueue") / "config/components/crd/bases").iterdir()):
        definition = yaml.load(file.read_text(), yaml.CSafeLoader)
        await api.create_once(definition)
        await api.wait_for(
            f"{_DEFINITIONS}/{definition['metadata']['name']}",
            lambda found: bool(found) and condition(found or {}, "Established").get("status") == "True",
        )


def queue(place: str, *, gpus: int, lends_to: str = "") -> list[Json]:
    """A queue of so many GPUs on the nodes of `place`, in which higher priorities preempt lower ones.

    It lends GPUs to the queue `lends_to`, which has none, and reclaims them whatever the priorities.
    """
    made = _queue(place, place, gpus=gpus, cohort=place if lends_to else "")
    return [*made, *_queue(place, lends_to, gpus=0, cohort=place)[1:]] if lends_to else made


def _queue(place: str, name: str, *, gpus: int, cohort: str) -> list[Json]:
    quotas = {GPU: gpus, "cpu": 96, "memory": "1Ti"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    flavor = {"name": place, "resources": resources}
    return [
        _object("ResourceFlavor", metadata(place), {"nodeLabels": {POOL: place}}),
        _object(
            "ClusterQueue",
            metadata(name),
            {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                "resourceGroups": [{"coveredResources": list(quotas), "flavors": [flavor]}],
            }
            | ({"cohortName": cohort} if cohort else {}),
        ),
        _object("LocalQueue", metadata(name, place), {"clusterQueue": name}),
    ]


def workload_class(name: str, value: int) -> Json:
    """A priority in queues, which leaves that of pods as it is."""
    return {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": metadata(name), "value": value}


def _object(kind: str, meta: Json, spec: Mapping[str, object]) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": dict(spec)}
