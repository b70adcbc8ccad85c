"""The document of `/api/v1/at-risk`."""

from collections.abc import Mapping
from dataclasses import replace

from gputally.accounting.fleet.work_at_risk import RiskNow, read_risk
from gputally.accounting.jobs.checkpoints import CHECKPOINT_INTERVAL, LAST_CHECKPOINT
from gputally.answers.at_risk import document
from gputally.model.api.at_risk import AtRiskDocument, NotAtRisk
from gputally.model.rules import Rules
from gputally.model.units import to_datetime
from tests.core.manifests import NodeForm, PodForm, instant, us
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import BOOK, NODE

OTHER = replace(NODE, name="n2")
SET = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"}
POD = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=100, gpus=2)


def now(
    *pods: PodForm,
    at: int = 3700,
    nodes: tuple[NodeForm, ...] = (NODE, OTHER),
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> RiskNow:
    replay = Replay(rules=rules, book=BOOK)
    replay.see(*nodes, at=1)
    replay.see(*pods, at=at - 60)
    return read_risk(replay.fleet, now_us=us(at))


def shown(found: AtRiskDocument) -> Mapping[str, tuple[float, float]]:
    """GPU-hours of each node, on it and with groups."""
    return {each.node: (each.risk.gpu_hours, each.with_groups.gpu_hours) for each in found.nodes}


def test_work_since_the_last_checkpoint_is_added_up_by_job_and_by_node() -> None:
    saved = replace(POD, name="b", node="n2", annotations={LAST_CHECKPOINT: instant(1900)})
    found = document(now(POD, saved), {}, tenants=None)

    assert [(each.job, each.tenant, each.risk.gpu_hours) for each in found.jobs] == [("a", "ml", 2), ("b", "ml", 1)]
    assert shown(found) == {"n1": (2, 2), "n2": (1, 1)}
    assert found.total
    assert (found.total.pods, found.total.gpus, found.total.gpu_hours) == (2, 4, 3)
    assert found.total.costs == {"EUR": f"{3 * 3600:.6f}"}
    assert (found.total.oldest_checkpoint, found.total.checkpoint_age_seconds) == (to_datetime(us(100)), 3600)
    assert [each.risk.is_upper_bound for each in found.nodes] == [True, False]


def test_a_node_puts_the_members_elsewhere_at_risk_that_restart_with_its_pods() -> None:
    members = (replace(POD, labels=SET), replace(POD, name="b", node="n2", gpus=1, labels=SET))
    alone = replace(POD, name="c", node="n2", gpus=1)

    assert shown(document(now(*members, alone), {}, tenants=None)) == {"n1": (2, 3), "n2": (2, 4)}


def test_a_user_of_some_tenants_sees_only_their_work() -> None:
    members = (replace(POD, labels=SET), replace(POD, name="b", namespace="web", node="n2", labels=SET))
    found = document(now(*members), {}, tenants=frozenset({"web"}))

    assert [each.namespace for each in found.jobs] == ["web"]
    assert shown(found) == {"n2": (2, 2)}


def test_all_filters_hold() -> None:
    found = now(POD, replace(POD, name="b", node="n2"))

    assert [each.job for each in document(found, {"tier": {"low"}, "node": {"n2"}}, tenants=None).jobs] == ["b"]
    assert document(found, {"tier": {"high"}}, tenants=None).total is None


def test_overdue_checkpoints_are_counted() -> None:
    slow = replace(POD, annotations={CHECKPOINT_INTERVAL: "10m"})
    kept = replace(slow, name="b", annotations={CHECKPOINT_INTERVAL: "3h"})
    found = document(now(slow, kept), {}, tenants=None)

    assert {each.job: each.risk.overdue_pods for each in found.jobs} == {"a": 1, "b": 0}


def test_work_without_a_price_is_no_free_work() -> None:
    unpriced = replace(NODE, labels={"nvidia.com/gpu.product": "unknown"})
    found = document(now(POD, nodes=(unpriced,)), {}, tenants=None)

    assert found.total
    assert (found.total.costs, found.total.unpriced_gpu_hours) == ({}, 2)


def test_starting_and_terminating_pods_are_not_at_risk() -> None:
    found = document(now(replace(POD, started=None), replace(POD, name="b", deleted=101)), {}, tenants=None)

    assert (found.total, found.jobs, found.nodes) == (None, [], [])


def test_pods_without_work_to_lose_are_known_and_the_answer_says_why_it_is_empty() -> None:
    waits = replace(POD, name="b", namespace="web", finished=700, exit_code=1, waiting=True)
    starting, ending = replace(POD, name="c", started=None), replace(POD, name="d", deleted=101)
    pending = replace(POD, name="e", scheduled=None, node="", started=None)
    done = replace(POD, name="f", phase="Succeeded", finished=700)
    serving = now(POD, waits, starting, ending, pending, done, rules=Rules(serving=("low",)))
    working = now(POD, waits, starting, ending, pending, done)

    def why(risk: RiskNow, tenant: str) -> dict[str, int]:
        found = document(risk, {"tenant": {tenant}}, tenants=None)
        assert found.unknown == []
        return {each.reason: each.pods for each in found.not_at_risk}

    assert why(serving, "ml") == {"no_work": 1, "not_started": 2, "terminating": 1}
    assert why(working, "ml") == {"not_started": 2, "terminating": 1}
    assert why(working, "web") == {"restarting": 1}
    assert document(working, {"tenant": {"visoin"}}, tenants=None).unknown == ["tenant visoin"]
    assert document(working, {}, tenants=frozenset({"web"})).not_at_risk == [
        NotAtRisk(
            reason="restarting", text="their containers wait for a restart, and the work before it is lost", pods=1
        )
    ]


def test_values_that_no_pod_has_are_named_if_no_pod_matches() -> None:
    assert document(now(POD), {"tenant": {"visoin"}}, tenants=None).unknown == ["tenant visoin"]
    assert document(now(POD), {"tenant": {"ml"}}, tenants=None).unknown == []
    others = replace(POD, name="b", namespace="web", node="n2")
    assert document(now(POD, others), {"tenant": {"web"}}, tenants=frozenset({"ml"})).unknown == ["tenant web"]
