"""Pods with all fields that decide where they may run. Decoding them costs more than a `Pod`.

Shapes: k8s.io/api core/v1.
"""

from msgspec import field

from gputally.model.kube.meta import Camel
from gputally.model.kube.pods import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    Resources,
    Toleration,
)


class Present(Camel, frozen=True):
    """An object of which only the presence matters."""


class ContainerPort(Camel, frozen=True):
    """A port; `host_port` is one of the node's, which only one pod can have."""

    host_port: int | None = None


class PlaceableContainer(Container, frozen=True):
    """A container with its name, by which its status is found, and its ports."""

    name: str = ""
    ports: tuple[ContainerPort, ...] | None = None


class SchedulingGate(Camel, frozen=True):
    """The scheduler ignores a pod until its gates are removed."""

    name: str = ""


class Volume(Camel, frozen=True):
    """A volume; those with a claim restrict the nodes."""

    persistent_volume_claim: Present | None = None
    ephemeral: Present | None = None


class TopologySpread(Camel, frozen=True):
    """A topology spread constraint; it restricts the nodes unless `when_unsatisfiable` is ScheduleAnyway."""

    when_unsatisfiable: str = "DoNotSchedule"


class PodAffinity(Camel, frozen=True):
    """The required affinity, or anti-affinity, to other pods."""

    required: tuple[Present, ...] | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class PlaceableAffinity(Affinity, frozen=True):
    """The affinity to nodes and to other pods."""

    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PlaceableSpec(PodSpec, frozen=True):
    """A PodSpec with what else the scheduler and quotas read. `resources` are those of the pod as a whole."""

    containers: tuple[PlaceableContainer, ...] = ()
    init_containers: tuple[PlaceableContainer, ...] | None = None
    affinity: PlaceableAffinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    overhead: dict[str, str | int] | None = None
    resources: Resources | None = None
    volumes: tuple[Volume, ...] | None = None
    topology_spread_constraints: tuple[TopologySpread, ...] | None = None
    active_deadline_seconds: int | None = None


class ActualResources(Camel, frozen=True):
    """The requests that a kubelet has put in force."""

    requests: dict[str, str | int] | None = None


class PlaceableContainerStatus(ContainerStatus, frozen=True):
    """The runs of a container, the requests that its kubelet has allocated to it, and those in force.

    They differ from the spec while the container is resized in place.
    """

    name: str = ""
    allocated_resources: dict[str, str | int] | None = None
    resources: ActualResources | None = None


class PlaceableStatus(PodStatus, frozen=True):
    """A PodStatus with the requests that the kubelet has allocated and put in force (Kubernetes 1.33 and later).

    Those of the pod as a whole are written by kubelets of 1.36 and later.
    """

    container_statuses: tuple[PlaceableContainerStatus, ...] | None = None
    init_container_statuses: tuple[PlaceableContainerStatus, ...] | None = None
    allocated_resources: dict[str, str | int] | None = None
    resources: ActualResources | None = None


class PlaceablePod(Pod, frozen=True):
    """core/v1 Pod with all fields that decide where it may run."""

    spec: PlaceableSpec = field(default_factory=PlaceableSpec)
    status: PlaceableStatus = field(default_factory=PlaceableStatus)
