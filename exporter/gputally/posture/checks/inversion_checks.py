"""Checks for priority inversion: classes that serve users below classes that train, and workloads in the other's."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from gputally.formatting.amounts import listed
from gputally.posture.checks.class_checks import class_object
from gputally.posture.checks.quota_checks import workload_name
from gputally.posture.class_claims import Purpose, class_purpose, named_purpose, workload_purpose
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.state import PostureState

_WHY_NOT_TRAIN: Final = (
    "it takes GPUs from lower classes as if users waited for it, serving pods of this class cannot preempt it, and its "
    "waits are alerted on as waits of inference"
)
_WHY_NOT_SERVE: Final = (
    "whatever may preempt training of this class may preempt it, it cannot preempt training of this class, and no "
    "alert on waits of inference covers it"
)


def serving_below_training(state: PostureState) -> Iterator[Remark]:
    """Serving classes with a lower value than a training class."""
    purposes = _purposes(state)
    training = [each for each in state.own if purposes[each.name] is Purpose.TRAINING]
    for each in state.own:
        above = [other.name for other in training if other.value > each.value]
        if purposes[each.name] is Purpose.SERVING and above:
            yield Remark(
                class_object(each),
                f"serves users with value {each.value}, below {listed(above)}",
                "while training fills the GPUs, inference waits or is preempted: the cluster looks healthy, and users "
                "get no answers",
                "give the serving class the higher value, or accept the finding if training shall come first",
            )


def training_in_serving_class(state: PostureState) -> Iterator[Remark]:
    """Workloads that train in a class whose name says that it serves users."""
    for name, workload in _misplaced(state, Purpose.TRAINING, Purpose.SERVING):
        what = f"trains in class {name}, which serves users"
        yield Remark(workload, what, _WHY_NOT_TRAIN, f"use {_classes_for(state, Purpose.TRAINING)}")


def serving_in_training_class(state: PostureState) -> Iterator[Remark]:
    """Workloads that serve users in a class whose name says that it is for training."""
    for name, workload in _misplaced(state, Purpose.SERVING, Purpose.TRAINING):
        what = f"serves users in class {name}, which is for training"
        yield Remark(workload, what, _WHY_NOT_SERVE, f"use {_classes_for(state, Purpose.SERVING)}")


def _misplaced(state: PostureState, purpose: Purpose, of_class: Purpose) -> Iterator[tuple[str, ObjectName]]:
    """Workloads with the one purpose, and their class, whose name says that it has the other."""
    named = {each.name for each in state.own if named_purpose(each) is of_class}
    for workload in state.workloads:
        if workload_purpose(workload) is purpose:
            used = {state.class_of(template): None for template in workload.templates}
            yield from ((name, workload_name(workload)) for name in used if name in named)


def _classes_for(state: PostureState, purpose: Purpose) -> str:
    names = [each.name for each in state.own if named_purpose(each) is purpose]
    return listed(names, "or") if names else f"a class for {purpose}"


def _purposes(state: PostureState) -> dict[str, Purpose | None]:
    """The purposes of the classes, by their names and by the workloads that use them."""
    used = defaultdict[str, set[Purpose]](set)
    for workload in state.workloads:
        if purpose := workload_purpose(workload):
            for template in workload.templates:
                used[state.class_of(template)].add(purpose)
    return {each.name: class_purpose(each, used[each.name]) for each in state.own}
