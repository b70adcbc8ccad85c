"""What would help a pod that waits, as far as the reader may know it."""

from collections.abc import Iterable, Sequence
from typing import Final

from gputally.accounting.terms.serving_tiers import serves
from gputally.accounting.terms.tier import tier_of
from gputally.model.advice import Actor, ChangeKind, PriorityChoice, Suggestion
from gputally.model.api.why import Help
from gputally.model.needs import Needs, Situation
from gputally.model.partial_gangs import PartialGang
from gputally.model.verdicts import Verdict
from gputally.pending_api.helps.related_pods import NO_RELATED, RelatedPods
from gputally.pending_api.occupants import Rank
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.words.suggestion_words import help_of
from gputally.placement.room import is_planned
from gputally.placement.suggestions import suggestions

_MOST_HELPS: Final = 5
_OF_NODES: Final = (ChangeKind.REMOVE_TAINT, ChangeKind.UNCORDON)
"""Changes of nodes, which a user restricted to tenants may not know."""


def helps_of(  # noqa: PLR0913 - what decides about a pod
    now: PendingNow,
    verdict: Verdict | None,
    needs: Needs | None,
    situation: Situation,
    *,
    rank: Rank,
    viewer: Viewer,
    related: RelatedPods = NO_RELATED,
    pods: int = 1,
) -> list[Help]:
    """What would help the first of `pods` that wait alike, and how many of them; see `suggestions_for`."""
    found = suggestions_for(now, verdict, needs, situation, count=pods)
    return helps_among(found, now, rank=rank, viewer=viewer, related=related, pods=pods)


def suggestions_for(
    now: PendingNow, verdict: Verdict | None, needs: Needs | None, situation: Situation, *, count: int = 1
) -> Sequence[Suggestion]:
    """Changes, each checked by the model; none without a verdict, or while the request is not known."""
    if verdict is None or needs is None:
        return ()
    classes = [each for each in now.classes if situation.is_serving or not _is_for_users(each, now)]
    return suggestions(verdict, needs, now.room, situation, classes=classes, count=count)


def helps_among(
    found: Iterable[Suggestion], now: PendingNow, *, rank: Rank, viewer: Viewer, related: RelatedPods, pods: int = 1
) -> list[Help]:
    """Those that are of use to a pod with these related ones, and that the reader may know."""
    possible = (each for each in found if _is_of_use(each, related) and _may_be_known(each, viewer))
    helps = [help_of(each, now, rank, viewer, pods=pods) for each in possible]
    if related.rival and viewer.sees(related.rival.tenant):
        helps = [_suspended(related.rival), *helps]
    return _of_each_kind(helps)


def _suspended(gang: PartialGang) -> Help:
    """Each of two gangs that wait for each other fits without what the other one holds: so they were found."""
    return Help(text=f"suspend {gang.kind} {gang.namespace}/{gang.name}", by=[Actor.ADMIN.value])


def _is_of_use(suggestion: Suggestion, related: RelatedPods) -> bool:
    """Not at the expense of the pod's own job, nor after pods that wait for it, or that do not exist."""
    evicted = suggestion.eviction.victims if suggestion.eviction else ()
    awaited = {uid for change in suggestion.changes for uid in change.pods}
    is_planned_for = any(map(is_planned, (*awaited, *evicted)))
    return not (is_planned_for or related.siblings.intersection(evicted) or related.stuck & awaited)


def _may_be_known(suggestion: Suggestion, viewer: Viewer) -> bool:
    return viewer.sees_nodes or not any(change.kind in _OF_NODES for change in suggestion.changes)


def _of_each_kind(helps: Sequence[Help]) -> list[Help]:
    """The first ones, those last that change the job: at least one of these, if there is any."""
    kept = [each for each in helps if not each.changes_job]
    changing = [each for each in helps if each.changes_job]
    return [*kept[: _MOST_HELPS - bool(changing)], *changing][:_MOST_HELPS]


def _is_for_users(choice: PriorityChoice, now: PendingNow) -> bool:
    """Whether the class is of a tier that serves users, as far as the class decides about the tier."""
    return serves(tier_of(choice.name, choice.value, now.rules), now.rules)
