"""Findings about the order of priorities: which waiting pods others should not precede."""

from collections.abc import Iterable, Mapping
from typing import Final

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.viewer import Viewer
from gputally.formatting.amounts import GPU_RESOURCE, amount_words
from gputally.model.api.pending import PendingFinding
from gputally.model.api.why import PriorityNote
from gputally.model.units import GPU, to_datetime
from gputally.model.verdicts import FindingKind, PriorityFinding

MOST_NAMED: Final = 3
"""Pods that an entry names."""
_MEANINGS: Final[Mapping[FindingKind, str]] = {
    FindingKind.INVERSION: "pods that serve no users hold such GPUs, at the same or a higher priority",
    FindingKind.STARVATION: "pods of lower priority got such GPUs later, and cannot be preempted for them",
    FindingKind.OUTRANKED: "pods of lower priority hold such GPUs, and cannot be preempted for them",
}
_HIDDEN_MEANING: Final = "other pods hold such GPUs, although the waiting pods should come first"
"""For readers who may not know the priorities of other tenants' pods."""
_TEXTS: Final[Mapping[FindingKind, str]] = {
    FindingKind.OUTRANKED: "pods of lower priority hold {gpus} where it could run{named}, and it cannot preempt them",
    FindingKind.STARVATION: "pods of lower priority got {gpus} after it had begun to wait{named}",
    FindingKind.INVERSION: "pods that serve no users hold {gpus} at the same or a higher priority{named}",
}
_HIDDEN_TEXT: Final = "other tenants hold {gpus} where it could run, although it should precede them"
"""The reader may not know the priorities of other tenants' pods."""


def findings_of(now: PendingNow, uid: str) -> dict[str, int]:
    """The GPUs of pods that should not precede this one, by the kind; a starved pod is not also outranked."""
    found = dict(now.findings.get(uid, ()))
    if FindingKind.STARVATION in found:
        found.pop(FindingKind.OUTRANKED, None)
    return {kind.value: gpus for kind, gpus in found.items()}


def finding_entries(now: PendingNow, waiting: Iterable[WaitingPod], viewer: Viewer) -> list[PendingFinding]:
    """The sums of each kind that any of these pods has, in the order of the kinds; the pods come by age."""
    by_kind: dict[str, list[WaitingPod]] = {}
    for each in waiting:
        for kind in findings_of(now, each.record.uid):
            by_kind.setdefault(kind, []).append(each)
    return [_entry(kind, by_kind[kind], viewer) for kind in FindingKind if kind in by_kind]


def _entry(kind: FindingKind, pods: list[WaitingPod], viewer: Viewer) -> PendingFinding:
    return PendingFinding(
        finding=kind.value,
        meaning=_MEANINGS[kind] if viewer.tenants is None else _HIDDEN_MEANING,
        pods=len(pods),
        gpus=sum(each.charged for each in pods) / GPU,
        oldest=to_datetime(min(each.since_us for each in pods)),
        names=[f"{each.record.namespace}/{each.record.name}" for each in pods[:MOST_NAMED]],
    )


def priority_note(finding: PriorityFinding, now: PendingNow, viewer: Viewer) -> PriorityNote:
    """The finding with the name of one pod, if the reader may know it."""
    records = [now.records[uid] for uid in finding.pods if uid in now.records]
    seen = [each for each in records if each.terms and viewer.sees(each.terms[-1].tenant)]
    named = f", such as {seen[0].namespace}/{seen[0].name}" if seen else ""
    text = _HIDDEN_TEXT if viewer.tenants is not None and not seen else _TEXTS[finding.kind]
    text = text.format(gpus=amount_words(GPU_RESOURCE, finding.gpus), named=named)
    return PriorityNote(kind=finding.kind.value, text=text, gpus=finding.gpus)
