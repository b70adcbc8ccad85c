"""The rules for edge cases, each on both clusters, checked in the product's ledger and metrics."""

from unittest.mock import ANY

from tests.behaviour.product import Rows, Samples, total
from tests.behaviour.recorder import us
from tests.behaviour.stage import Stage
from tests.cluster.manifests import conduct, gpu_node, gpu_pod, job
from tests.cluster.objects import condition, container_state

SECOND = 1_000_000
TEAMS = {"lab": "lab-team"}
PODS = "/api/v1/namespaces/lab/pods"


async def test_a_pod_is_charged_for_its_start_and_its_run_to_the_second(stage: Stage) -> None:
    await furnish(stage)

    await stage.create(gpu_pod("short", "lab", annotations=conduct(start_after="2s", run_for="3s")))
    rows = await stage.product.query_until(SEGMENTS, lambda rows: len(rows) == 2 and closed(rows))

    assert [(state, end - start) for _, state, start, end in rows] == [
        ("starting", 2 * SECOND),
        ("running", 3 * SECOND),
    ]


async def test_two_pods_with_the_same_name_are_two_allocations(stage: Stage) -> None:
    await furnish(stage)

    lasted = dict[str, int]()
    for _ in range(2):
        await stage.create(gpu_pod("again", "lab", annotations=conduct(run_for="1s")))
        [pod] = await stage.pods(lambda items: [item["status"]["phase"] for item in items] == ["Succeeded"])
        bound_us = us(condition(pod, "PodScheduled")["lastTransitionTime"])
        lasted[pod["metadata"]["uid"]] = us(container_state(pod, "terminated")["finishedAt"]) - bound_us
        await stage.delete_all(f"{PODS}/again")
    both = {*lasted}
    rows = await stage.product.query_until(SEGMENTS, lambda rows: {row[0] for row in rows} == both and closed(rows))

    assert {uid: sum(end - start for each, _, start, end in rows if each == uid) for uid in lasted} == lasted


async def test_a_pod_created_with_a_node_name_is_charged_from_its_creation(stage: Stage) -> None:
    await furnish(stage)

    made = await stage.api.create(gpu_pod("placed", "lab", annotations=conduct(run_for="2s"), nodeName="node-0"))
    await stage.pods(lambda items: [item["status"]["phase"] for item in items] == ["Succeeded"])
    rows = await stage.product.query_until(SEGMENTS, lambda rows: bool(rows) and closed(rows))

    assert rows[0][2] == us(made["metadata"]["creationTimestamp"])


async def test_the_ledger_keeps_how_each_pod_ended(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(
        gpu_pod("good", "lab", annotations=conduct(run_for="1s")),
        gpu_pod("bad", "lab", annotations=conduct(run_for="1s", exit_as="Failed")),
        gpu_pod("unwanted", "lab", annotations=conduct(stop_after="1s")),
        gpu_pod("lasting", "lab"),
    )
    await stage.pods(
        lambda items: sorted(item["status"]["phase"] for item in items) == ["Failed", "Running", "Running", "Succeeded"]
    )
    await stage.api.delete(f"{PODS}/unwanted")

    rows = await stage.product.query_until(
        OUTCOMES, lambda rows: [row[1] for row in rows].count("running") == 1 == len(rows) - 3
    )

    assert {name: outcome for name, outcome, *_ in rows} == {
        "good": "succeeded",
        "bad": "failed",
        "unwanted": "deleted",
        "lasting": "running",
    }
    assert {name: tuple(result) for name, _, *result in rows if name in ("good", "bad")} == {
        "good": ("Succeeded", 0),
        "bad": ("Failed", 1),
    }


async def test_the_ledger_keeps_the_highest_progress_that_a_pod_states(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(gpu_pod("trainer", "lab"))
    await stage.running(1)

    for count in ("3", "nonsense", "2", "12.5"):
        stated = {"gputally.io/progress": count, "gputally.io/progress-unit": "epoch"}
        await stage.api.patch(f"{PODS}/trainer", {"metadata": {"annotations": stated}})
    rows = await stage.product.query_until(PROGRESS, lambda rows: bool(rows) and rows[0][1] == 12_500_000)

    assert [tuple(row) for row in rows] == [("lab", 12_500_000, "epoch")]


async def test_the_ledger_keeps_how_each_job_ended(stage: Stage) -> None:
    """The failed pod of a job that is complete in the end belongs to a job that succeeded."""
    await furnish(stage)
    fails = gpu_pod("bad", "lab", annotations=conduct(run_for="1s", exit_as="Failed"))
    await stage.create(
        job(gpu_pod("good", "lab", annotations=conduct(run_for="1s"))),
        job(fails, backoffLimit=0),
        job(gpu_pod("endless", "lab", annotations=conduct(stop_after="2s"))),
    )
    ended = await stage.product.query_until(JOBS, lambda rows: [row[1] for row in rows].count("running") == 1)
    await stage.running(1)
    await stage.api.delete("/apis/batch/v1/namespaces/lab/jobs/endless")
    await stage.pods(lambda items: all(item["status"]["phase"] != "Running" for item in items))
    rows = await stage.product.query_until(JOBS, lambda rows: all(row[1] != "running" for row in rows))
    by_pod = await stage.product.query_until(BY_JOB, lambda rows: len(rows) == 3)

    assert ended == [("bad", "failed", "BackoffLimitExceeded"), ("endless", "running", ""), ("good", "succeeded", ANY)]
    assert [row[:2] for row in rows] == [("bad", "failed"), ("endless", "deleted"), ("good", "succeeded")]
    assert by_pod == [("bad", "failed"), ("endless", "deleted"), ("good", "succeeded")]


async def test_a_forced_deletion_ends_the_allocation_when_it_is_observed(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(gpu_pod("stuck", "lab"))
    await stage.running(1)

    await stage.api.delete(f"{PODS}/stuck", grace_seconds=0)
    rows = await stage.product.query_until(SEGMENTS, lambda rows: bool(rows) and closed(rows))
    await stage.recorder.complete()

    seen_us = stage.recorder.forms[rows[0][0]][-1][2]
    assert abs(rows[-1][3] - seen_us) < SECOND
    assert stage.product.query("SELECT end_by FROM allocations ORDER BY revision DESC LIMIT 1") == [("deleted",)]


async def test_an_allocation_ends_with_its_node_and_does_not_move_to_a_new_node_of_the_same_name(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(
        gpu_pod("orphan", "lab", annotations=conduct(start_after="2s"))
    )  # bound well before the node is deleted
    await stage.running(1)
    await stage.product.until(lambda samples: allocated(samples) == 1)

    await stage.api.delete("/api/v1/nodes/node-0")
    await stage.product.until(lambda samples: allocated(samples) == 0 == total(samples, "gputally_capacity_gpus"))
    await stage.create(gpu_node("node-0", gpus=2))
    samples = await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus") == 2)

    assert (allocated(samples), capacity(samples, "allocated")) == (0, 0)
    assert closed(stage.product.query(SEGMENTS))


async def test_unallocated_capacity_of_a_cordoned_or_lost_node_is_cordoned_or_unknown(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(gpu_pod("holder", "lab"))
    await stage.running(1)
    await stage.product.until(lambda samples: (capacity(samples, "allocated"), capacity(samples, "free")) == (1, 1))

    await stage.api.patch("/api/v1/nodes/node-0", {"spec": {"unschedulable": True}})
    await stage.product.until(lambda samples: (capacity(samples, "allocated"), capacity(samples, "cordoned")) == (1, 1))
    await stage.api.patch("/api/v1/nodes/node-0/status", {"status": {"conditions": [LOST]}})
    await stage.product.until(lambda samples: (capacity(samples, "allocated"), capacity(samples, "unknown")) == (1, 1))


async def test_a_namespace_that_changes_teams_is_charged_to_each_team_for_its_time(stage: Stage) -> None:
    await furnish(stage)
    await stage.create(gpu_pod("shared", "lab", annotations=conduct(stop_after="2s")))
    await stage.running(1)
    await stage.product.until(lambda samples: total(samples, "gputally_allocated_gpus", tenant="lab-team") == 1)

    await stage.api.patch("/api/v1/namespaces/lab", {"metadata": {"labels": {"team": "other-team"}}})
    await stage.product.until(lambda samples: total(samples, "gputally_allocated_gpus", tenant="other-team") == 1)
    await stage.delete_all(f"{PODS}/shared")
    rows = await stage.product.query_until(TENANTS, lambda rows: bool(rows) and closed(rows))

    tenants = [tenant for tenant, _, _ in rows]
    assert tenants[0] == "lab-team"
    assert tenants[-1] == "other-team"
    assert [start for _, start, _ in rows[1:]] == [end for _, _, end in rows[:-1]]


SEGMENTS = "SELECT pod_uid, state, start_us, end_us FROM current_segments ORDER BY start_us"
OUTCOMES = """
SELECT name, outcome, phase, exit_code FROM allocations a
WHERE revision = (SELECT max(revision) FROM allocations WHERE pod_uid = a.pod_uid)
"""
JOBS = "SELECT name, outcome, reason FROM jobs ORDER BY name"
PROGRESS = "SELECT namespace, micro, unit FROM progress"
BY_JOB = "SELECT DISTINCT job, job_outcome FROM allocation_segments ORDER BY job"
TENANTS = "SELECT tenant, start_us, end_us FROM current_segments ORDER BY start_us"
LOST = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
}


async def furnish(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=2, tiers={}, teams=TEAMS)
    await stage.product.start()


def closed(rows: Rows) -> bool:
    return all(row[-1] is not None for row in rows)


def allocated(samples: Samples) -> float:
    return total(samples, "gputally_allocated_gpus")


def capacity(samples: Samples, state: str) -> float:
    return total(samples, "gputally_capacity_gpus", state=state)
