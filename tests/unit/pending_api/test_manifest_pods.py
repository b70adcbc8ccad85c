"""The pods that manifests would create."""

import json
from typing import Any

import pytest

from gputally.pending_api.forecasts.manifest_pods import MOST_KINDS, planned_pods
from gputally.placement.objects.needs_of import needs_of
from gputally.report_api.report_request import InvalidRequest
from tests.unit.pending_api.pending_world import RULES

Json = dict[str, Any]


def template(gpus: int = 1, **spec: object) -> Json:
    requests = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [requests], **spec}}


def manifest(kind: str, spec: Json, name: str = "a") -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": spec}


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


def test_the_number_of_templates_is_limited() -> None:
    many = {"kind": "List", "items": [manifest("Pod", template()["spec"])] * (MOST_KINDS + 1)}

    with pytest.raises(InvalidRequest, match="has 21 pod templates; use 20 at most"):
        planned(many)
