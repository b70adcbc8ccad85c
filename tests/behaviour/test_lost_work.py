"""What a preemption cost, on both clusters: from the last checkpoint that a pod stated to its end."""

from datetime import UTC, datetime

from tests.behaviour.product import PRICE, Samples, total
from tests.behaviour.stage import Stage
from tests.cluster.manifests import Json, conduct, gpu_pod

TIERS = {"training": 100, "serving": 1_000}
TEAMS = {"ml": "research"}
GPUS = 4
LAST_CHECKPOINT = "gputally.io/last-checkpoint"
LOST = "gputally_preemption_lost_gpu_seconds_total"


async def test_a_preempted_pod_loses_its_work_since_the_checkpoint_that_it_stated(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=GPUS, tiers=TIERS, teams=TEAMS)
    await stage.product.start()
    await stage.create(training())
    await stage.running(1, tier="training")
    await stage.product.until(lambda found: ran(found) > 2 * GPUS)  # there is work that the checkpoint saves

    saved = datetime.now(UTC).replace(microsecond=0)
    stated = {"metadata": {"annotations": {LAST_CHECKPOINT: saved.isoformat()}}}
    await stage.api.patch("/api/v1/namespaces/ml/pods/train", stated)
    at_risk = await stage.product.until(is_at_risk)
    assert total(at_risk, "gputally_work_at_risk_cost", tier="training") > 0

    await stage.create(gpu_pod("serve", "ml", gpus=GPUS, priorityClassName="serving"))
    await stage.running(1, tier="serving")
    samples = await stage.product.until(lambda found: total(found, LOST) > 0)

    lost = GPUS * (end_of(stage) - saved).total_seconds()
    assert abs(total(samples, LOST, victim_tier="training", victim_tenant="research", basis="annotation") - lost) < GPUS
    assert abs(total(samples, "gputally_preemption_lost_cost_total") - lost / 3600 * float(PRICE)) < 0.01
    await stage.delete_all("/api/v1/namespaces/ml/pods/serve")


def training() -> Json:
    annotations = conduct(run_for="1h", stop_after="2s")
    return gpu_pod("train", "ml", gpus=GPUS, annotations=annotations, priorityClassName="training")


def is_at_risk(samples: Samples) -> bool:
    """Some of its work, but not all."""
    return 0 < total(samples, "gputally_work_at_risk_gpu_seconds", tier="training") < ran(samples) - GPUS


def ran(samples: Samples) -> float:
    return total(samples, "gputally_allocated_gpu_seconds_total", tier="training", state="running")


def end_of(stage: Stage) -> datetime:
    """When the container of the victim finished, by the API."""
    times = [
        state["finishedAt"]
        for forms in stage.recorder.forms.values()
        for _, pod, _ in forms
        for status in pod["status"].get("containerStatuses", ())
        if pod["metadata"]["name"] == "train" and (state := status["state"].get("terminated"))
    ]
    return datetime.fromisoformat(times[-1])
