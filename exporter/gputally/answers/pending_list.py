"""The document of waiting pods, with what would help them, and of workloads that lack pods."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.help_words import change_words
from gputally.answers.helps import RelatedPods, Relations, helps_among, suggestions_for
from gputally.answers.occupants import gang_entries
from gputally.answers.pending_filters import unknown_to
from gputally.answers.pending_pods import chosen, pending_document, pending_pod
from gputally.answers.priority_findings import finding_entries
from gputally.answers.uncreated_workloads import chosen_workloads, pending_workload, workload_reasons
from gputally.answers.viewer import Viewer
from gputally.answers.why_waiting import rank_of
from gputally.formatting.amounts import pods_words
from gputally.model.api.pending import PendingDocument, PendingPod
from gputally.model.api.why import Help
from gputally.questions.pending import Pending

if TYPE_CHECKING:
    from gputally.model.advice import Suggestion
    from gputally.model.needs import Needs
    from gputally.model.verdicts import Verdict

    _Request = tuple[Needs | None, Verdict, bool]
    """What suggestions depend on; also whether the pod's tier serves users."""

_MOST_HELPED: Final = 50
"""Different requests whose changes are checked for one document; the others go without."""


def pending_list(now: PendingNow, asked: Pending, viewer: Viewer) -> PendingDocument:
    """The document that was asked for, without the address of the next page."""
    found = chosen(now, asked.filters, viewer)
    page = found[asked.offset : asked.offset + asked.limit]
    helps = _Helps(now, page, viewer) if asked.helps else None
    pods = [_helped(now, each, viewer, helps) for each in page]
    workloads = chosen_workloads(now, asked.filters, viewer)
    gangs = gang_entries(now, asked.filters, viewer)
    unknown = [] if found or workloads or gangs else unknown_to(now, asked.filters, viewer)
    return replace(
        pending_document(now, found, pods, unknown=unknown),
        workloads=[pending_workload(now, each) for each in workloads[asked.offset : asked.offset + asked.limit]],
        workload_reasons=workload_reasons(workloads),
        workload_count=len(workloads),
        unmeasured_count=sum(not each.quantity for each in workloads),
        gangs=gangs,
        findings=finding_entries(now, found, viewer),
    )


class _Helps:
    """The first changes that would help, once for equal pods."""

    def __init__(self, now: PendingNow, page: Sequence[WaitingPod], viewer: Viewer) -> None:
        self._now = now
        self._viewer = viewer
        self._relations = Relations(now, page)
        self._suggested: dict[_Request, Sequence[Suggestion]] = {}
        self._known: dict[tuple[_Request, RelatedPods], tuple[str, str]] = {}

    def of(self, waiting: WaitingPod) -> tuple[str, str]:
        """The first one that leaves the job as it is, and the first one that changes it; "" if none is known."""
        needs, verdict, situation = waiting.needs, waiting.verdict, waiting.situation
        request = needs, verdict, situation.is_serving
        if request not in self._suggested:
            if len(self._suggested) >= _MOST_HELPED:
                return "", ""
            self._suggested[request] = suggestions_for(self._now, verdict, needs, situation)
        key = request, self._relations.of(waiting)
        if key not in self._known:
            rank = rank_of(waiting.record)
            found = helps_among(self._suggested[request], self._now, rank=rank, viewer=self._viewer, related=key[1])
            kept = next((_in_brief(each) for each in found if not each.changes_job), "")
            self._known[key] = kept, next((_in_brief(each) for each in found if each.changes_job), "")
        return self._known[key]


def _in_brief(found: Help) -> str:
    return f"{change_words(found)}{f': it then preempts {pods_words(found.victims)}' if found.victims else ''}"


def _helped(now: PendingNow, waiting: WaitingPod, viewer: Viewer, helps: _Helps | None) -> PendingPod:
    pod = pending_pod(now, waiting, viewer)
    if helps is None:
        return pod
    kept, changing = helps.of(waiting)
    return replace(pod, helps=kept, job_changes=changing)
