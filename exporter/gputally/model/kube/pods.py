"""Pods and templates of pods: containers, requests, annotations, node affinity, tolerations and status.

Of the annotations, only those with a field are decoded: anyone who may create pods may write 256 KiB of others, which
take megabytes as Python strings. Shapes: k8s.io/api core/v1.
"""

from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import fields

from gputally.model.kube.meta import Camel, Condition, Labels, Meta, Object

ENDED_PHASES: Final = ("Succeeded", "Failed")
"""Phases of pods whose containers run no more."""
PREEMPTS: Final = "PreemptLowerPriority"
"""The preemptionPolicy of pods and classes that name none."""
NEVER: Final = "Never"
"""The other preemptionPolicy."""


class LabelRequirement(Camel, frozen=True):
    """A requirement on a label of a node: `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Camel, frozen=True):
    """All requirements hold on a node that matches; a term without any matches none.

    `match_fields` are requirements on `metadata.name`, the only field that the API accepts.
    """

    match_expressions: tuple[LabelRequirement, ...] | None = None
    match_fields: tuple[LabelRequirement, ...] | None = None


class NodeSelector(Camel, frozen=True):
    """A node matches if one of the terms matches."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Camel, frozen=True):
    """Only the required part: preferences decide nothing."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Camel, frozen=True):
    """The affinity of a pod to nodes."""

    node_affinity: NodeAffinity | None = None


class Running(Camel, frozen=True):
    """A running container."""

    started_at: datetime | None = None


class Terminated(Camel, frozen=True):
    """A container that has terminated, or failed to start. `message` is what it wrote as its termination message."""

    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None


class ContainerState(Camel, frozen=True):
    """At most one of the two is set; neither while the container waits."""

    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Camel, frozen=True):
    """The current and the previous run of a container."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class Texts(Protocol):
    """Labels or annotations."""

    def get(self, key: str, /) -> str | None:
        """The value, None without one."""
        ...


class PodAnnotations(Struct, frozen=True, gc=False):
    """One field for each annotation, with its key; whoever reads another one adds it here."""

    last_checkpoint: str | None = field(default=None, name="gputally.io/last-checkpoint")
    checkpoint_interval: str | None = field(default=None, name="gputally.io/checkpoint-interval")
    saves_on_sigterm: str | None = field(default=None, name="gputally.io/saves-on-sigterm")
    progress: str | None = field(default=None, name="gputally.io/progress")
    progress_unit: str | None = field(default=None, name="gputally.io/progress-unit")
    save_duration: str | None = field(default=None, name="gputally.io/save-duration")
    posture_accept: str | None = field(default=None, name="gputally.io/posture-accept")
    kube_group: str | None = field(default=None, name="scheduling.k8s.io/group-name")
    volcano_group: str | None = field(default=None, name="scheduling.volcano.sh/group-name")
    volcano_group_size: str | None = field(default=None, name="scheduling.volcano.sh/group-min-member")
    volcano_task: str | None = field(default=None, name="volcano.sh/task-spec")
    volcano_job_version: str | None = field(default=None, name="volcano.sh/job-version")
    leader_worker_set_size: str | None = field(default=None, name="leaderworkerset.sigs.k8s.io/size")
    kueue_workload: str | None = field(default=None, name="kueue.x-k8s.io/workload")
    kueue_group_size: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-total-count")
    kueue_group_serves: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-serving")
    kai_group: str | None = field(default=None, name="pod-group-name")
    hami_allocated: str | None = field(default=None, name="hami.io/vgpu-devices-allocated")
    gpu_fraction: str | None = field(default=None, name="gpu-fraction")
    gpu_memory: str | None = field(default=None, name="gpu-memory")
    gpu_fraction_devices: str | None = field(default=None, name="gpu-fraction-num-devices")

    def get(self, key: str, /) -> str | None:
        """The annotation with that key, None without one. Raises: KeyError for a key without a field."""
        value: str | None = getattr(self, _FIELDS[key])
        return value


_FIELDS: Final = {each.encode_name: each.name for each in fields(PodAnnotations)}
NO_ANNOTATIONS: Final = PodAnnotations()


class Toleration(Camel, frozen=True):
    """Tolerates a taint; an empty key with the operator Exists tolerates all, an empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodMeta(Meta, frozen=True):
    """ObjectMeta with the annotations of pods that are read."""

    annotations: PodAnnotations | None = None


class Resources(Camel, frozen=True):
    """Quantities as the API writes them: `"8"`, rarely with a suffix."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class Container(Camel, frozen=True):
    """`restart_policy` Always makes an init container a sidecar; on others, it overrides the pod's policy."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None
    image: str = ""


class PodClaim(Camel, frozen=True):
    """A reference to a ResourceClaim, or to a template of one."""

    name: str = ""


class SchedulingGroup(Camel, frozen=True):
    """The PodGroup of scheduling.k8s.io that a pod belongs to (Kubernetes 1.35 and later)."""

    pod_group_name: str = ""


class PodSpec(Camel, frozen=True):
    """The node, its selectors, priority, requests, claims, restart policy and group of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    restart_policy: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    resource_claims: tuple[PodClaim, ...] | None = None
    scheduling_group: SchedulingGroup | None = None


class RequestMapping(Camel, frozen=True):
    """An extended resource that a container gets by a ResourceClaim."""

    resource_name: str = ""


class ExtendedClaimStatus(Camel, frozen=True):
    """The extended resources that a ResourceClaim serves, as the scheduler writes before it binds the pod."""

    request_mappings: tuple[RequestMapping, ...] | None = None


class PodStatus(Camel, frozen=True):
    """The status from scheduler and kubelet. `start_time` is when the kubelet acknowledged the pod, None before.

    `nominated_node_name` is where the scheduler makes room for it, and since 1.35 also where it is expected to run.
    """

    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    pod_ip: str = field(default="", name="podIP")
    reason: str | None = None
    message: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(Object, frozen=True):
    """core/v1 Pod."""

    metadata: PodMeta
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class TemplateSpec(PodSpec, frozen=True):
    """A PodSpec with what else decides which nodes its pods could run on."""

    tolerations: tuple[Toleration, ...] | None = None


class PodTemplate(Camel, frozen=True):
    """The pods that a controller creates."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: TemplateSpec = field(default_factory=TemplateSpec)
