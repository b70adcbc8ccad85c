"""Jobs that wait in a queue of Kueue without pods, of all kinds that it suspends."""

import pytest

from gputally.answers.uncreated_workloads import workload_sentence
from gputally.frameworks.kueue import KueueWorkload
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from gputally.model.units import GPU
from tests.core.kueue import PYTORCH, condition, kueue_workload, unreserved
from tests.core.manifests import Json, us
from tests.core.policies import priority_class
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.core.replay import Replay

WORKLOADS = Kind.KUEUE_WORKLOADS
NEEDED = "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor f, 4 more"
ENDLESS = "couldn't assign flavors to pod set worker: insufficient quota for nvidia.com/gpu in flavor f, "
NEVER = ENDLESS + "request > maximum capacity (16 > 8)"
JOB: Json = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}


def replay(*workloads: KueueWorkload) -> Replay:
    found = Replay(rules=Rules(watched=(WORKLOADS,)))
    found.see_object(Kind.PRIORITY_CLASSES, priority_class("train", 1000), at=2)
    found.relist_objects(Kind.JOBS, at=3)
    for each in workloads:
        found.see_object(WORKLOADS, each, at=20)
    return found


def waiting(of: Replay) -> list[tuple[str, str, str, int, int]]:
    """Kind, name, reason, missing pods and the GPUs of each."""
    of.fleet.advance(us(100))
    found = of.fleet.uncreated.workloads(at_us=of.fleet.now_us).described()
    return sorted(
        (each.owner.reference.kind, each.job, each.reason.value, each.pods, each.quantity // GPU) for each in found
    )


def test_a_job_without_quota_waits_in_its_queue_with_what_kueue_says() -> None:
    found = replay(kueue_workload(unreserved(10, message=NEEDED)))

    assert waiting(found) == [("PyTorchJob", "train", "queued", 2, 4)]
    [each] = found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()
    assert (each.tier, each.tenant, each.since_us) == ("train", "ml", us(10))
    assert workload_sentence(each) == f"its queue has not admitted it (Kueue, queue research: {NEEDED})"


@pytest.mark.parametrize(("reason", "message"), [("ExceedsMaxQuota", "too much"), ("Pending", NEVER)])
def test_a_job_that_asks_for_more_than_its_queue_has_is_never_admitted(reason: str, message: str) -> None:
    found = replay(kueue_workload(unreserved(10, reason=reason, message=message)))

    assert waiting(found) == [("PyTorchJob", "train", "quota_never", 2, 4)]
    [each] = found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()
    assert workload_sentence(each) == f"its queue can never admit it (Kueue, queue research: {message})"


def test_each_pod_set_with_gpus_counts() -> None:
    found = replay(kueue_workload(unreserved(10), gpus={"head": 0, "small": 1, "large": 8}))

    assert waiting(found) == [("PyTorchJob", "train", "queued", 2, 1), ("PyTorchJob", "train", "queued", 2, 8)]


def test_a_workload_that_kueue_has_not_looked_at_waits_since_its_creation() -> None:
    found = replay(kueue_workload())

    assert waiting(found) == [("PyTorchJob", "train", "queued", 2, 4)]
    assert found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()[0].since_us == us(5)


def test_a_job_that_waits_for_admission_checks_still_waits() -> None:
    found = replay(kueue_workload(condition("QuotaReserved", "True", at=10, message="quota reserved")))

    [each] = found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()
    assert "its quota is reserved, admission checks are not done" in each.text


@pytest.mark.parametrize(
    "workload",
    [
        kueue_workload(condition("QuotaReserved", "True", at=10), condition("Admitted", "True", at=11)),
        kueue_workload(unreserved(10), condition("Finished", "True", at=30)),
        kueue_workload(unreserved(10), active=False),
        kueue_workload(unreserved(10), gpus={"worker": 0}),
        kueue_workload(unreserved(10), owner=None),
        kueue_workload(unreserved(10), owner=PYTORCH | {"kind": "Pod"}),  # such pods exist, with a gate
        kueue_workload(unreserved(10), owner=PYTORCH | {"kind": "LeaderWorkerSet"}),
    ],
)
def test_others_wait_for_no_queue_without_pods(workload: KueueWorkload) -> None:
    assert waiting(replay(workload)) == []


def test_a_job_of_batch_counts_once_with_the_reason_of_its_workload() -> None:
    found = replay(kueue_workload(unreserved(10, message=NEEDED), owner=JOB))
    assert waiting(found) == []  # the Job itself is not known yet

    job = parallel_job("train", gpus=4, conditions=("Suspended",), queue="research", suspend=True, parallelism=2)
    found.see_object(Kind.JOBS, job, at=30)
    [each] = found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()
    assert (each.pods, each.text) == (2, f"Kueue, queue research: {NEEDED}")

    found.see_object(WORKLOADS, kueue_workload(unreserved(10, reason="ExceedsMaxQuota"), owner=JOB), at=40)
    assert waiting(found) == [("Job", "train", "quota_never", 2, 4)]


@pytest.mark.parametrize("how", ["admitted", "deleted", "missing"])
def test_a_workload_that_is_admitted_or_gone_waits_no_longer(how: str) -> None:
    workload = kueue_workload(unreserved(10))
    found = replay(workload)
    if how == "admitted":
        found.see_object(WORKLOADS, kueue_workload(condition("Admitted", "True", at=50)), at=50)
    elif how == "deleted":
        found.lose_object(WORKLOADS, workload, at=50)
    else:
        found.relist_objects(WORKLOADS, at=50)

    assert waiting(found) == []
    found.see_object(WORKLOADS, workload, at=60)
    assert waiting(found) == [("PyTorchJob", "train", "queued", 2, 4)]


def test_a_job_that_its_queue_holds_back_is_not_counted_by_an_earlier_refusal_as_well() -> None:
    found = Replay(rules=Rules(watched=(WORKLOADS, Kind.FAILED_CREATES)))
    found.relist_objects(Kind.JOBS, at=3)
    event = failed_create(exceeded(), at=15, kind="PyTorchJob", apiVersion="kubeflow.org/v1", uid=PYTORCH["uid"])
    found.see_object(Kind.FAILED_CREATES, event, at=15)
    assert [each[2] for each in waiting(found)] == ["quota_never"]

    queued = kueue_workload(unreserved(110))
    found.see_object(WORKLOADS, queued, at=110)
    assert [each[2] for each in waiting(found)] == ["queued"]

    found.lose_object(WORKLOADS, queued, at=120)
    assert [each[2] for each in waiting(found)] == ["quota_never"]
