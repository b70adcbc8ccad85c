"""Requests of pods that are resized in place, as the scheduler counts them."""

from typing import Any

import msgspec
import pytest

from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.rules import Rules
from gputally.placement.needs import needs_of, taken_of

Json = dict[str, Any]
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


def container(cpu: str, name: str = "main", **more: object) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}} | more


def status_of(allocated: str, actual: str, name: str = "main") -> Json:
    return {"name": name, "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}


def pod(*containers: Json, status: Json, **spec: object) -> PlaceablePod:
    return msgspec.convert(
        {"metadata": {"uid": "u"}, "spec": {"containers": containers} | spec, "status": status}, PlaceablePod
    )


def resized(spec: str, allocated: str, actual: str, condition: str = "", reason: str = "") -> PlaceablePod:
    conditions = [{"type": condition, "status": "True", "reason": reason}] if condition else []
    return pod(container(spec), status={"containerStatuses": [status_of(allocated, actual)], "conditions": conditions})


def cpu(found: PlaceablePod) -> int:
    return taken_of(found).of("cpu")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (resized("2", "2", "2"), 2000),
        (resized("6", "2", "2", PENDING, "Deferred"), 6000),
        (resized("6", "2", "2", PENDING, "Infeasible"), 2000),
        (resized("6", "6", "2", IN_PROGRESS), 6000),
        (resized("1", "1", "2", IN_PROGRESS), 2000),
        (resized("1", "2", "2"), 2000),
        (resized("500m", "1", "1500m", PENDING, "Infeasible"), 1500),
        (resized("6", "2", "2", IN_PROGRESS, "Infeasible"), 6000),
    ],
    ids=["done", "deferred", "infeasible", "growing", "shrinking", "asked", "infeasible again", "other condition"],
)
def test_the_largest_of_spec_allocated_and_actual_counts_and_no_spec_that_is_infeasible(
    found: PlaceablePod, expected: int
) -> None:
    assert cpu(found) == expected


def test_each_container_counts_by_its_own_largest() -> None:
    found = pod(
        container("1", "a"),
        container("5", "b"),
        status={"containerStatuses": [status_of("1", "3", "a"), status_of("2", "2", "b")]},
    )

    assert cpu(found) == 8000


def test_each_resource_counts_by_its_own_largest() -> None:
    given = container("4") | {"resources": {"requests": {"cpu": "4", "memory": "1Gi", "example.com/gpu": "2"}}}
    status = status_of("1", "1")
    status["resources"]["requests"] |= {"memory": "3Gi"}

    found = pod(given, status={"containerStatuses": [status]})

    assert dict(taken_of(found).amounts) == {"cpu": 4000, "memory": 3 * 2**30, "example.com/gpu": 2, "pods": 1}


def test_a_sidecar_is_resized_and_an_init_container_is_not() -> None:
    sidecar = container("1", "mesh", restartPolicy="Always")
    statuses = [status_of("2", "2", "mesh"), status_of("9", "9", "first")]

    found = pod(
        container("1"),
        initContainers=[sidecar, container("1", "first")],
        status={"initContainerStatuses": statuses},
    )

    assert cpu(found) == 3000


@pytest.mark.parametrize(("reason", "expected"), [("Deferred", 8250), ("Infeasible", 4250)])
def test_requests_of_the_pod_as_a_whole_are_resized_too(reason: str, expected: int) -> None:
    found = pod(
        container("1"),
        resources={"requests": {"cpu": "8"}},
        overhead={"cpu": "250m"},
        status={
            "allocatedResources": {"cpu": "4", "memory": "8Gi"},
            "resources": {"requests": {"cpu": "3", "memory": "8Gi"}},
            "conditions": [{"type": PENDING, "status": "True", "reason": reason}],
        },
    )

    assert dict(taken_of(found).amounts) == {"cpu": expected, "pods": 1}


def test_what_a_kubelet_writes_of_the_whole_of_a_pod_without_such_requests_is_ignored() -> None:
    status = {"allocatedResources": {"cpu": "9"}, "resources": {"requests": {"cpu": "9"}}}

    assert cpu(pod(container("1"), status=status)) == 1000


def test_a_kubelet_that_does_not_know_resizes_leaves_the_spec() -> None:
    found = pod(container("1"), status={"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]})

    assert cpu(found) == 1000


def test_a_waiting_pod_needs_what_its_spec_requests() -> None:
    assert dict(needs_of(resized("6", "2", "9"), Rules()).amounts)["cpu"] == 6000


def test_a_quantity_that_nobody_can_read_leaves_the_spec() -> None:
    assert cpu(resized("6", "much", "9")) == 6000
