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
from gputally.formatting.times import duration, iso
from gputally.formatting.wrapping import Fact, Grid, Paragraph, Part, Parts, fact_if
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
from gputally.output.answer import Answer, live_answer

_WORKLOAD_HEADS: Final = ("GPUS", "PODS", "TIER", "SINCE", "REASON", "WORKLOAD")
_NOT_IN_CSV: Final = ("cost_range", "findings")
_COLUMNS: Final = tuple(name for name in PendingPod.__struct_fields__ if name not in _NOT_IN_CSV)
_MOST_OCCUPANTS: Final = 5
_MOST_OBSTACLES: Final = 3
_MOST_HELPS: Final = 3
_MOST_GANGS: Final = 3
_HEADS: Final = ("GPUS", "TIER", "WAITED", "REASON", "POD")


def why_answer(document: WhyDocument, body: bytes) -> Answer:
    """The answer about one pod or job; CSV has a row for each pod."""
    records = (_record(each.pod) for each in document.answers)
    return live_answer("Why pods wait", why_parts(document), body, at=document.at, columns=_COLUMNS, records=records)


def pending_answer(document: PendingDocument, body: bytes, *, subject: str) -> Answer:
    """The list of pods that wait; CSV has a row for each of them."""
    parts = pending_parts(document, subject=subject)
    return live_answer(
        "Pending GPU pods", parts, body, at=document.at, columns=_COLUMNS, records=map(_record, document.pods)
    )


def _record(pod: PendingPod) -> Sequence[object]:
    values = (getattr(pod, name) for name in _COLUMNS)
    return [iso(each) if isinstance(each, datetime) else each for each in values]


def workload_parts(workload: PendingWorkload, document: WhyDocument) -> Parts:
    """Which pods it lacks, for how long and why, with the evidence."""
    range_ = workload.cost_per_hour, workload.highest_per_hour
    cost = money_range(*range_, document.currency) if workload.cost_per_hour is not None else ""
    size = "an unknown number of GPUs" if workload.gpus_per_pod is None else gpu_words(workload.gpus_per_pod)
    what = f"{pod_words(workload.pods)} of {size}{' each' * (workload.pods > 1)}"
    lacks = f"{'at least ' * workload.is_at_least}{what}{f', {cost} per hour' * bool(cost)}"
    since = duration(_seconds(workload, document.at))
    yield Paragraph(f"{_workload_name(workload)} has lacked {lacks}, for {since}: {workload.text}.")
    payer = f"tier {workload.tier}, tenant {workload.tenant}"
    known = "" if workload.class_name is None else f"{workload.class_name or 'none'}; "
    yield Fact("Class", known + payer)
    if quota := workload.quota:
        yield Fact("Quota", quota_line(quota))
    if workload.message not in workload.text:
        yield Fact("API server", workload.message)
    for head, change in (("Would help", workload.helps), ("Change job", workload.job_changes)):
        yield from fact_if(head, f"- {change}" * bool(change))
    suggested = bool(workload.helps or workload.job_changes)
    yield from fact_if("First step", first_step(workload.reason, has_suggestions=suggested))


def workload_table(document: PendingDocument) -> Parts:
    """How many pods workloads lack, and each of these workloads."""
    reasons = document.workload_reasons
    total, missing = sum(each.gpus for each in reasons), sum(each.pods for each in reasons)
    count, unknown = document.workload_count - document.unmeasured_count, document.unmeasured_count
    subject = f"{count:,} workload{' lacks' if count == 1 else 's lack'}"
    why = "; ".join(f"{each.pods:,} because {each.meaning}" for each in reasons)
    if count:
        yield Paragraph(f"{subject} {pod_words(missing)} with {gpu_words(total)}, which do not exist: {why}.")
    if unknown:
        whose = f"Pods of {unknown:,} {'more ' * bool(count)}workload{'s' * (unknown != 1)} are refused"
        yield Paragraph(f"{whose}; nothing says how many GPUs they request, if any.")
    yield ""
    yield Grid([_WORKLOAD_HEADS, *(_row(each, document.at) for each in document.workloads)], frozenset({0, 1, 3}))
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


def why_parts(document: WhyDocument) -> Parts:
    """All answers, with an empty line between two."""
    for index, block in enumerate(filter(None, map(list, _blocks(document)))):
        if index:
            yield ""
        yield from block


def _blocks(document: WhyDocument) -> Iterator[Iterable[Part]]:
    """What belongs together; a block may have no lines."""
    yield from (_answer(each, document) for each in document.answers)
    yield from (workload_parts(each, document) for each in document.workloads)
    if document.answers:
        yield [Paragraph(bound_words(document))] if document.bound else ()
    yield map(Paragraph, job_preempted_words(document))
    yield from ([Paragraph(unaccounted_words(each))] for each in document.unaccounted)


def _answer(answer: WhyAnswer, document: WhyDocument) -> Parts:
    yield Paragraph(headline_words(answer, document.currency))
    yield from _facts(pod_facts(answer, document))
    yield from obstacle_parts(answer.obstacles)
    yield from fact_if("Nodes", nodes_words(answer))
    yield from occupant_parts("Held by", answer.occupants, document.currency, more=answer.more_occupants)
    yield from _facts(wait_facts(answer, document))
    yield from fact_if("Others", similar := similar_words(answer))
    yield from others_parts("" if similar else "Others", answer.others_waiting)
    yield from would_help(answer.helps, document.currency)
    yield from _facts(next_facts(answer))


def _facts(facts: Facts) -> Parts:
    """Each behind its heading, which is not repeated."""
    latest = ""
    for head, text in facts:
        yield Fact("" if head == latest else head, text)
        latest = head


def obstacle_parts(obstacles: Sequence[ObstacleText]) -> Parts:
    """The first obstacles, and how many more there are."""
    for index, each in enumerate(obstacles[:_MOST_OBSTACLES]):
        yield Fact("" if index else "Blocked by", each.text)
    if len(obstacles) > _MOST_OBSTACLES:
        yield Fact("", f"and {len(obstacles) - _MOST_OBSTACLES:,} more")


def occupant_parts(head: str, occupants: Sequence[OccupantPod], currency: str, *, more: int = 0) -> Parts:
    """A table of the first ones, and how many more there are."""
    if not occupants:
        return
    shown = occupants[:_MOST_OCCUPANTS]
    rows = [[each.upper() for each in OCCUPANT_HEADS], *(occupant_cells(each, currency) for each in shown)]
    used = [column for column in range(len(OCCUPANT_HEADS)) if any(row[column] for row in rows[1:])]
    chosen = [[row[column] for column in used] for row in rows]
    right = frozenset(place for place, column in enumerate(used) if column in OCCUPANT_NUMBERS)
    yield Grid(chosen, right, head)
    if hidden := len(occupants) - len(shown) + more:
        yield Fact("", f"and {hidden:,} more")


def others_parts(head: str, others_waiting: int, *, more: str = "") -> Parts:
    """How many pods wait already that may be bound first, if any, and what `more` is known of them."""
    if others_waiting:
        verb = "waits" if others_waiting == 1 else "wait"
        yield Fact(head, f"{pod_words(others_waiting)} of the same or a higher priority {verb} for such GPUs{more}")


def would_help(helps: Sequence[Help], currency: str) -> Parts:
    """The first suggestions with who can make them and what they would destroy; apart, those that change the job."""
    changing = [each for each in helps if each.changes_job]
    kept = [each for each in helps if not each.changes_job][: _MOST_HELPS - bool(changing)]
    for head, shown in (("Would help", kept), ("Change job", changing[: _MOST_HELPS - len(kept)])):
        for index, each in enumerate(shown):
            text = f"- {change_words(each)}: {effect_words(each, currency)}"
            yield Fact("" if index else head, text)


def pending_parts(document: PendingDocument, *, subject: str) -> Parts:
    """How many pods wait, for which reasons, and each of them; then the workloads that lack pods."""
    if document.pod_count:
        yield from _pods(document, subject)
    else:
        yield printable(f"No pod {subject} waits for GPUs.".replace("  ", " "))
    if document.workload_count:
        yield ""
        yield from workload_table(document)


def _pods(document: PendingDocument, subject: str) -> Parts:
    yield Paragraph(_headline(document, subject))
    yield ""
    yield from _reasons(document)
    if document.currency and (without := sum(each.unpriced_gpus for each in document.reasons)):
        verb = "has" if without == 1 else "have"
        yield f"{gpu_words(without)} {verb} no price: no node that the pods select has one"
    if uncharged := sum(each.uncharged_pods for each in document.reasons):
        yield f"{pod_words(uncharged)} not charged, without GPUs in these sums: more GPUs than any node ever had"
    for finding in document.findings:
        yield Fact(finding.finding.capitalize(), _finding(finding, document))
    for gang in document.gangs[:_MOST_GANGS]:
        yield Fact("Gang", gang_words(gang, document.currency, now=document.at))
    if hidden := len(document.gangs) - _MOST_GANGS:
        yield from fact_if("", f"and {hidden:,} more partial gangs" if hidden > 0 else "")
    yield ""
    if len(document.tenants) > 1:
        yield from _tenants(document)
        yield ""
    yield Grid([_HEADS, *(_pod(each, document) for each in document.pods)], frozenset({0, 2}))
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


def _reasons(document: PendingDocument) -> Parts:
    heads = (*_sum_heads(document), "REASON", "")
    rows = [heads, *((*_sums(each, document), each.reason, each.meaning) for each in document.reasons)]
    yield Grid(rows, frozenset(range(len(heads) - 2)), wraps=True)


def _finding(finding: PendingFinding, document: PendingDocument) -> str:
    """How many pods wait that should come first, who comes before them, and which ones wait for the longest time."""
    more = f" and {finding.pods - len(finding.names):,} more" if finding.pods > len(finding.names) else ""
    since = duration((document.at - finding.oldest).total_seconds())
    have = "has" if finding.pods == 1 else "have"
    what = f"{pod_words(finding.pods)} {have} waited for {gpu_words(finding.gpus)}, up to {since}"
    return f"{what}, because {finding.meaning}: {', '.join(finding.names)}{more}"


def _tenants(document: PendingDocument) -> Parts:
    heads = (*_sum_heads(document), "MAIN REASON", "TENANT")
    rows = [(*_sums(each, document), each.reason, each.tenant) for each in document.tenants]
    yield Grid([heads, *rows], frozenset(range(len(heads) - 2)))


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
