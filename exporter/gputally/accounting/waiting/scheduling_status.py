"""Reads what the object of a pending pod says about its wait."""

from functools import lru_cache
from typing import Final

from msgspec import Struct

from gputally.errors import MalformedObject
from gputally.frameworks.kueue import queue_at_gate
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.needs import Needs
from gputally.model.rules import Rules
from gputally.placement.needs import needs_of, same

_MOST_TEXT: Final = 2048
"""How much of a scheduler's message is kept; it grows with the number of different reasons, not of nodes."""


class SchedulingStatus(Struct, frozen=True, kw_only=True, gc=False):
    """What a pending pod needs, and what is said about it.

    `is_reported` says that its scheduler has reported on it. `queue` is the queue system that has not admitted it.
    """

    needs: Needs
    is_reported: bool = False
    nominated_node: str = ""
    text: str = ""
    queue: str = ""


def status_of(pod: PlaceablePod, rules: Rules) -> SchedulingStatus | None:
    """The status of a pending pod; None if its requests cannot be read."""
    try:
        needs = same(needs_of(pod, rules))
    except MalformedObject:
        return None
    is_reported, text = _report(pod)
    return SchedulingStatus(
        needs=needs,
        is_reported=is_reported,
        nominated_node=pod.status.nominated_node_name,
        text=_same_text(text),
        queue=queue_at_gate([each.name for each in pod.spec.scheduling_gates or ()], pod.metadata.labels or {}),
    )


def _report(pod: PlaceablePod) -> tuple[bool, str]:
    """Whether a scheduler has reported on the pod, and why it could not bind it."""
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False" and each.reason != "SchedulingGated":
            return True, (each.message or "")[:_MOST_TEXT]
    return False, ""


@lru_cache(maxsize=1024)
def _same_text(text: str) -> str:
    """Equal messages are one object; those of pods that are gone take megabytes at most."""
    return text
