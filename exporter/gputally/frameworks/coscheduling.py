"""The coscheduling plugin of scheduler-plugins: pods name their PodGroup in a label.

Shapes: scheduler-plugins scheduling/v1alpha1. Sources: scheduler-plugins apis/scheduling (PodGroupLabel) and
pkg/coscheduling.
"""

from typing import Final

from msgspec import field

from gputally.frameworks.framework import Framework, StatedGang
from gputally.frameworks.pod_group_kind import Declared, PodGroupKind, declared_of
from gputally.frameworks.stated import first_of, pods_in
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Camel, Labels, Object
from gputally.model.kube.pods import Texts

NAMES: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
)
"""Labels that name the group of a pod, the usual one first."""
_SIZE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""A label that states a minimum."""


class CoschedulingSpec(Camel, frozen=True):
    """How many pods must run at once."""

    min_member: int | None = None


class CoschedulingPodGroup(Object, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup of scheduler-plugins."""

    spec: CoschedulingSpec = field(default_factory=CoschedulingSpec)


def _declared(found: CoschedulingPodGroup, at_us: int) -> Declared | None:
    return declared_of(found, found.spec.min_member, at_us)


def _stated_gang(labels: Labels, _: Texts | None) -> StatedGang | None:
    name = first_of(labels, NAMES)
    return (name, pods_in(labels, _SIZE)) if name else None


COSCHEDULING: Final = Framework(
    states_gang=_stated_gang,
    pod_groups=PodGroupKind(
        kind=Kind.COSCHEDULING_GROUPS,
        scheduler="coscheduling",
        api="scheduling.x-k8s.io",
        versions=("v1alpha1",),
        type=CoschedulingPodGroup,
        declared=_declared,
        labels=NAMES,
        size_label=_SIZE,
        reported=(r"minMember of group: (\d{1,6})",),
    ),
)
