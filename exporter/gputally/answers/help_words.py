"""What would help a waiting pod, in words: who changes what, and what happens then."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from gputally.answers.answer_words import unnamed_words
from gputally.formatting.amounts import gpu_words, listed
from gputally.model.advice import Actor
from gputally.model.api.why import Help, OccupantPod

ACTOR_WORDS: Final[Mapping[str, str]] = {
    Actor.NOBODY.value: "",
    Actor.OWNER.value: "the owner of the pod",
    Actor.ADMIN.value: "an admin of the cluster",
    Actor.GATE_OWNER.value: "whoever set the gate",
}
"""Who can make a change, in words; "" if nobody has to, since the pod only has to wait."""
_MOST_VICTIMS: Final = 3


def who_words(change: Help) -> str:
    """Who can make a change, such as `the owner of the pod`; "" if the pod only has to wait."""
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
