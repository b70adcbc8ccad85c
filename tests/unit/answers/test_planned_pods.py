"""The pods that manifests would create."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.answers.parameters import InvalidRequest
from gputally.answers.planned_pods import (
    MOST_KINDS,
    READERS,
    not_modelled,
    planned_classes,
    planned_pods,
    pod_kind_of,
)
from gputally.frameworks.manifest import PodKind
from gputally.model.rules import ResourceRule
from gputally.placement.needs import needs_of
from tests.unit.answers.pending_world import RULES

Json = dict[str, Any]


def template(gpus: int = 1, **spec: object) -> Json:
    requests = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [requests], **spec}}


VERSIONS = {
    "Pod": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Deployment": "apps/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "PriorityClass": "scheduling.k8s.io/v1",
}


def manifest(kind: str, spec: Json, name: str = "a", *, version: str = "") -> Json:
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": version or VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}


VOLCANO = manifest(
    "Job",
    {
        "minAvailable": 3,
        "schedulerName": "gang-scheduler",
        "priorityClassName": "of-the-group-alone",
        "tasks": [
            {"name": "ps", "replicas": 1, "template": template(1, schedulerName="own")},
            {"name": "worker", "replicas": 2, "template": template(8)},
            {"name": "none", "replicas": 0, "template": template(8)},
            {"replicas": 1, "template": template(2)},
        ],
    },
    version="batch.volcano.sh/v1alpha1",
)
"""A job of Volcano, whose kind has the name of that of Kubernetes."""


def planned(document: Json) -> list[tuple[str, int, int]]:
    """The name, number and GPUs of all pods."""
    found = planned_pods(json.dumps(document).encode())
    return [(each.name, each.number, dict(needs_of(each.pod, RULES).amounts)["nvidia.com/gpu"]) for each in found]


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        (manifest("Pod", template(8)["spec"]), [("Pod ml/a", 1, 8)]),
        (manifest("Job", {"parallelism": 4, "template": template(2)}), [("Job ml/a", 4, 2)]),
        (manifest("Job", {"template": template(2)}), [("Job ml/a", 1, 2)]),
        (
            manifest("CronJob", {"jobTemplate": {"spec": {"parallelism": 2, "template": template()}}}),
            [("CronJob ml/a", 2, 1)],
        ),
        (manifest("Deployment", {"replicas": 3, "template": template()}), [("Deployment ml/a", 3, 1)]),
        (manifest("Deployment", {"replicas": 0, "template": template()}), None),
        (
            manifest(
                "PyTorchJob",
                {
                    "pytorchReplicaSpecs": {
                        "Master": {"template": template(8)},
                        "Worker": {"replicas": 3, "template": template(8)},
                    }
                },
            ),
            [("PyTorchJob ml/a Master", 1, 8), ("PyTorchJob ml/a Worker", 3, 8)],
        ),
        (
            manifest(
                "JobSet",
                {
                    "replicatedJobs": [
                        {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": template(8)}}}
                    ]
                },
            ),
            [("JobSet ml/a w", 8, 8)],
        ),
        (
            {
                "kind": "List",
                "items": [
                    manifest("Pod", template(1)["spec"]),
                    {"kind": "ConfigMap"},
                    manifest("Pod", template(2)["spec"], "b"),
                ],
            },
            [("Pod ml/a", 1, 1), ("Pod ml/b", 1, 2)],
        ),
    ],
)
def test_each_kind_has_its_pods(document: Json, pods: list[tuple[str, int, int]] | None) -> None:
    if pods is None:
        with pytest.raises(InvalidRequest, match="the manifest creates no pods"):
            planned(document)
    else:
        assert planned(document) == pods


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not the JSON of a manifest"),
        (b"\xff\xfe", "the body is not the JSON of a manifest"),
        (b"[" * 100_000, "the manifest is not valid"),
        (b'{"kind":"Pod","spec":' * 20_000, "the body is not the JSON of a manifest"),
        (b"{}", "the manifest is not valid: Object missing required field `kind`"),
        (b'{"kind": "Node"}', "the manifest creates no pods"),
        (b'{"kind": "List", "items": [1]}', "the manifest is not valid"),
        (b'{"kind": "Pod", "spec": {"containers": 7}}', "Pod default/unnamed: Expected `array`"),
        (b'{"kind": "Job", "metadata": {"name": "a"}, "spec": {"parallelism": 1001}}', "Job default/a has 1001 pods"),
        (b'{"kind": "Job", "spec": {"parallelism": -1}}', "Job default/unnamed has -1 pods; use 1,000 at most"),
        (b'{"kind": "Job", "spec": {"parallelism": 99999999999999999999999}}', "Job default/unnamed has 99"),
    ],
)
def test_a_hostile_body_is_rejected(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        planned_pods(body)

    assert str(error.value).startswith(message)


def test_a_volcano_job_is_read_as_what_it_is() -> None:
    assert planned(VOLCANO) == [
        ("VolcanoJob ml/a ps", 1, 1),
        ("VolcanoJob ml/a worker", 2, 8),
        ("VolcanoJob ml/a default3", 1, 2),
    ]
    specs = [each.pod.spec for each in planned_pods(json.dumps(VOLCANO).encode())]
    assert [each.scheduler_name for each in specs] == ["own", "gang-scheduler", "gang-scheduler"]
    assert {each.priority_class_name for each in specs} == {""}, "its class is that of its PodGroup"


@pytest.mark.parametrize("kind", READERS)
def test_a_kind_is_known_only_in_its_own_group(kind: PodKind) -> None:
    assert pod_kind_of(f"{kind.group}/v1".lstrip("/"), kind.kind) == kind
    assert pod_kind_of("example.com/v1", kind.kind) is None


RAY = manifest("RayJob", {"rayClusterSpec": {"headGroupSpec": {"template": template(1)}}}, version="ray.io/v1")
CLAIMS = manifest("Thing", {"p": {"containers": [{}], "resourceClaims": [{"name": "c"}]}}, version="example.com/v1")
SERVED = manifest(
    "InferenceService",
    {"predictor": {"model": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}},
    version="serving.kserve.io/v1beta1",
)
LOGS = manifest("DaemonSet", {"template": {"spec": {"containers": [{"name": "logs"}]}}}, version="apps/v1")
OWN = manifest(
    "Job", {"template": {"spec": {"containers": [{"resources": {"limits": {"x.org/acc": 1}}}]}}}, version="x.org/v1"
)


@pytest.mark.parametrize(
    ("document", "name", "has_gpus"),
    [
        (RAY, "RayJob.ray.io ml/a", True),
        (CLAIMS, "Thing.example.com ml/a", True),
        (SERVED, "InferenceService.serving.kserve.io ml/a", True),
        (OWN, "Job.x.org ml/a", True),
        (LOGS, "DaemonSet ml/a", False),
    ],
)
def test_an_unknown_kind_with_pods_says_so_by_name(document: Json, name: str, *, has_gpus: bool) -> None:
    rules = replace(RULES, resources=(ResourceRule(pattern="x.org/acc", weighing="whole"),))
    beside = {"kind": "List", "items": [manifest("Pod", template()["spec"]), document, {"kind": "ConfigMap"}]}

    assert not_modelled(json.dumps(beside).encode(), rules) == [name] * has_gpus
    with pytest.raises(InvalidRequest, match=f"^the pods of {name} are not modelled; use one of Pod, .*, VolcanoJob$"):
        planned(document)


def test_the_class_of_another_group_is_not_one_of_kubernetes() -> None:
    classes = [manifest("PriorityClass", {}, "a") | {"value": 7}, manifest("PriorityClass", {}, version="x.org/v1")]

    found = planned_classes(json.dumps({"kind": "List", "items": classes}).encode())
    assert [(each.name, each.value) for each in found] == [("a", 7)]


def test_the_number_of_templates_is_limited() -> None:
    many = {"kind": "List", "items": [manifest("Pod", template()["spec"])] * (MOST_KINDS + 1)}

    with pytest.raises(InvalidRequest, match="has 21 pod templates; use 20 at most"):
        planned(many)
