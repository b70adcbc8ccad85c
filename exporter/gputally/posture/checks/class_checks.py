"""Checks of PriorityClasses: whether the API server accepts them, and whether they do what they say."""

from collections.abc import Iterator
from typing import Final

from gputally.formatting.amounts import listed
from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.posture.class_claims import Claim, claimed_victims, denied_preemption, denied_victimhood
from gputally.posture.classes import POLICIES, CatalogueClass
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.preemptions import permitted_preemptions
from gputally.posture.state import PostureState

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


def meant_not_to_preempt(state: PostureState) -> Iterator[Remark]:
    """Classes that are said to preempt nobody, with a policy that does."""
    for each in state.own:
        said = denied_preemption(each, state.own)
        if said and not said.names and each.preemption_policy == PREEMPTS:
            yield Remark(
                class_object(each),
                f"{_quoted(said)}, but preemptionPolicy is {PREEMPTS}",
                f"without the field, a class has {PREEMPTS}: its pods preempt every lower class",
                f"set preemptionPolicy: {NEVER}; the field cannot be changed, so delete the class and create it again",
            )


def meant_not_to_be_preempted(state: PostureState) -> Iterator[Remark]:
    """Classes that are said not to be preempted, although others may preempt them."""
    values = {each.name: each.value for each in state.own}
    for each, row in zip(state.own, permitted_preemptions(state.classes), strict=True):
        said = denied_victimhood(each, state.own)
        by = [name for name in row.preempted_by if said and (not said.names or name in said.names)]
        if said and by:
            yield Remark(
                class_object(each),
                f"{_quoted(said)}, but {listed(by)} may preempt it",
                f"preemptionPolicy: {NEVER} only stops a class from preempting others; only a value protects it",
                f"set a value of at least {max(values[name] for name in by)}: pods of the same priority do not preempt "
                "each other",
            )


def never_is_no_protection(state: PostureState) -> Iterator[Remark]:
    """Classes that only their value protects, but that gave up their own preemptions with Never."""
    for each, row in zip(state.own, permitted_preemptions(state.classes), strict=True):
        said = denied_victimhood(each, state.own)
        below = [other.name for other in state.own if other.value < each.value]
        if not said or row.preempted_by or not below or denied_preemption(each, state.own):
            continue
        if each.preemption_policy == NEVER:
            yield Remark(
                class_object(each),
                f"{_quoted(said)}, and preemptionPolicy is {NEVER}",
                f"its value protects it, {NEVER} does not: {NEVER} only makes its pods wait for {listed(below)}",
                f"use {PREEMPTS}, or say in the description that the class preempts nobody",
            )


def understated_preemption(state: PostureState) -> Iterator[Remark]:
    """Classes whose description names only some of those that they may preempt, or denies some of them."""
    for each, row in zip(state.own, permitted_preemptions(state.classes), strict=True):
        said, denied = claimed_victims(each, state.own), denied_preemption(each, state.own)
        more = [name for name in row.may_preempt if said and name not in said.names]
        if said and more:
            what = f"{_quoted(said)}, but it may also preempt {listed(more)}"
        elif denied and (more := [name for name in row.may_preempt if name in denied.names]):
            what = f"{_quoted(denied)} {listed(more)}, but it may preempt {'it' if len(more) == 1 else 'them'}"
        else:
            continue
        yield Remark(
            class_object(each),
            what,
            "a class preempts every class with a lower value: no policy chooses among them, and teams rely on what the "
            "description says",
            "correct the description, or change the values",
        )


def _quoted(said: Claim) -> str:
    return f"its {said.where} says {said.quote!r}"
