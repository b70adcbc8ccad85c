"""Says why pods and workloads wait: of one with its evidence, of many the reasons first, then each of them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from gputally.answers.answer_words import (
    OCCUPANT_HEADS,
    OCCUPANT_NUMBERS,
    Facts,
    bound_words,
    first_step,
    gang_words,
    headline_words,
    job_preempted_words,
    next_facts,
    nodes_words,
    occupant_cells,
    pod_facts,
    quota_line,
    similar_words,
    unaccounted_words,
    wait_facts,
)
from gputally.answers.help_words import change_words, effect_words
from gputally.formatting.amounts import count_words, gpu_words, money_range, pod_words
from gputally.formatting.times import duration
from gputally.formatting.wrapping import headed, headed_if, headed_table, paragraph, table, wrapped_cell
from gputally.model.api.pending import (
    PendingDocument,
    PendingFinding,
    PendingPod,
    PendingReason,
    PendingTenant,
    PendingWorkload,
)
from gputally.model.api.why import Help, ObstacleText, OccupantPod, WhyAnswer, WhyDocument
from gputally.model.printable import printable

_WORKLOAD_HEADS: Final = ("GPUS", "PODS", "TIER", "SINCE", "REASON", "WORKLOAD")
_MOST_OCCUPANTS: Final = 5
_MOST_OBSTACLES: Final = 3
_MOST_HELPS: Final = 3
_MOST_GANGS: Final = 3
_HEADS: Final = ("GPUS", "TIER", "WAITED", "REASON", "POD")


def workload_lines(workload: PendingWorkload, document: WhyDocument, *, width: int) -> Iterator[str]:
    """Which pods it lacks, for how long and why, with the evidence."""
    range_ = workload.cost_per_hour, workload.highest_per_hour
    cost = money_range(*range_, document.currency) if workload.cost_per_hour is not None else ""
    size = "an unknown number of GPUs" if workload.gpus_per_pod is None else gpu_words(workload.gpus_per_pod)
    what = f"{pod_words(workload.pods)} of {size}{' each' * (workload.pods > 1)}"
    lacks = f"{'at least ' * workload.is_at_least}{what}{f', {cost} per hour' * bool(cost)}"
    since = duration(_seconds(workload, document.at))
    yield from paragraph(f"{_workload_name(workload)} has lacked {lacks}, for {since}: {workload.text}.", width)
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
    yield from table(
        [_WORKLOAD_HEADS, *(_row(each, document.at) for each in document.workloads)], right=frozenset({0, 1, 3})
    )
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
        _workload_name(workload),
    )


def _seconds(workload: PendingWorkload, at: datetime) -> float:
    return (at - workload.since).total_seconds()


def _workload_name(workload: PendingWorkload) -> str:
    """`ml/job/train`, as `gputally why` takes it, with its kind if it is no Job."""
    kind = f" ({workload.job_kind})" if workload.job_kind != "Job" else ""
    return f"{workload.namespace}/job/{workload.job}{kind}"


def why_lines(document: WhyDocument, *, width: int) -> Iterator[str]:
    """All answers, with an empty line between two."""
    for index, block in enumerate(filter(None, map(list, _blocks(document, width)))):
        if index:
            yield ""
        yield from block


def _blocks(document: WhyDocument, width: int) -> Iterator[Iterable[str]]:
    """What belongs together; a block may have no lines."""
    yield from (_answer(each, document, width) for each in document.answers)
    yield from (workload_lines(each, document, width=width) for each in document.workloads)
    if document.answers:
        yield paragraph(bound_words(document), width) if document.bound else ()
    yield (part for line in job_preempted_words(document) for part in paragraph(line, width))
    yield from (paragraph(unaccounted_words(each), width) for each in document.unaccounted)


def _answer(answer: WhyAnswer, document: WhyDocument, width: int) -> Iterator[str]:
    yield from paragraph(headline_words(answer, document.currency), width)
    yield from _facts(pod_facts(answer, document), width)
    yield from obstacle_lines(answer.obstacles, width=width)
    yield from headed_if("Nodes", nodes_words(answer), width=width)
    yield from occupant_lines("Held by", answer.occupants, document.currency, width=width, more=answer.more_occupants)
    yield from _facts(wait_facts(answer, document), width)
    yield from headed_if("Others", similar := similar_words(answer), width=width)
    yield from others_lines("" if similar else "Others", answer.others_waiting, width=width)
    yield from would_help(answer.helps, document.currency, width=width)
    yield from _facts(next_facts(answer), width)


def _facts(facts: Facts, width: int) -> Iterator[str]:
    """Each behind its heading, which is not repeated."""
    latest = ""
    for head, text in facts:
        yield from headed("" if head == latest else head, text, width=width)
        latest = head


def obstacle_lines(obstacles: Sequence[ObstacleText], *, width: int) -> Iterator[str]:
    """The first obstacles, and how many more there are."""
    for index, each in enumerate(obstacles[:_MOST_OBSTACLES]):
        yield from headed("" if index else "Blocked by", each.text, width=width)
    if len(obstacles) > _MOST_OBSTACLES:
        yield from headed("", f"and {len(obstacles) - _MOST_OBSTACLES:,} more", width=width)


def occupant_lines(
    head: str, occupants: Sequence[OccupantPod], currency: str, *, width: int, more: int = 0
) -> Iterator[str]:
    """A table of the first ones, and how many more there are."""
    if not occupants:
        return
    shown = occupants[:_MOST_OCCUPANTS]
    rows = [[each.upper() for each in OCCUPANT_HEADS], *(occupant_cells(each, currency) for each in shown)]
    used = [column for column in range(len(OCCUPANT_HEADS)) if any(row[column] for row in rows[1:])]
    chosen = [[row[column] for column in used] for row in rows]
    right = frozenset(place for place, column in enumerate(used) if column in OCCUPANT_NUMBERS)
    yield from headed_table(head, chosen, right=right)
    if hidden := len(occupants) - len(shown) + more:
        yield from headed("", f"and {hidden:,} more", width=width)


def others_lines(head: str, others_waiting: int, *, width: int, more: str = "") -> Iterator[str]:
    """How many pods wait already that may be bound first, if any, and what `more` is known of them."""
    if others_waiting:
        verb = "waits" if others_waiting == 1 else "wait"
        yield from headed(
            head,
            f"{pod_words(others_waiting)} of the same or a higher priority {verb} for such GPUs{more}",
            width=width,
        )


def would_help(helps: Sequence[Help], currency: str, *, width: int) -> Iterator[str]:
    """The first suggestions with who can make them and what they would destroy; apart, those that change the job."""
    changing = [each for each in helps if each.changes_job]
    kept = [each for each in helps if not each.changes_job][: _MOST_HELPS - bool(changing)]
    for head, shown in (("Would help", kept), ("Change job", changing[: _MOST_HELPS - len(kept)])):
        for index, each in enumerate(shown):
            text = f"- {change_words(each)}: {effect_words(each, currency)}"
            yield from headed("" if index else head, text, width=width)


def pending_lines(document: PendingDocument, *, subject: str, width: int) -> Iterator[str]:
    """How many pods wait, for which reasons, and each of them; then the workloads that lack pods."""
    if document.pod_count:
        yield from _pods(document, subject, width)
    else:
        yield printable(f"No pod {subject} waits for GPUs.".replace("  ", " "))
    if document.workload_count:
        yield ""
        yield from workload_table(document, width=width)


def _pods(document: PendingDocument, subject: str, width: int) -> Iterator[str]:
    yield from paragraph(_headline(document, subject), width)
    yield ""
    yield from _reasons(document, width)
    if document.currency and (without := sum(each.unpriced_gpus for each in document.reasons)):
        verb = "has" if without == 1 else "have"
        yield f"{gpu_words(without)} {verb} no price: no node that the pods select has one"
    if uncharged := sum(each.uncharged_pods for each in document.reasons):
        yield f"{pod_words(uncharged)} not charged, without GPUs in these sums: more GPUs than any node ever had"
    for finding in document.findings:
        yield from headed(finding.finding.capitalize(), _finding(finding, document), width=width)
    for gang in document.gangs[:_MOST_GANGS]:
        yield from headed("Gang", gang_words(gang, document.currency, now=document.at), width=width)
    if hidden := len(document.gangs) - _MOST_GANGS:
        yield from headed("", f"and {hidden:,} more partial gangs", width=width) if hidden > 0 else ()
    yield ""
    if len(document.tenants) > 1:
        yield from _tenants(document)
        yield ""
    yield from table([_HEADS, *(_pod(each, document) for each in document.pods)], right=frozenset({0, 2}))
    if more := document.pod_count - len(document.pods):
        yield f"and {pod_words(more)} more; narrow it down by NAMESPACE or --tenant"


def _headline(document: PendingDocument, subject: str) -> str:
    total = sum(each.gpus for each in document.reasons)
    verb = "waits" if document.pod_count == 1 else "wait"
    first = max(document.reasons, key=lambda each: each.gpus)
    why = f": {first.meaning}"
    if len(document.reasons) > 1:
        is_most = 2 * first.gpus > total
        why = f", mostly for one reason{why}" if is_most else f", for {len(document.reasons)} reasons"
    return f"{pod_words(document.pod_count)} {subject} {verb} for {gpu_words(total)}{why}.".replace("  ", " ")


def _reasons(document: PendingDocument, width: int) -> Iterator[str]:
    heads = (*_sum_heads(document), "REASON", "")
    rows = [heads, *((*_sums(each, document), each.reason, each.meaning) for each in document.reasons)]
    for line, (*_, meaning) in zip(table(rows, right=frozenset(range(len(heads) - 2))), rows, strict=True):
        yield from wrapped_cell(line, start=len(line) - len(meaning), width=width)


def _finding(finding: PendingFinding, document: PendingDocument) -> str:
    """How many pods wait that should come first, who comes before them, and which ones wait for the longest time."""
    more = f" and {finding.pods - len(finding.names):,} more" if finding.pods > len(finding.names) else ""
    since = duration((document.at - finding.oldest).total_seconds())
    have = "has" if finding.pods == 1 else "have"
    what = f"{pod_words(finding.pods)} {have} waited for {gpu_words(finding.gpus)}, up to {since}"
    return f"{what}, because {finding.meaning}: {', '.join(finding.names)}{more}"


def _tenants(document: PendingDocument) -> Iterator[str]:
    heads = (*_sum_heads(document), "MAIN REASON", "TENANT")
    rows = [(*_sums(each, document), each.reason, each.tenant) for each in document.tenants]
    yield from table([heads, *rows], right=frozenset(range(len(heads) - 2)))


def _sum_heads(document: PendingDocument) -> Sequence[str]:
    return "GPUS", "PODS", *(["PER HOUR"] if _is_priced(document) else []), "OLDEST"


def _sums(each: PendingReason | PendingTenant, document: PendingDocument) -> Sequence[str]:
    range_ = each.cost_per_hour, each.highest_per_hour
    cost = [money_range(*range_, document.currency)] if _is_priced(document) else []
    oldest = duration((document.at - each.oldest).total_seconds())
    return count_words(each.gpus), f"{each.pods:,}", *cost, oldest


def _is_priced(document: PendingDocument) -> bool:
    return bool(document.currency)


def _pod(pod: PendingPod, document: PendingDocument) -> tuple[str, ...]:
    waited = duration((document.at - pod.created).total_seconds())
    return count_words(pod.gpus), pod.tier, waited, pod.reason, f"{pod.namespace}/{pod.pod}"
