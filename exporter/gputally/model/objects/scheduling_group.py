"""The group of pods that a pod names."""

from gputally.model.objects.camel import Camel


class SchedulingGroup(Camel, frozen=True):
    """The PodGroup of scheduling.k8s.io that a pod belongs to (Kubernetes 1.35 and later)."""

    pod_group_name: str = ""
