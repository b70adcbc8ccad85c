"""The answers of `gputally why` about a namespace, a tenant or all: the reasons first, then the pods."""

from collections.abc import Iterator, Sequence
from typing import Final

from gputally.answers.answer_words import gang_words
from gputally.model.api.pending import PendingDocument, PendingFinding, PendingPod, PendingReason, PendingTenant
from gputally.model.printable import printable
from gputally.pending_api.words.amount_words import count_words, gpu_words, money_range, pod_words
from gputally.pending_api.words.duration_words import duration
from gputally.why_command.text_lines import headed, paragraph, table, wrapped_cell
from gputally.why_command.workload_text import workload_table

_MOST_GANGS: Final = 3
_HEADS: Final = ("GPUS", "TIER", "WAITED", "REASON", "POD")


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
