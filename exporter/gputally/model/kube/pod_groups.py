"""PodGroups: how many pods of a group must run at once; other fields are ignored.

Shapes: volcano scheduling/v1beta1; scheduler-plugins scheduling/v1alpha1; k8s.io/api scheduling/v1alpha2 and later.
"""

from msgspec import field

from gputally.model.kube.meta import Camel, Object


class MinMemberSpec(Camel, frozen=True):
    """The spec of a PodGroup of scheduler-plugins, and of others."""

    min_member: int | None = None


class VolcanoGroupSpec(MinMemberSpec, frozen=True):
    """The spec of a PodGroup of Volcano, with a minimum for each task."""

    min_task_member: dict[str, int] | None = None


class GangPolicy(Camel, frozen=True):
    """A gang, of which so many pods are scheduled at once."""

    min_count: int | None = None


class GroupPolicy(Camel, frozen=True):
    """The policy of a group: a gang, or `basic`, which is none of ours."""

    gang: GangPolicy | None = None


class GangSpec(Camel, frozen=True):
    """The spec of a PodGroup of scheduling.k8s.io."""

    scheduling_policy: GroupPolicy = field(default_factory=GroupPolicy)


class VolcanoPodGroup(Object, frozen=True):
    """scheduling.volcano.sh/v1beta1 PodGroup."""

    spec: VolcanoGroupSpec = field(default_factory=VolcanoGroupSpec)


class CoschedulingPodGroup(Object, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup of scheduler-plugins."""

    spec: MinMemberSpec = field(default_factory=MinMemberSpec)


class CorePodGroup(Object, frozen=True):
    """scheduling.k8s.io PodGroup; v1alpha2, v1alpha3 and v1beta1 state their policy alike."""

    spec: GangSpec = field(default_factory=GangSpec)


PodGroupObject = VolcanoPodGroup | CoschedulingPodGroup | CorePodGroup
