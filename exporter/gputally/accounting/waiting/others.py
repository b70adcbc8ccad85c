"""Pods without GPUs, in brief: only what they take from nodes with GPUs matters."""

from collections.abc import Callable

from gputally.accounting.waiting.taken_from import taken_alike
from gputally.model.kube.meta import Object
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.observation import OtherPod
from gputally.model.rules import Rules

Matters = Callable[[str], bool]
"""Whether the pods on a node of that name matter."""


def other_pod(found: Object, at_us: int, since_us: int, *, rules: Rules, matters: Matters) -> OtherPod | None:
    """What matters of a pod without GPUs, None if nothing does."""
    if not isinstance(found, PlaceablePod) or not (node := found.spec.node_name) or not matters(node):
        return None
    return OtherPod(
        uid=found.metadata.uid,
        node=node,
        taken=None if found.status.phase in ENDED_PHASES else taken_alike(found, rules),
        version=found.metadata.resource_version,
        at_us=at_us,
        since_us=since_us,
    )
