"""Checks of PriorityClasses: whether they do what their names and descriptions say."""

from collections.abc import Iterator

from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.posture.checks.class_checks import class_object
from gputally.posture.class_claims import Claim, claimed_victims, denied_preemption, denied_victimhood
from gputally.posture.finding import Remark
from gputally.posture.preemptions import permitted_preemptions
from gputally.posture.state import PostureState
from gputally.posture.wording import listed


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
