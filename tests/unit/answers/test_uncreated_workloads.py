"""Workloads without pods in the documents and on the page, and what a restricted user sees of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.uncreated.snapshot import Workloads
from gputally.answers.pending_list import pending_list
from gputally.answers.uncreated_workloads import workload_change, workload_help, workload_sentence
from gputally.answers.viewer import ALL, Viewer
from gputally.answers.why import NoSuchPods, why_document
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.needs import QuotaState
from gputally.model.price import PriceRange
from gputally.model.units import GPU
from gputally.model.verdicts import Reason
from gputally.model.waits import CAUSE_OF, Uncharged, UncreatedPodsSegment, UncreatedWorkload
from gputally.questions.pending import Pending
from gputally.questions.why import Why
from gputally.web.pending_pages import pending_page
from gputally.web.report_requests import plainly_asked
from tests.core.manifests import us
from tests.unit.answers.pending_world import PRICE, Past, holds, node, waits, world

QUOTA = QuotaState(name="training", what="nvidia.com/gpu", hard=6, used=0, needed=8)


def uncreated(name: str = "train", **changes: Any) -> UncreatedWorkload:  # noqa: ANN401 - any fields
    """A Job of 2 pods with 8 GPUs each, which its quota never admits."""
    reference = OwnerReference(kind="Job", name=name, uid=f"uid-{name}", api_version="batch/v1")
    known: dict[str, Any] = {
        "owner": Owner(changes.pop("namespace", "ml"), reference),
        "job_kind": "Job",
        "job": name,
        "tier": "batch",
        "tenant": "ml",
        "class_name": "gpu-batch",
        "pods": 2,
        "quantity": 8 * GPU,
        "since_us": us(600),
        "reason": Reason.QUOTA_NEVER,
        "text": "exceeded quota: training",
        "quota": QUOTA,
        "prices": PriceRange(PRICE),
    }
    return UncreatedWorkload(**known | changes)


FOREIGN = uncreated(
    "foreign", namespace="rivals", tenant="rivals", tier="other", reason=Reason.REFUSED, quota=None, prices=PriceRange()
)
MINE = uncreated()


def now(*workloads: UncreatedWorkload) -> PendingNow:
    pods = [holds("serve", 8, on="n1", tier="serving", priority=800), waits("a", 8)]
    tenants = {(each.owner.namespace, each.labels): each.tenant for each in workloads}
    known = {(each.owner.namespace, each.owner.reference.uid): each for each in workloads}
    charged = [wait_of(each) for each in workloads if each.charged]
    by_key = {each.key: each for each in charged}
    return world([node("n1")], pods)._replace(uncreated=Workloads(known, tenants, by_key))


def wait_of(workload: UncreatedWorkload) -> UncreatedPodsSegment:
    """As it is charged."""
    return UncreatedPodsSegment(
        namespace=workload.owner.namespace,
        uid=workload.owner.reference.uid,
        kind=workload.owner.reference.kind,
        name=workload.owner.reference.name,
        job_kind=workload.job_kind,
        job=workload.job,
        tier=workload.tier,
        tenant=workload.tenant,
        pods=workload.charged_pods,
        quantity=workload.quantity,
        reason=workload.reason,
        cause=CAUSE_OF[workload.reason],
        from_us=workload.since_us,
        shown=workload.tier,
        price=workload.prices.lowest,
    )


def asked(**query: str) -> Pending:
    return plainly_asked(Pending, {name: [value] for name, value in query.items()})


def test_workloads_are_counted_apart_from_pods() -> None:
    document = pending_list(now(MINE, FOREIGN), asked(), ALL)

    assert (document.pod_count, [each.pod for each in document.pods]) == (1, ["a"])
    assert sum(each.pods for each in document.reasons) == 1
    assert document.workload_count == 2
    assert {each.reason: (each.pods, each.gpus, each.unpriced_gpus) for each in document.workload_reasons} == {
        "quota_never": (2, 16, 0),
        "refused": (2, 16, 16),
    }


def test_a_workload_of_which_no_request_is_known_comes_last_and_is_in_no_sum() -> None:
    unknown = uncreated("web", class_name=None, pods=1, quantity=0, since_us=us(1), reason=Reason.REFUSED, quota=None)
    document = pending_list(now(unknown, MINE), asked(), ALL)

    assert [(each.name, each.gpus, each.gpus_per_pod) for each in document.workloads] == [
        ("train", 16, 8),
        ("web", None, None),
    ]
    assert (document.workload_count, document.unmeasured_count) == (2, 1)
    assert [each.reason for each in document.workload_reasons] == ["quota_never"]
    page = pending_page(document, asked())
    assert "Workloads without pods: 1, which lack 2 pods with 16 GPUs, and 1 of which nothing says" in page
    assert '<td class="number">at least 1</td><td class="number">unknown</td>' in page


def test_a_workload_has_its_evidence_and_its_cost() -> None:
    [found] = pending_list(now(MINE), asked(), ALL).workloads

    assert (found.namespace, found.kind, found.name, found.pods, found.gpus, found.gpus_per_pod) == (
        *("ml", "Job", "train"),
        *(2, 16, 8),
    )
    assert found.cost_per_hour == str(PRICE.per_gpu_hour * 16)
    assert found.quota
    assert (found.quota.resource, found.quota.requested, found.quota.used, found.quota.hard) == (
        *("requests.nvidia.com/gpu", 8),
        *(0, 6),
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"namespace": "rivals"}, ["foreign"]),
        ({"tenant": "ml"}, ["train"]),
        ({"reason": "refused"}, ["foreign"]),
        ({"job": "train"}, ["train"]),
        ({"tier": "serving"}, []),
        ({"limit": "1", "offset": "1"}, ["foreign"]),
    ],
)
def test_filters_and_pages_apply_to_workloads(query: dict[str, str], names: list[str]) -> None:
    document = pending_list(now(MINE, FOREIGN), asked(**query), ALL)

    assert [each.name for each in document.workloads] == names


def test_a_namespace_whose_workloads_all_lack_pods_is_known() -> None:
    document = pending_list(now(FOREIGN), asked(namespace="rivals"), ALL)

    assert document.unknown == []


def test_a_restricted_user_sees_only_workloads_of_own_tenants() -> None:
    viewer = Viewer(frozenset({"ml"}))

    document = pending_list(now(MINE, FOREIGN), asked(), viewer)
    assert [each.name for each in document.workloads] == ["train"]
    assert sum(each.pods for each in document.workload_reasons) == 2
    with pytest.raises(NoSuchPods):
        why_document(now(MINE, FOREIGN), Why(namespace="rivals", job="foreign"), viewer, past=Past())


@pytest.mark.parametrize("request_", [Why(namespace="ml", job="train"), Why(namespace="ml", pod="train")])
def test_why_answers_about_a_workload_without_any_pod(request_: Why) -> None:
    document = why_document(now(MINE), request_, ALL, past=Past())

    assert document.answers == []
    assert [each.reason for each in document.workloads] == ["quota_never"]


def test_why_names_the_missing_pods_of_a_job_beside_its_waiting_ones() -> None:
    there = now(replace(MINE, job="a"))

    document = why_document(there, Why(namespace="ml", job="a"), ALL, past=Past())
    assert [each.pod.pod for each in document.answers] == ["a"]
    assert [each.job for each in document.workloads] == ["a"]


@pytest.mark.parametrize(
    ("workload", "text", "helps"),
    [
        (
            MINE,
            "its quota training can never admit such a pod: 8 GPUs needed, 6 allowed",
            "raise quota training by 2 GPUs (an admin of the cluster); request 6 GPUs at most (the owner of the pod)",
        ),
        (
            replace(MINE, quota=replace(QUOTA, hard=0)),
            "its quota training can never admit such a pod: 8 GPUs needed, 0 allowed",
            "raise quota training by 8 GPUs (an admin of the cluster)",
        ),
        (
            replace(MINE, reason=Reason.QUOTA, quota=replace(QUOTA, hard=10, used=5)),
            "its quota training is used up: 8 GPUs needed, 5 of 10 used",
            "raise quota training by 3 GPUs (an admin of the cluster), or wait until its pods leave as much",
        ),
        (
            replace(MINE, reason=Reason.QUOTA, quota=replace(QUOTA, hard=16, used=5)),
            "its quota training refused its pods and has room since (8 GPUs needed, 5 of 16 used): it tries again",
            "",
        ),
        (
            replace(MINE, quota=replace(QUOTA, what="limits.cpu", hard=4000, needed=8000)),
            "its quota training can never admit such a pod: 8 CPUs needed, 4 allowed",
            "raise quota training by 4 CPUs (an admin of the cluster); request 4 CPUs at most (the owner of the pod)",
        ),
        (
            replace(FOREIGN, text="denied by policy"),
            "the API server refuses to create its pods: denied by policy",
            "",
        ),
        (
            replace(MINE, reason=Reason.QUEUED, quota=None, text="Kueue, queue research"),
            "its queue has not admitted it (Kueue, queue research)",
            "",
        ),
    ],
)
def test_each_reason_has_its_sentence_and_its_help(workload: UncreatedWorkload, text: str, helps: str) -> None:
    found = "; ".join(filter(None, (workload_help(workload), workload_change(workload))))
    assert (workload_sentence(workload), found) == (text, helps)


def test_the_page_shows_workloads_and_escapes_what_tenants_write() -> None:
    hostile = replace(FOREIGN, text="<script>alert(1)</script>")
    request = asked()
    page = pending_page(pending_list(now(MINE, hostile), request, ALL), request)

    assert "2, which lack 4 pods with 32 GPUs" in page
    assert "ml/train</a> (Job)" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "Workloads without pods" not in pending_page(pending_list(now(), request, ALL), request)


def test_a_workload_of_which_some_pods_are_not_charged_costs_what_the_others_would() -> None:
    limited = {"pods": 2**31 - 1, "uncharged_pods": 2**31 - 3, "uncharged": Uncharged.ABOVE_LIMIT}
    wide = uncreated("wide", reason=Reason.REFUSED, quota=None, **limited)
    document = pending_list(now(wide), asked(), ALL)
    [found], [sums] = document.workloads, document.workload_reasons

    most = "one workload is charged for as many GPUs as the cluster ever had, or waits.ceiling_gpus if that is more"
    assert found.text.endswith(f"; the wait is charged for 2 of 2,147,483,647 pods: {most}")
    assert (sums.pods, sums.uncharged_pods, sums.gpus) == (2**31 - 1, 2**31 - 3, 16)
    assert found.cost_per_hour == str(PRICE.per_gpu_hour * 16)


def test_an_impossible_workload_has_no_price() -> None:
    huge = uncreated("huge", quantity=10**9 * GPU, uncharged_pods=2, uncharged=Uncharged.IMPOSSIBLE)
    document = pending_list(now(huge, MINE), asked(), ALL)
    found = next(each for each in document.workloads if each.name == "huge")
    page = pending_page(document, asked())

    most = "more GPUs than any node ever had, and than waits.ceiling_gpus_per_pod"
    assert found.text.endswith(f"; one pod asks for {most}, so the wait is not charged")
    assert found.cost_per_hour is None
    assert [(each.gpus, each.unpriced_gpus, each.uncharged_pods) for each in document.workload_reasons] == [(16, 0, 2)]
    assert "lack 4 pods with 16 GPUs (2 pods not charged, without their GPUs)" in page
