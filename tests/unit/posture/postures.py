"""Postures of manifests, for tests."""

from pathlib import Path
from typing import Any

import yaml

from gputally.commands.from_cluster.posture_sources import read_manifests
from gputally.model.rules import Rules
from gputally.posture.document import Posture, posture_of
from gputally.posture.objects import PostureInput

MANIFESTS = Path(__file__).parent / "manifests"

Json = dict[str, Any]


def posture_of_file(name: str, rules: Rules | None = None) -> Posture:
    return posture_of(read_manifests([MANIFESTS / name]), rules or Rules())


def read(tmp_path: Path, *manifests: Json) -> PostureInput:
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return read_manifests([file])


def found_in(tmp_path: Path, *manifests: Json) -> list[tuple[str, str]]:
    """Check and object of each finding."""
    posture = posture_of(read(tmp_path, *manifests), Rules())
    return [(each.check, str(each.object)) for each in posture.findings]


def pod_spec(*, gpus: object = 1, **spec: object) -> Json:
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"containers": [container], "restartPolicy": "Never"} | spec


def a_job(spec: Json | None = None, *, annotations: Json | None = None, **job: object) -> Json:
    """A Job that no check complains about, unless `job` or the `spec` of its pods changes that."""
    ignore = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    template = {"metadata": {"annotations": annotations or {}}, "spec": spec or pod_spec(priorityClassName="low")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"podFailurePolicy": ignore, "template": template} | job,
    }


def a_class(name: str, value: int, **fields: object) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | fields


HIGH_AND_LOW = (a_class("high", 1000), a_class("low", 100))


def a_deployment(spec: Json, *, replicas: int = 1, labels: Json | None = None) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": "ml"},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": labels or {}}, "spec": spec}},
    }


def a_quota(gpus: object, *, namespace: str = "ml", **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": namespace},
        "spec": {"hard": {"requests.nvidia.com/gpu": gpus}} | spec,
    }


def by_class(operator: str, *values: str) -> Json:
    term = {"scopeName": "PriorityClass", "operator": operator} | ({"values": list(values)} if values else {})
    return {"scopeSelector": {"matchExpressions": [term]}}
