"""Checks of PriorityClasses: whether the API server accepts them, and whether they do what their authors meant."""

import re
from collections.abc import Iterator
from typing import Final

from gputally.model.objects.core_values import NEVER, PREEMPTS
from gputally.posture.class_catalogue import POLICIES, CatalogueClass, own_classes
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.posture_state import PostureState
from gputally.posture.wording import listed

_LARGEST: Final = 1_000_000_000
"""Of classes that are not the system's. Source: k8s.io/kubernetes pkg/apis/scheduling/types.go."""
_MEANT_NOT_TO: Final = re.compile(
    r"\b(?:(?:does|must|should|may|can|will) not|(?:does|must|should|ca|wo)n't|never|cannot|without|non?)"
    r"[ _-]?preempt(?:s|ing|ion)?\b",
    re.IGNORECASE,
)
"""Says that the class does not preempt: "must not preempt", "never preempts", "nonpreempting", "no preemption". Not
"must not be preempted", "never preempted" or "do not preempt", which are about victims."""


def class_object(found: CatalogueClass) -> ObjectName:
    """The object of findings about a class."""
    return ObjectName("PriorityClass", "", found.name)


def unknown_policies(state: PostureState) -> Iterator[Remark]:
    """Policies that the API does not have."""
    for each in state.classes:
        if each.preemption_policy not in POLICIES:
            yield Remark(
                class_object(each),
                f"preemptionPolicy {each.preemption_policy} does not exist",
                "the API server refuses the class, and then every pod that names it",
                f"use {listed(POLICIES, 'or')}; {PREEMPTS} is the default",
            )


def values_too_large(state: PostureState) -> Iterator[Remark]:
    """Values that only system classes may have."""
    for each in state.own:
        if each.value > _LARGEST:
            yield Remark(
                class_object(each),
                f"value {each.value} is above {_LARGEST}",
                "the API server refuses the class: higher values are those of the system's classes",
                f"use a value up to {_LARGEST}",
            )


def several_defaults(state: PostureState) -> Iterator[Remark]:
    """More than one globalDefault."""
    defaults = [each for each in state.classes if each.global_default]
    for each in defaults if len(defaults) > 1 else ():
        others = listed([other.name for other in defaults if other is not each])
        yield Remark(
            class_object(each),
            f"globalDefault is also set in {others}",
            "the API server refuses a second default; of several, pods without a class get the lowest",
            "keep globalDefault in one class",
        )


def never_at_the_bottom(state: PostureState) -> Iterator[Remark]:
    """A class has Never, and none is below it, but others are above."""
    values = {each.value for each in state.own}
    for each in state.own if len(values) > 1 else ():
        if each.value > min(values) or each.preemption_policy != NEVER:
            continue
        yield Remark(
            class_object(each),
            f"the lowest class has preemptionPolicy {NEVER}",
            f"{NEVER} protects nothing: these pods have no class below to preempt, and are everybody's first victims",
            "to protect the pods, give them a higher value; to say that this is intended, accept the finding",
        )


def meant_not_to_preempt(state: PostureState) -> Iterator[Remark]:
    """Classes whose name or description says that they do not preempt, with a policy that does."""
    for each in own_classes(state.classes):
        said = _MEANT_NOT_TO.search(each.name) or _MEANT_NOT_TO.search(each.description)
        if said and each.preemption_policy == PREEMPTS:
            where = "name" if _MEANT_NOT_TO.search(each.name) else "description"
            yield Remark(
                class_object(each),
                f"its {where} says {said[0]!r}, but preemptionPolicy is {PREEMPTS}",
                f"without the field, a class has {PREEMPTS}: its pods preempt every lower class",
                f"set preemptionPolicy: {NEVER}; the field cannot be changed, so delete the class and create it again",
            )
