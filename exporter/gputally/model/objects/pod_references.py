"""What a pod refers to by name."""

from gputally.model.objects.camel import Camel


class PodClaim(Camel, frozen=True):
    """A reference to a ResourceClaim, or to a template of one."""

    name: str = ""


class SchedulingGroup(Camel, frozen=True):
    """The PodGroup of scheduling.k8s.io that a pod belongs to (Kubernetes 1.35 and later)."""

    pod_group_name: str = ""
