"""Controllers of apps/v1 that create pods, with what they lack.

Shapes: k8s.io/api apps/v1.
"""

from msgspec import field

from gputally.model.kube import Meta, PodTemplate
from gputally.model.objects.camel import Camel


class WorkloadSpec(Camel, frozen=True):
    """What a controller of apps/v1 keeps running; a DaemonSet has no replicas."""

    template: PodTemplate = field(default_factory=PodTemplate)
    replicas: int | None = None


class WorkloadStatus(Camel, frozen=True):
    """The existing pods of a controller: `replicas`, or of a DaemonSet on how many nodes they are and should be."""

    replicas: int | None = None
    current_number_scheduled: int | None = None
    desired_number_scheduled: int | None = None


class Workload(Camel, frozen=True):
    """apps/v1 ReplicaSet, StatefulSet or DaemonSet."""

    metadata: Meta
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
