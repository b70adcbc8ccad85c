"""Optional watches on both clusters: which preemptions violate a budget, and what quotas allow."""

import json

import pytest

from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from tests.behaviour.product import Samples, total
from tests.behaviour.stage import Stage
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import (
    Json,
    cluster_role,
    cluster_role_binding,
    conduct,
    gpu_pod,
    pod_disruption_budget,
    resource_quota,
)
from tests.fakes.command import run

TIERS = {"training": 100, "serving": 1_000}
TEAMS = {"ml": "research"}
GROUPS = {"poddisruptionbudgets": "policy", "resourcequotas": ""}
RULES = [{"apiGroups": [GROUPS[each]], "resources": [each], "verbs": ["list", "watch"]} for each in GROUPS]
VIOLATED = "SELECT victim_name, budget_violated FROM disruptions ORDER BY victim_name"
CLASSES = "SELECT name, value, to_us NOTNULL FROM priority_classes WHERE name = 'passing' ORDER BY from_us"


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The aggregator is to watch them; set before it exists."""
    monkeypatch.setenv("GPUTALLY_WATCH", ",".join(OPTIONAL_RESOURCES))


@pytest.fixture
async def watching(plane: ControlPlane | None, stage: Stage) -> Stage:
    """A stage with the rights of optional watches, and a running aggregator."""
    if plane:
        binding = cluster_role_binding("gputally-watch")
        binding["subjects"] = cluster_role_binding("gputally")["subjects"]
        await stage.create(cluster_role("gputally-watch", RULES), binding)
    await stage.furnish(nodes=1, gpus=4, tiers=TIERS, teams=TEAMS)
    await stage.product.start()
    return stage


def train(name: str) -> Json:
    annotations = conduct(run_for="1h", stop_after="1s")
    return gpu_pod(name, "ml", gpus=2, labels={"app": name}, priorityClassName="training", annotations=annotations)


async def test_a_preemption_violates_the_budget_that_allowed_none(watching: Stage) -> None:
    await watching.create(pod_disruption_budget("guard", "ml", labels={"app": "guarded"}, min_available=1))
    await watching.create(train("guarded"), train("free"))
    await watching.running(2, tier="training")
    budget = "/apis/policy/v1/namespaces/ml/poddisruptionbudgets/guard"
    await watching.api.wait_for(budget, lambda found: found is not None and guards(found))
    await watching.product.until(lambda found: ran(found) > 4 * 3)  # the budget was observed seconds before

    await watching.create(gpu_pod("serve", "ml", gpus=4, priorityClassName="serving"))
    await watching.running(1, tier="serving")

    await watching.product.query_until(VIOLATED, lambda rows: rows == [("free", 0), ("guarded", 1)])
    samples = await watching.product.scrape()
    name = "gputally_disruption_budget_violations_total"
    assert total(samples, name) == total(samples, name, tier="training", tenant="research", cause="preemption") == 1
    await watching.delete_all("/api/v1/namespaces/ml/pods/serve")
    await watching.api.delete(budget)


async def test_a_forecast_respects_budgets_and_quotas(watching: Stage, plane: ControlPlane | None) -> None:
    await watching.create(pod_disruption_budget("guard", "ml", labels={"app": "guarded"}, min_available=1))
    await watching.create(train("guarded"), train("free"))
    await watching.running(2, tier="training")
    budget = "/apis/policy/v1/namespaces/ml/poddisruptionbudgets/guard"
    await watching.api.wait_for(budget, lambda found: found is not None and guards(found))

    preferred = await forecast(watching, "--gpus", "2", "--class", "serving")
    assert [(each["pod"], each["budget"]) for each in preferred["victims"]] == [("free", "")]
    forced = await forecast(watching, "--gpus", "4", "--class", "serving")
    assert {each["pod"]: each["budget"] for each in forced["victims"]} == {"free": "", "guarded": "ml/guard"}

    if plane:  # the simulated cluster counts no use
        await watching.create(resource_quota("gpus", "ml", gpus=5))
        await watching.product.until(lambda found: total(found, "gputally_quota_used_gpus") == 4)
        refused = await forecast(watching, "--gpus", "1", "--count", "3", "--class", "serving", "--namespace", "ml")
        assert (refused["bound"], refused["refused"], refused["reason"]) == (1, 2, "quota")
        assert refused["quota"] == {
            "name": "gpus",
            "resource": "requests.nvidia.com/gpu",
            "hard": 5,
            "used": 5,
            "requested": 1,
        }
        await watching.api.delete("/api/v1/namespaces/ml/resourcequotas/gpus")
    await watching.delete_all("/api/v1/namespaces/ml/pods/free", "/api/v1/namespaces/ml/pods/guarded")
    await watching.api.delete(budget)


async def forecast(stage: Stage, *arguments: str) -> Json:
    """The only forecast, for which nothing is unknown."""
    found = await run("what-if", "--output", "json", "--url", stage.product.url, *arguments)
    assert (found.status, found.err) == (0, "")
    document: Json = json.loads(found.out)
    assert document["not_considered"] == {}
    [only] = document["forecasts"]
    return dict(only)


def guards(budget: Json) -> bool:
    """Whether the controller has counted the pod that it protects."""
    status = budget.get("status", {})
    return bool(status.get("currentHealthy") == 1 and status.get("disruptionsAllowed") == 0)


def ran(samples: Samples) -> float:
    return total(samples, "gputally_allocated_gpu_seconds_total", tier="training", state="running")


async def test_quotas_are_exported_by_tier_and_tenant(watching: Stage, plane: ControlPlane | None) -> None:
    await watching.create(resource_quota("training", "ml", gpus=3, priority_class="training"))
    await watching.create(resource_quota("all", "ml", gpus=6))

    samples = await watching.product.until(lambda found: total(found, "gputally_quota_hard_gpus") == 3 + 6)
    assert total(samples, "gputally_quota_hard_gpus", tier="training", tenant="research") == 3
    assert total(samples, "gputally_quota_hard_gpus", tier="any", tenant="research") == 6
    await watching.create(train("counted"))
    if plane:  # the simulated cluster counts no use
        await watching.product.until(
            lambda found: (
                total(found, "gputally_quota_used_gpus", tier="training") == 2
                and total(found, "gputally_quota_used_gpus", tier="any") == 2
            )
        )
    for name in ("training", "all"):
        await watching.api.delete(f"/api/v1/namespaces/ml/resourcequotas/{name}")
    await watching.product.until(lambda found: total(found, "gputally_quota_hard_gpus") == 0)
    await watching.delete_all("/api/v1/namespaces/ml/pods/counted")


async def test_the_ledger_has_the_versions_of_a_class(watching: Stage) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/passing"
    for value in (200, 300):
        await watching.create(_class("passing", value))
        await watching.product.until(lambda found, value=value: value_of(found) == value)  # type: ignore[misc]  # bound now
        await watching.api.delete(path)
        await watching.product.until(lambda found: value_of(found) is None)

    await watching.product.query_until(CLASSES, lambda rows: rows == [("passing", 200, 1), ("passing", 300, 1)])


def _class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def value_of(samples: Samples) -> float | None:
    found = [
        value
        for (name, labels), value in samples.items()
        if name == "gputally_priority_class_value" and ("priority_class", "passing") in labels
    ]
    return found[0] if found else None
