"""Checks of PriorityClasses: whether the API server accepts them, and what their values and policies do."""

from collections.abc import Iterator
from typing import Final

from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.posture.class_claims import denied_victimhood
from gputally.posture.classes import POLICIES, CatalogueClass
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.state import PostureState
from gputally.posture.wording import listed

_LARGEST: Final = 1_000_000_000
"""The highest value of classes that are not the system's. Source: k8s.io/kubernetes pkg/apis/scheduling/types.go."""


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
        is_lowest = each.value == min(values) and each.preemption_policy == NEVER
        if not is_lowest or denied_victimhood(each, state.own):  # that one is a warning of its own
            continue
        yield Remark(
            class_object(each),
            f"the lowest class has preemptionPolicy {NEVER}",
            f"{NEVER} protects nothing: these pods have no class below to preempt, and are everybody's first victims",
            "to protect the pods, give them a higher value; to say that this is intended, accept the finding",
        )
