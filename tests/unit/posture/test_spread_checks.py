"""Services of which all ready replicas are on one node."""

from pathlib import Path

import pytest

from gputally.model.rules import Rules
from gputally.posture.document import posture_of
from tests.unit.posture.postures import Json, a_class, found_in, pod_spec, read

SERVING = a_class("serving", 1000)


def a_node(name: str) -> Json:
    capacity = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}}


TWO = (a_node("n1"), a_node("n2"))


def replica(
    number: int,
    node: str = "n1",
    *,
    ready: str = "True",
    class_name: str = "serving",
    labels: Json | None = None,
    owner: tuple[str, str] | None = ("ReplicaSet", "chat-5d9c"),
) -> Json:
    owners = (
        [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": "u", "controller": True}] if owner else []
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"chat-{number}",
            "namespace": "ml",
            "labels": {"pod-template-hash": "5d9c"} | (labels or {}),
            "ownerReferences": owners,
        },
        "spec": pod_spec(priorityClassName=class_name, nodeName=node),
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }


FOUND = [("replicas-on-one-node", "Deployment ml/chat")]


def test_all_ready_replicas_on_one_node_are_reported(tmp_path: Path) -> None:
    found = read(tmp_path, SERVING, *TWO, replica(1), replica(2), replica(3, "n2", ready="False"))

    [finding] = posture_of(found, Rules()).findings
    assert (finding.check, str(finding.object)) == FOUND[0]
    assert finding.what == "all 2 ready replicas are on node n1"


def test_the_label_says_that_pods_serve_whatever_their_class(tmp_path: Path) -> None:
    pods = [replica(number, class_name="plain", labels={"workload-type": "inference"}) for number in (1, 2)]

    assert found_in(tmp_path, a_class("plain", 1000), *TWO, *pods) == FOUND


@pytest.mark.parametrize(
    "objects",
    [
        (*TWO, replica(1), replica(2, "n2")),
        (*TWO, replica(1)),
        (*TWO, replica(1), replica(2, ready="False")),
        (a_node("n1"), replica(1), replica(2)),
        (*TWO, replica(1, owner=None), replica(2, owner=None)),
        (*TWO, replica(1, owner=("Job", "batch")), replica(2, owner=("Job", "batch"))),
        (*TWO, replica(1), replica(2, owner=("ReplicaSet", "other-5d9c"))),
    ],
    ids=["two nodes", "one replica", "one ready", "one node has GPUs", "no owner", "job", "two services"],
)
def test_other_pods_on_one_node_are_not_reported(tmp_path: Path, objects: tuple[Json, ...]) -> None:
    assert found_in(tmp_path, SERVING, *objects) == []


def test_training_in_a_serving_class_is_no_service(tmp_path: Path) -> None:
    pods = [replica(number, labels={"workload-type": "training"}) for number in (1, 2)]

    assert [check for check, _ in found_in(tmp_path, SERVING, *TWO, *pods)] == ["training-in-serving-class"]
