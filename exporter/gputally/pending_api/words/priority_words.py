"""Findings about the order of priorities in words."""

from collections.abc import Mapping
from typing import Final

from gputally.model.api.why import PriorityNote
from gputally.model.verdicts import FindingKind, PriorityFinding
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.words.amount_words import GPU_RESOURCE, amount_words

_TEXTS: Final[Mapping[FindingKind, str]] = {
    FindingKind.OUTRANKED: "pods of lower priority hold {gpus} where it could run{named}, and it cannot preempt them",
    FindingKind.STARVATION: "pods of lower priority got {gpus} after it had begun to wait{named}",
    FindingKind.INVERSION: "pods that serve no users hold {gpus} at the same or a higher priority{named}",
}
_HIDDEN: Final = "other tenants hold {gpus} where it could run, although it should precede them"
"""Their priorities are not the reader's to know."""


def priority_note(finding: PriorityFinding, now: PendingNow, viewer: Viewer) -> PriorityNote:
    """The finding with the name of one pod, if the reader may know it."""
    records = [now.records[uid] for uid in finding.pods if uid in now.records]
    seen = [each for each in records if each.terms and viewer.sees(each.terms[-1].tenant)]
    named = f", such as {seen[0].namespace}/{seen[0].name}" if seen else ""
    text = _HIDDEN if viewer.tenants is not None and not seen else _TEXTS[finding.kind]
    text = text.format(gpus=amount_words(GPU_RESOURCE, finding.gpus), named=named)
    return PriorityNote(kind=finding.kind.value, text=text, gpus=finding.gpus)
