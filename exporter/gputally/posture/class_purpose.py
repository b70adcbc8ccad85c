"""What PriorityClasses and workloads are for: serving users, or training."""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from gputally.posture.class_catalogue import CatalogueClass
from gputally.posture.gpu_workloads import GpuWorkload

TYPE_LABEL: Final = "workload-type"
"""The label of pods that says what they do; it may have a prefix."""
_TRAINING_NAME: Final = re.compile(
    r"(.*[-_.])?(training|train|retrain|retraining|pretrain|pretraining|finetune|finetuning)([-_.].*)?"
)
"""As for serving tiers: one of these words is a separate part of the name."""


class Purpose(StrEnum):
    """What GPU pods are for, as far as it decides who may preempt whom."""

    SERVING = "serving"
    TRAINING = "training"


_BY_LABEL: Final[Mapping[str, Purpose]] = {
    "inference": Purpose.SERVING,
    "serving": Purpose.SERVING,
    "training": Purpose.TRAINING,
    "train": Purpose.TRAINING,
}


def named_purpose(found: CatalogueClass) -> Purpose | None:
    """What the name and the tier of a class say that it is for; None for neither, and for both."""
    trains = any(_TRAINING_NAME.fullmatch(name) for name in (found.name, found.tier))
    if found.is_serving == trains:
        return None
    return Purpose.SERVING if found.is_serving else Purpose.TRAINING


def workload_purpose(found: GpuWorkload) -> Purpose | None:
    """What a workload is for: its label says so, or a PyTorchJob trains."""
    if found.kind == "PyTorchJob" and not any(_is_type(*each) for each in found.labels.items()):
        return Purpose.TRAINING
    return labelled_purpose(found.labels)


def labelled_purpose(labels: Mapping[str, str]) -> Purpose | None:
    """What the label of a pod says that it is for; None if several labels contradict each other."""
    said = {_BY_LABEL[value] for key, value in labels.items() if _is_type(key, value)}
    return said.pop() if len(said) == 1 else None


def _is_type(key: str, value: str) -> bool:
    return key.rpartition("/")[2] == TYPE_LABEL and value in _BY_LABEL


def class_purpose(found: CatalogueClass, used_for: Collection[Purpose]) -> Purpose | None:
    """What a class is for: what its name says, else what the workloads that use it are for, if they agree."""
    return named_purpose(found) or (next(iter(used_for)) if len(used_for) == 1 else None)
