"""PodGroups of Kubernetes itself (1.35 and later), which pods name in their spec.

Shapes: k8s.io/api scheduling/v1alpha2 and later; v1alpha2, v1alpha3 and v1beta1 state their policy alike.
"""

from typing import Final

from msgspec import field

from gputally.frameworks.framework import Framework
from gputally.frameworks.pod_group_kind import Declared, PodGroupKind, declared_of
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Camel, Object

API: Final = "scheduling.k8s.io"


class GangPolicy(Camel, frozen=True):
    """A gang, of which so many pods are scheduled at once."""

    min_count: int | None = None


class GroupPolicy(Camel, frozen=True):
    """The policy of a group: a gang, or `basic`, which is none of ours."""

    gang: GangPolicy | None = None


class GangSpec(Camel, frozen=True):
    """The spec of a PodGroup of scheduling.k8s.io."""

    scheduling_policy: GroupPolicy = field(default_factory=GroupPolicy)


class CorePodGroup(Object, frozen=True):
    """scheduling.k8s.io PodGroup."""

    spec: GangSpec = field(default_factory=GangSpec)


def _declared(found: CorePodGroup, at_us: int) -> Declared | None:
    gang = found.spec.scheduling_policy.gang
    return declared_of(found, gang.min_count if gang else 0, at_us)


CORE: Final = Framework(
    pod_groups=PodGroupKind(
        kind=Kind.CORE_GROUPS,
        scheduler=API,
        api=API,
        versions=("v1beta1", "v1alpha3", "v1alpha2"),
        type=CorePodGroup,
        declared=_declared,
    )
)
