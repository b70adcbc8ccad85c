"""Pods with all fields that decide where they may run. Decoding them costs more than a `Pod`.

Shapes: k8s.io/api core/v1.
"""

from msgspec import field

from gputally.model.kube import Container, Pod, PodSpec, Resources
from gputally.model.objects.affinity import Affinity
from gputally.model.objects.camel import Camel
from gputally.model.objects.toleration import Toleration


class Present(Camel, frozen=True):
    """An object of which only the presence matters."""


class ContainerPort(Camel, frozen=True):
    """A port; `host_port` is one of the node's, which only one pod can have."""

    host_port: int | None = None


class PlaceableContainer(Container, frozen=True):
    """A container with its ports."""

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
    affinity: PlaceableAffinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    overhead: dict[str, str | int] | None = None
    resources: Resources | None = None
    volumes: tuple[Volume, ...] | None = None
    topology_spread_constraints: tuple[TopologySpread, ...] | None = None
    active_deadline_seconds: int | None = None


class PlaceablePod(Pod, frozen=True):
    """core/v1 Pod with all fields that decide where it may run."""

    spec: PlaceableSpec = field(default_factory=PlaceableSpec)
