"""Workloads whose pods are refused are looked up on a simulated cluster, until their pods exist."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gputally.aggregator import workload_lookup
from gputally.aggregator.aggregator import RunningAggregator
from gputally.aggregator.settings import Settings
from gputally.model.kube.kinds import Kind
from gputally_sim.cluster import SimCluster
from tests.cluster.manifests import deployment, gpu_pod, job, priority_class
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.until import until


@pytest.fixture
async def running(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningAggregator]:
    """The aggregator beside a Deployment and a Job whose PriorityClass does not exist."""
    monkeypatch.setattr(workload_lookup, "_AGAIN_SECONDS", 0.1)
    for workload in (
        deployment(gpu_pod("serve", "default", gpus=2, priorityClassName="missing"), replicas=3),
        job(gpu_pod("train", "default", gpus=8, priorityClassName="missing"), parallelism=2),
    ):
        plural = f"{workload['kind'].lower()}s"
        cluster.registry.create(plural, workload, "default")
    watching = replace(settings, watched=(Kind.FAILED_CREATES,))
    async with aggregating(watching, cluster) as (running, _):
        await until_ready(running)
        yield running


def lacking(running: RunningAggregator) -> dict[str, tuple[str, int]]:
    """Reason and missing pods by job."""
    found = running.pipeline.fleet.uncreated.workloads(at_us=running.pipeline.fleet.now_us).described()
    return {f"{each.job_kind}/{each.job}": (each.reason.value, each.pods) for each in found}


async def test_refused_workloads_lack_their_pods_until_these_exist(
    running: RunningAggregator, cluster: SimCluster
) -> None:
    await until(lambda: lacking(running) == {"Deployment/serve": ("refused", 3), "Job/train": ("refused", 2)})

    cluster.registry.create("priorityclasses", priority_class("missing", 100))
    await until(lambda: lacking(running) == {})


async def test_a_deleted_workload_lacks_nothing(running: RunningAggregator, cluster: SimCluster) -> None:
    await until(lambda: len(lacking(running)) == 2)

    cluster.registry.delete("deployments", ("default", "serve"))
    cluster.registry.delete("jobs", ("default", "train"))
    await until(lambda: lacking(running) == {})


async def test_another_workload_of_the_same_name_is_not_the_one_that_was_refused(
    running: RunningAggregator, cluster: SimCluster
) -> None:
    await until(lambda: len(lacking(running)) == 2)
    [old] = [each for each in cluster.store.docs("replicasets") if each["metadata"]["name"].startswith("serve-")]

    cluster.registry.delete("jobs", ("default", "train"))
    of = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "namespace": "default"}
    named = of | {"name": old["metadata"]["name"], "uid": "another"}
    cluster.registry.create(
        "events", {"metadata": {"name": "forged"}, "reason": "FailedCreate", "involvedObject": named}, "default"
    )
    uncreated = running.pipeline.fleet.uncreated
    await until(lambda: any(owner.reference.uid == "another" for owner, _ in uncreated.failed))
    await until(lambda: not any(owner.reference.uid == "another" for owner, _ in uncreated.failed))

    assert lacking(running) == {"Deployment/serve": ("refused", 3)}


async def test_without_the_right_the_events_alone_count(
    running: RunningAggregator, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await until(lambda: len(lacking(running)) == 2)
    monkeypatch.setattr(workload_lookup, "FORBIDDEN_SECONDS", 0.1)

    cluster.faults.forbidden = {"replicasets"}
    await until(lambda: "grant get on replicasets in API group 'apps'" in caplog.text)
    cluster.faults.forbidden = set()
    cluster.registry.create("priorityclasses", priority_class("missing", 100))
    await until(lambda: lacking(running) == {})
