"""What would help a waiting pod, in words."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from gputally.accounting.fleet.active_pods import holding
from gputally.model.advice import ACTORS, CHANGES_JOB, Actor, ChangeKind, SuggestedChange, Suggestion
from gputally.model.api.why import Help, OccupantPod
from gputally.model.units import GPU
from gputally.pending_api.occupants import Rank, occupants
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.words.amount_words import amount_words, gpu_words, listed
from gputally.pending_api.words.answer_words import unnamed_words
from gputally.pending_api.words.verdict_words import quota_words, without_value

ACTOR_WORDS: Final[Mapping[str, str]] = {
    Actor.NOBODY.value: "",
    Actor.OWNER.value: "the owner of the pod",
    Actor.ADMIN.value: "an admin of the cluster",
    Actor.GATE_OWNER.value: "whoever set the gate",
}
"""Who can make a change, in words; "" if waiting suffices."""
_MOST_NAMES: Final = 3
_MOST_VICTIMS: Final = 3


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


def who_words(change: Help) -> str:
    """`the owner of the pod`; "" if waiting suffices."""
    named = [words for each in change.by if (words := ACTOR_WORDS.get(each, each))]
    return listed(named) if named else ""


def change_words(change: Help) -> str:
    """The change with who can make it: `set priorityClassName high (the owner of the pod)`."""
    who = who_words(change)
    return f"{change.text} ({who})" if who else change.text


def effect_words(each: Help, currency: str) -> str:
    """What happens then: it fits, or whom it would preempt, and what that would destroy."""
    victims = each.victims
    if not victims:
        return _fitting_words(each)
    named = [
        f"{each.namespace}/{each.pod}"
        if each.pod
        else f"{each.tier} ({gpu_words(each.gpus)})"
        if each.tier
        else unnamed_words(each)
        for each in victims
    ]
    shown = named[:_MOST_VICTIMS]
    if more := len(named) - len(shown):
        shown.append(f"{more} more")
    is_whole = all(each.pod for each in victims if each.tier)  # what hidden pods would lose is not the reader's to know
    known = [each for each in victims if is_whole and each.lost_gpu_hours is not None]
    hours = sum(each.lost_gpu_hours or 0 for each in known)
    most = "up to " if any(each.is_lost_upper_bound for each in known) else ""
    lost = f", destroying {most}{hours:.2f} GPU-hours of work{_lost_cost(known, currency, most)}" if known else ""
    who = "it" if each.pods == 1 else f"one of {each.pods:,}"
    return f"{who} then preempts {listed(shown)}{f' on {each.node}' if each.node else ''}{interrupted(victims)}{lost}"


def _fitting_words(each: Help) -> str:
    """`it then fits`; of several pods, `1 of 2 then fits` or `all 2 then fit`."""
    if each.pods == 1:
        return "it then fits"
    if each.bound < each.pods:
        return f"{each.bound:,} of {each.pods:,} then {'fits' if each.bound == 1 else 'fit'}"
    return f"all {each.pods:,} then fit"


def interrupted(victims: Sequence[OccupantPod]) -> str:
    """`, interrupting 2 serving pods`; "" without any."""
    serving = sum(each.serves_users for each in victims)
    return f", interrupting {serving} serving pod{'s' if serving > 1 else ''}" if serving else ""


def _lost_cost(known: Sequence[OccupantPod], currency: str, most: str) -> str:
    priced = [Decimal(each.lost_cost) for each in known if each.lost_cost is not None]
    return f" ({most}{sum(priced, Decimal(0)):,.2f} {currency})" if priced and currency else ""


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
