"""Workloads that lack pods, for the documents."""

from collections.abc import Iterable

from gputally.accounting.fleet.active_pods import ANY
from gputally.export.live.allocations_route import hourly_text
from gputally.model.api.pending import PendingReason, PendingWorkload
from gputally.model.units import GPU, to_datetime
from gputally.model.verdicts import Reason
from gputally.model.waits import UncreatedWorkload
from gputally.pending_api.pending_filters import Filters, matches, workload_values
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.pending_pods import WaitLine, reason_sums
from gputally.pending_api.words.quota_words import quota_refusal
from gputally.pending_api.workloads.workload_words import workload_change, workload_help, workload_sentence


def chosen_workloads(now: PendingNow, filters: Filters, viewer: Viewer) -> list[UncreatedWorkload]:
    """Those that the reader may see and that match all filters, the oldest first."""
    seen = (each for each in now.uncreated.described() if viewer.sees(each.tenant))
    return [each for each in seen if matches(workload_values(each), filters)]


def workloads_named(now: PendingNow, namespace: str, name: str, viewer: Viewer) -> list[UncreatedWorkload]:
    """Those of that name, or of a job of that name; of all namespaces without one."""
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


def _line(workload: UncreatedWorkload) -> WaitLine:
    """All its missing pods."""
    pods, uncharged_pods = workload.pods, workload.uncharged_pods
    return WaitLine(workload.reason, pods, uncharged_pods, workload.charged, workload.prices, workload.since_us)
