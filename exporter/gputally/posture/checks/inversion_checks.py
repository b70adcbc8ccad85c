"""The check for priority inversion: classes that serve users, below classes that train."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from gputally.posture.checks.class_checks import class_object
from gputally.posture.class_catalogue import CatalogueClass
from gputally.posture.finding import Remark
from gputally.posture.posture_state import PostureState
from gputally.posture.wording import listed

TYPE_LABEL: Final = "workload-type"
"""The label of pods that says what they do; it may have a prefix."""
_SERVING_TYPES: Final = frozenset({"inference", "serving"})
_TRAINING_TYPES: Final = frozenset({"training", "train"})
_TRAINING_NAME: Final = re.compile(
    r"(.*[-_.])?(training|train|retrain|retraining|pretrain|pretraining|finetune|finetuning)([-_.].*)?"
)
"""As for serving tiers: one of these words is a separate part of the name."""


def serving_below_training(state: PostureState) -> Iterator[Remark]:
    """Serving classes with a lower value than a training class."""
    serving = _classes_of(state, _SERVING_TYPES) | {each.name for each in state.own if each.is_serving}
    training = _classes_of(state, _TRAINING_TYPES) | {each.name for each in state.own if _trains(each)}
    for each in state.own:
        above = [other.name for other in state.own if other.name in training - serving and other.value > each.value]
        if each.name in serving - training and above:
            yield Remark(
                class_object(each),
                f"serves users with value {each.value}, below {listed(above)}",
                "while training fills the GPUs, inference waits or is preempted: the cluster looks healthy, and users "
                "get no answers",
                "give the serving class the higher value, or accept the finding if training shall come first",
            )


def _trains(found: CatalogueClass) -> bool:
    return any(_TRAINING_NAME.fullmatch(name) for name in (found.name, found.tier))


def _classes_of(state: PostureState, types: Collection[str]) -> frozenset[str]:
    """The classes of the workloads whose label says that they are of one of these types."""
    return state.classes_used_by(
        each
        for each in state.workloads
        if any(key.rpartition("/")[2] == TYPE_LABEL and value in types for key, value in each.labels.items())
    )
