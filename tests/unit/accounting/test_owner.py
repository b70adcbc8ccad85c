"""Of what a pod says of its owners, no more is kept than can be true."""

import dataclasses

import pytest
from msgspec.structs import replace

from gputally.model.kube.meta import OwnerReference, can_exist, controller_of
from tests.core.one_pod import RUNNING, cluster

WORKER = OwnerReference(kind="Worker", name="w", uid="u", api_version="ml.example/v1", controller=True)


@pytest.mark.parametrize(
    "true",
    [
        {"kind": "RayCluster", "api_version": "ray.io/v1"},
        {"kind": "Node", "api_version": "v1"},
        {"kind": "Odd-Kind9", "api_version": f"{'a.' * 126}a/v1alpha1"},
        {"name": "system:controller:job"},
        {"name": "x" * 253},
        {"name": "..."},
        {"uid": "u" * 128},
    ],
)  # fmt: skip
def test_what_an_api_server_could_serve_can_exist(true: dict[str, str]) -> None:
    assert can_exist(replace(WORKER, **true))


def test_the_controller_is_the_owner() -> None:
    queue = replace(WORKER, name="q", controller=None)

    assert controller_of([queue, WORKER]) == WORKER
    assert controller_of([queue]) is None
    assert controller_of(None) is None


@pytest.mark.parametrize(
    "forged",
    [{"name": "n" * 1_500_000}, {"kind": "k" * 1_500_000}, {"uid": "u" * 1_500_000}, {"apiVersion": "v" * 1_500_000}],
)
def test_of_an_owner_that_cannot_exist_nothing_is_kept_and_the_pod_is_its_own_job(forged: dict[str, str]) -> None:
    owner = {"apiVersion": "ml.example/v1", "kind": "Worker", "name": "w", "uid": "u", "controller": True} | forged
    replay = cluster()
    replay.see(dataclasses.replace(RUNNING, owners=(owner,)), at=13)
    replay.flush()

    [record] = replay.fleet.pods.records.values()
    assert record.owner is None
    assert (record.job_kind, record.job) == ("Pod", record.name)
    assert replay.fleet.pods.walks.wanted == {}
