"""The answers of `gputally why` about workloads whose pods do not exist."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gputally.answers.answer_words import first_step
from gputally.answers.quota_words import quota_line
from gputally.model.api.pending import PendingDocument, PendingWorkload
from gputally.model.api.why import WhyDocument
from gputally.pending_api.words.amount_words import count_words, gpu_words, money_range, pod_words
from gputally.pending_api.words.duration_words import duration
from gputally.why_command.text_lines import headed, headed_if, paragraph, table

_HEADS: Final = ("GPUS", "PODS", "TIER", "SINCE", "REASON", "WORKLOAD")


def workload_lines(workload: PendingWorkload, document: WhyDocument, *, width: int) -> Iterator[str]:
    """Which pods it lacks, for how long and why, with the evidence."""
    range_ = workload.cost_per_hour, workload.highest_per_hour
    cost = money_range(*range_, document.currency) if workload.cost_per_hour is not None else ""
    size = "an unknown number of GPUs" if workload.gpus_per_pod is None else gpu_words(workload.gpus_per_pod)
    what = f"{pod_words(workload.pods)} of {size}{' each' * (workload.pods > 1)}"
    lacks = f"{'at least ' * workload.is_at_least}{what}{f', {cost} per hour' * bool(cost)}"
    since = duration(_seconds(workload, document.at))
    yield from paragraph(f"{_name(workload)} has lacked {lacks}, for {since}: {workload.text}.", width)
    payer = f"tier {workload.tier}, tenant {workload.tenant}"
    known = "" if workload.class_name is None else f"{workload.class_name or 'none'}; "
    yield from headed("Class", known + payer, width=width)
    if quota := workload.quota:
        yield from headed("Quota", quota_line(quota), width=width)
    if workload.message not in workload.text:
        yield from headed("API server", workload.message, width=width)
    for head, change in (("Would help", workload.helps), ("Change job", workload.job_changes)):
        yield from headed_if(head, f"- {change}" * bool(change), width=width)
    suggested = bool(workload.helps or workload.job_changes)
    yield from headed_if("First step", first_step(workload.reason, has_suggestions=suggested), width=width)


def workload_table(document: PendingDocument, *, width: int) -> Iterator[str]:
    """How many pods workloads lack, and each of these workloads."""
    reasons = document.workload_reasons
    total, missing = sum(each.gpus for each in reasons), sum(each.pods for each in reasons)
    count, unknown = document.workload_count - document.unmeasured_count, document.unmeasured_count
    subject = f"{count:,} workload{' lacks' if count == 1 else 's lack'}"
    why = "; ".join(f"{each.pods:,} because {each.meaning}" for each in reasons)
    if count:
        yield from paragraph(
            f"{subject} {pod_words(missing)} with {gpu_words(total)}, which do not exist: {why}.", width
        )
    if unknown:
        whose = f"Pods of {unknown:,} {'more ' * bool(count)}workload{'s' * (unknown != 1)} are refused"
        yield from paragraph(f"{whose}; nothing says how many GPUs they request, if any.", width)
    yield ""
    yield from table([_HEADS, *(_row(each, document.at) for each in document.workloads)], right=frozenset({0, 1, 3}))
    if more := document.workload_count - len(document.workloads):
        yield f"and {more:,} more; narrow it down by NAMESPACE or --tenant"


def _row(workload: PendingWorkload, at: datetime) -> tuple[str, ...]:
    least = "+" * workload.is_at_least
    return (
        "?" if workload.gpus is None else f"{count_words(workload.gpus)}{least}",
        f"{workload.pods:,}{least}",
        workload.tier,
        duration(_seconds(workload, at)),
        workload.reason,
        _name(workload),
    )


def _seconds(workload: PendingWorkload, at: datetime) -> float:
    return (at - workload.since).total_seconds()


def _name(workload: PendingWorkload) -> str:
    """`ml/job/train`, as `gputally why` takes it, with its kind if it is no Job."""
    kind = f" ({workload.job_kind})" if workload.job_kind != "Job" else ""
    return f"{workload.namespace}/job/{workload.job}{kind}"
