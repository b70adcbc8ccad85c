"""Who may preempt whom, by PriorityClass: a matrix, and the same in words."""

from collections.abc import Sequence

from msgspec import Struct

from gputally.model.kube.pods import NEVER
from gputally.posture.class_catalogue import CatalogueClass, own_classes
from gputally.posture.wording import listed


class PermittedPreemptions(Struct, frozen=True, kw_only=True):
    """What pods of one class may preempt, and which may preempt them; system classes are left out.

    Without `policy_exists`, the API server refuses the class.
    """

    name: str
    may_preempt: tuple[str, ...]
    preempted_by: tuple[str, ...]
    sentence: str
    policy_exists: bool = True


def permitted_preemptions(classes: Sequence[CatalogueClass]) -> tuple[PermittedPreemptions, ...]:
    """A row for each class that is not the system's, in the order of the catalogue."""
    own = own_classes(classes)
    return tuple(_row(each, own) for each in own)


def preemptors_of(victim: CatalogueClass, classes: Sequence[CatalogueClass]) -> tuple[str, ...]:
    """The classes, without those of the system, whose pods may preempt those of `victim`."""
    return tuple(each.name for each in own_classes(classes) if each.may_preempt(victim))


def _row(found: CatalogueClass, own: Sequence[CatalogueClass]) -> PermittedPreemptions:
    victims = tuple(each.name for each in own if found.may_preempt(each))
    by = preemptors_of(found, own)
    sentence = f"{found.name} {_preempts(found, victims)}; {_may_preempt_it(by, others=len(own) - 1)}."
    return PermittedPreemptions(
        name=found.name, may_preempt=victims, preempted_by=by, sentence=sentence, policy_exists=found.policy_exists
    )


def _preempts(found: CatalogueClass, victims: Sequence[str]) -> str:
    if victims:
        return f"may preempt {listed(victims)}"
    if not found.policy_exists:
        return f"preempts nobody (the API server refuses preemptionPolicy {found.preemption_policy})"
    return f"preempts nobody (preemptionPolicy {NEVER})" if found.preemption_policy == NEVER else "preempts nobody"


def _may_preempt_it(by: Sequence[str], *, others: int) -> str:
    if not by:
        return "no class may preempt it"
    whom = "all other classes" if len(by) == others and others > 1 else listed(by)
    return f"{whom} may preempt it"
