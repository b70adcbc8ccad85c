"""Why pods of a workload were not created, in words, and what would help."""

from typing import Final

from gputally.model.advice import Actor
from gputally.model.kube.policy import LIMITS
from gputally.model.needs import QuotaState
from gputally.model.verdicts import Reason
from gputally.model.waits import Uncharged, UncreatedWorkload
from gputally.pending_api.words.amount_words import amount_words, bare_amount
from gputally.pending_api.words.suggestion_words import ACTOR_WORDS

BEYOND_NODES: Final = "more GPUs than any node ever had, and than waits.ceiling_gpus_per_pod"
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
