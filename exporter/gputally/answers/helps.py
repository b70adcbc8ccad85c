"""What would help a pod that waits, as far as the reader may know it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gputally.accounting.fleet.active_pods import holding
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.terms.tier import serves, tier_of
from gputally.accounting.waiting.packing import Job
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.occupants import Rank, occupants
from gputally.answers.verdict_words import quota_words, without_value
from gputally.answers.viewer import Viewer
from gputally.formatting.amounts import amount_words, gpu_words, listed
from gputally.model.advice import ACTORS, CHANGES_JOB, Actor, ChangeKind, PriorityChoice, SuggestedChange, Suggestion
from gputally.model.api.why import Help
from gputally.model.needs import Needs, Situation
from gputally.model.partial_gangs import PartialGang
from gputally.model.units import GPU
from gputally.model.verdicts import Verdict
from gputally.placement.room import is_planned
from gputally.placement.suggestions import suggestions

_MOST_NAMES: Final = 3
_MOST_HELPS: Final = 5
_OF_NODES: Final = (ChangeKind.REMOVE_TAINT, ChangeKind.UNCORDON)
"""Changes of nodes, which a user restricted to tenants may not know."""


class RelatedPods(NamedTuple):
    """UIDs of pods: those of the same job that have GPUs, and those that do not end before the pod is bound.

    The latter are those of its own gang, and of gangs that wait for each other. `rival` is the gang that waits for the
    pod's gang while that waits for it.
    """

    siblings: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    rival: PartialGang | None = None


NO_RELATED = RelatedPods()


def deadlocked(now: PendingNow) -> frozenset[str]:
    """UIDs of the pods that gangs hold which wait for each other."""
    keys = {key for each in now.deadlocks for key in each}
    return frozenset(uid for each in now.gangs if each.key in keys for uid in each.pods)


class Relations:
    """The related pods of waiting ones; looks at all pods once, and once at each job and gang, which may be large."""

    def __init__(self, now: PendingNow, waiting: Iterable[WaitingPod]) -> None:
        self._now = now
        jobs = {each.record.full_job for each in waiting}
        self._siblings: dict[Job, set[str]] = {}
        for uid, record in now.records.items():
            if record.segments and record.end_us is None and (job := record.full_job) in jobs:
                self._siblings.setdefault(job, set()).add(uid)
        self._deadlocked = deadlocked(now)
        self._gangs = {uid: each for each in now.gangs for uid in (*each.pods, *each.pending)}
        self._known: dict[tuple[Job, str], RelatedPods] = {}

    def of(self, waiting: WaitingPod) -> RelatedPods:
        """The related pods of one of them."""
        job, gang = waiting.record.full_job, self._gangs.get(waiting.record.uid)
        key = job, gang.key if gang else ""
        if key not in self._known:
            self._known[key] = self._related(job, gang)
        return self._known[key]

    def _related(self, job: Job, gang: PartialGang | None) -> RelatedPods:
        siblings = frozenset(self._siblings.get(job, ()))
        if gang is None:
            return RelatedPods(siblings, self._deadlocked)
        rivals = self._rivals(gang)
        return RelatedPods(siblings, self._deadlocked.union(gang.pods), rivals[0] if len(rivals) == 1 else None)

    def _rivals(self, gang: PartialGang) -> list[PartialGang]:
        keys = {key for each in self._now.deadlocks if gang.key in each for key in each} - {gang.key}
        return [each for each in self._now.gangs if each.key in keys]


_STEPS: Final[Mapping[ChangeKind, Callable[[SuggestedChange, str, str], str]]] = {
    ChangeKind.TOLERATE: lambda change, *_: f"tolerate the taint {change.what}",
    ChangeKind.REMOVE_TAINT: lambda change, on, _: f"remove the taint {change.what}{on.replace(' on ', ' from ')}",
    ChangeKind.UNCORDON: lambda _, on, __: f"uncordon {on.removeprefix(' on ') or 'its node'}",
    ChangeKind.DROP_SELECTOR: lambda change, *_: f"no longer require {change.what}",
    ChangeKind.PREEMPT: lambda *_: "let its PriorityClass preempt (preemptionPolicy: PreemptLowerPriority)",
    ChangeKind.USE_CLASS: lambda change, *_: f"ask for PriorityClass {change.what}",
    ChangeKind.WAIT: lambda change, on, pods: (
        f"wait until {pods}{on} {'ends' if len(change.pods) == 1 and 'pods' not in pods.split() else 'end'}"
    ),
    ChangeKind.RAISE_QUOTA: lambda change, *_: f"raise quota {_raised(change)}",
    ChangeKind.REMOVE_GATE: lambda change, *_: f"remove the scheduling gate {change.what}",
    ChangeKind.ADD_NODE: lambda _, on, __: (
        f"add an empty node like {on.removeprefix(' on ') or 'those that it can use'}"
    ),
}


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
    """The suggestions that help a pod with these related ones, and that the reader may know."""
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


def help_of(suggestion: Suggestion, now: PendingNow, rank: Rank, viewer: Viewer, *, pods: int = 1) -> Help:
    """The suggestion with the pods that would be preempted, as far as the reader may know them; `pods` wait alike."""
    eviction = suggestion.eviction
    chosen = next((each.what for each in suggestion.changes if each.kind is ChangeKind.USE_CLASS), "")
    used = next((each for each in now.classes if each.name == chosen), None)
    rank = Rank(used.value, used.may_preempt, used.name) if used else rank
    less = [_less(each) for each in suggestion.changes if each.kind is ChangeKind.REQUEST_LESS]
    others = [_step(each, now, viewer) for each in suggestion.changes if each.kind is not ChangeKind.REQUEST_LESS]
    steps = listed([*others, *([f"request only {listed(less)}"] if less else [])])
    return Help(
        text=steps,
        by=list(dict.fromkeys(ACTORS[each.kind].value for each in suggestion.changes)),
        adds_node=any(each.kind is ChangeKind.ADD_NODE for each in suggestion.changes),
        changes_job=any(each.kind in CHANGES_JOB for each in suggestion.changes),
        node=eviction.node if eviction and viewer.sees_nodes else None,
        victims=occupants(now, eviction.victims, rank, viewer) if eviction else [],
        pods=pods,
        bound=suggestion.bound,
    )


def _raised(change: SuggestedChange) -> str:
    name, _, key = change.what.rpartition(": ")
    return f"{name} by {quota_words(key, change.amount or 0)}"


def _step(change: SuggestedChange, now: PendingNow, viewer: Viewer) -> str:
    shown = change.node if viewer.sees_nodes else ""
    if change.kind is ChangeKind.TOLERATE and not viewer.sees_nodes:
        return f"tolerate the taint {without_value(change.what)}"
    return _STEPS[change.kind](change, f" on {shown}" if shown else "", _names(change, now, viewer))


def _names(change: SuggestedChange, now: PendingNow, viewer: Viewer) -> str:
    """The pods of a change, by name as far as the reader may know it, and of others their GPUs."""
    pods = [now.records[uid] for uid in change.pods if uid in now.records]
    named = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.terms and viewer.sees(pod.terms[-1].tenant)]
    shown = named[:_MOST_NAMES]
    if viewer.tenants is not None and len(named) < len(change.pods):
        hidden = [pod for pod in pods if not pod.terms or not viewer.sees(pod.terms[-1].tenant)]
        gpus = sum(holding(pod).quantity for pod in hidden if pod.segments) / GPU
        return listed([*shown, f"other tenants' pods{f' with {gpu_words(gpus)}' * bool(gpus)}"])
    if more := len(change.pods) - len(shown):
        shown.append(f"{more} {'more' if shown else 'pod' if more == 1 else 'pods'}")
    return listed(shown) if shown else "pods"


def _less(change: SuggestedChange) -> str:
    return amount_words(change.what, change.amount or 0)
