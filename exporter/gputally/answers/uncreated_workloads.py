"""Workloads whose pods do not exist: why, what would help, and how many GPUs they lack."""

from collections.abc import Iterable
from typing import Final

from gputally.accounting.fleet.active_pods import ANY
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.allocations import hourly_text
from gputally.answers.answer_words import quota_refusal
from gputally.answers.help_words import ACTOR_WORDS
from gputally.answers.pending_filters import Filters, matches, workload_values
from gputally.answers.pending_pods import ReasonTotal, reason_sums
from gputally.answers.viewer import Viewer
from gputally.answers.wait_costs import BEYOND_NODES
from gputally.formatting.amounts import amount_words, bare_amount
from gputally.model.advice import Actor
from gputally.model.api.pending import PendingReason, PendingWorkload
from gputally.model.needs import QuotaState
from gputally.model.quantities import LIMITS
from gputally.model.units import GPU, to_datetime
from gputally.model.verdicts import Reason
from gputally.model.waits import Uncharged, UncreatedWorkload

_MOST: Final = "as many GPUs as the cluster ever had, or waits.ceiling_gpus if that is more"
_LIMITS: Final = {
    Uncharged.ABOVE_LIMIT: f"one workload is charged for {_MOST}",
    Uncharged.NAMESPACE_LIMIT: f"older workloads of its namespace are charged for a hundred times {_MOST}",
}


def workload_sentence(workload: UncreatedWorkload) -> str:
    """Why its pods do not exist, as the end of a sentence about it, and for how many of them the wait is charged."""
    if workload.uncharged is None:
        return _cause(workload)
    if workload.uncharged is Uncharged.IMPOSSIBLE:
        return f"{_cause(workload)}; one pod asks for {BEYOND_NODES}, so the wait is not charged"
    counted = f"{workload.charged_pods:,} of {workload.pods:,} pods"
    return f"{_cause(workload)}; the wait is charged for {counted}: {_LIMITS[workload.uncharged]}"


def _cause(workload: UncreatedWorkload) -> str:
    quota = workload.quota
    if workload.reason is Reason.QUEUED:
        return f"its queue has not admitted it ({workload.text})"
    if quota is None and workload.reason is Reason.QUOTA_NEVER:
        return f"its queue can never admit it ({workload.text})"
    if quota is None:
        return f"the API server refuses to create its pods: {workload.text}"
    needed = f"{_amount(quota, quota.needed)} needed"
    if workload.reason is Reason.QUOTA_NEVER:
        return f"its quota {quota.name} can never admit such a pod: {needed}, {_bare(quota, quota.hard)} allowed"
    use = f"{_bare(quota, quota.used)} of {_bare(quota, quota.hard)} used"
    if _has_room(quota):
        return f"its quota {quota.name} refused its pods and has room since ({needed}, {use}): it tries again"
    return f"its quota {quota.name} is used up: {needed}, {use}"


def workload_help(workload: UncreatedWorkload) -> str:
    """A change of its quota after which one more pod is created, with who can make it; "" if none is known."""
    quota = workload.quota
    if quota is None or _has_room(quota):
        return ""
    if workload.reason is Reason.QUOTA_NEVER:
        return f"raise quota {quota.name} by {_amount(quota, quota.needed - quota.hard)} ({ACTOR_WORDS[Actor.ADMIN]})"
    missing = _amount(quota, quota.needed - (quota.hard - quota.used))
    return f"raise quota {quota.name} by {missing} ({ACTOR_WORDS[Actor.ADMIN]}), or wait until its pods leave as much"


def workload_change(workload: UncreatedWorkload) -> str:
    """A change of the workload itself after which its quota can admit a pod, "" if none is known."""
    quota = workload.quota
    if quota is None or workload.reason is not Reason.QUOTA_NEVER or not quota.hard or _has_room(quota):
        return ""
    return f"request {_amount(quota, quota.hard)} at most ({ACTOR_WORDS[Actor.OWNER]})"


def _has_room(quota: QuotaState) -> bool:
    return quota.needed <= quota.hard - quota.used


def _amount(quota: QuotaState, amount: int) -> str:
    return amount_words(quota.what.removeprefix(LIMITS), amount)


def _bare(quota: QuotaState, amount: int) -> str:
    return bare_amount(quota.what.removeprefix(LIMITS), amount)


def chosen_workloads(now: PendingNow, filters: Filters, viewer: Viewer) -> list[UncreatedWorkload]:
    """The workloads that the reader may see and that match all filters, the oldest first."""
    seen = (each for each in now.uncreated.described() if viewer.sees(each.tenant))
    return [each for each in seen if matches(workload_values(each), filters)]


def workloads_named(now: PendingNow, namespace: str, name: str, viewer: Viewer) -> list[UncreatedWorkload]:
    """The workloads of that name, or of a job of that name; in all namespaces without one."""
    found = chosen_workloads(now, {"job": frozenset({name})}, viewer)
    return [each for each in found if not namespace or each.owner.namespace == namespace]


def pending_workload(now: PendingNow, workload: UncreatedWorkload) -> PendingWorkload:
    """The workload with its reason in a sentence."""
    owner, line, quota = workload.owner, _line(workload), workload.quota
    return PendingWorkload(
        namespace=owner.namespace,
        kind=owner.reference.kind,
        name=owner.reference.name,
        uid=owner.reference.uid,
        tier=workload.tier,
        tenant=workload.tenant,
        job_kind=workload.job_kind,
        job=workload.job,
        class_name=workload.class_name,
        pods=workload.pods,
        is_at_least=workload.is_at_least,
        gpus=workload.whole / GPU if workload.quantity else None,
        gpus_per_pod=workload.quantity / GPU if workload.quantity else None,
        gpu_model=now.models.get(workload.gpu_model, workload.gpu_model) or ANY,
        since=to_datetime(workload.since_us),
        reason=workload.reason.value,
        text=workload_sentence(workload),
        quota=quota_refusal(quota),
        message="" if workload.reason is Reason.QUEUED else workload.text,
        cost_per_hour=None if line.rate is None else hourly_text(line.rate),
        highest_per_hour=None if line.highest_rate is None else hourly_text(line.highest_rate),
        helps=workload_help(workload),
        job_changes=workload_change(workload),
    )


def workload_reasons(found: Iterable[UncreatedWorkload]) -> list[PendingReason]:
    """The sums of each reason, those with the most GPUs first; without those of which no request is known."""
    return reason_sums(_line(each) for each in found if each.quantity)


def _line(workload: UncreatedWorkload) -> ReasonTotal:
    """All its missing pods."""
    pods, uncharged_pods = workload.pods, workload.uncharged_pods
    return ReasonTotal(workload.reason, pods, uncharged_pods, workload.charged, workload.prices, workload.since_us)
