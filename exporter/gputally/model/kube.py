"""Kubernetes objects as decoded from JSON: only the fields we use; msgspec skips all others.

Shapes: k8s.io/api core/v1, batch/v1, policy/v1, scheduling/v1, events in their core/v1 view, meta/v1.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import field

from gputally.model.objects.affinity import Affinity
from gputally.model.objects.camel import Camel
from gputally.model.objects.container_status import ContainerStatus
from gputally.model.objects.disruption_budget import DisruptionBudgetSpec, DisruptionBudgetStatus
from gputally.model.objects.event_fields import EventSeries, EventSource, ObjectReference
from gputally.model.objects.node_spec import NodeInfo, NodeSpec
from gputally.model.objects.pod_annotations import PodAnnotations
from gputally.model.objects.pod_failure_policy import PodFailurePolicy
from gputally.model.objects.quota_spec import QuotaSpec, QuotaStatus
from gputally.model.objects.toleration import Toleration

Labels = dict[str, str]


class Kind(StrEnum):
    """The resources we watch, by the plural name the API uses; Events also by reason, others also by group."""

    PODS = "pods"
    NODES = "nodes"
    NAMESPACES = "namespaces"
    PRIORITY_CLASSES = "priorityclasses"
    EVENTS = "events"
    JOBS = "jobs"
    DISRUPTION_BUDGETS = "poddisruptionbudgets"
    QUOTAS = "resourcequotas"
    FAILED_CREATES = "events/FailedCreate"
    VOLCANO_GROUPS = "podgroups.scheduling.volcano.sh"
    COSCHEDULING_GROUPS = "podgroups.scheduling.x-k8s.io"
    CORE_GROUPS = "podgroups.scheduling.k8s.io"
    KARPENTER_EVENTS = "events/SpotInterrupted"
    NODE_TERMINATION_EVENTS = "events/SpotInterruption"
    KUEUE_WORKLOADS = "workloads.kueue.x-k8s.io"


class OwnerReference(Camel, frozen=True):
    """`controller` marks the one owner that manages the object."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Meta(Camel, frozen=True):
    """ObjectMeta without annotations, which can be large: `AnnotatedMeta` has them, `PodMeta` a few."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Labels | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class AnnotatedMeta(Meta, frozen=True):
    """ObjectMeta with annotations."""

    annotations: Labels | None = None


class PodMeta(Meta, frozen=True):
    """ObjectMeta with the annotations of pods that are read."""

    annotations: PodAnnotations | None = None


class Object(Camel, frozen=True):
    """Any watched object."""

    metadata: Meta


class GeneratedMeta(Meta, frozen=True):
    """ObjectMeta with the generation, which each change of the spec raises."""

    generation: int = 0


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


class Condition(Camel, frozen=True):
    """A condition of a pod or node; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


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


class NodeStatus(Camel, frozen=True):
    """Quantities of all resources that the kubelet reported, and its machine."""

    capacity: dict[str, str | int] | None = None
    allocatable: dict[str, str | int] | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeInfo | None = None


class Node(Object, frozen=True):
    """core/v1 Node."""

    metadata: AnnotatedMeta
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class Namespace(Object, frozen=True):
    """core/v1 Namespace."""

    metadata: AnnotatedMeta


class TemplateSpec(PodSpec, frozen=True):
    """A PodSpec with what else decides which nodes its pods could run on."""

    tolerations: tuple[Toleration, ...] | None = None


class PodTemplate(Camel, frozen=True):
    """The pods that a controller creates."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: TemplateSpec = field(default_factory=TemplateSpec)


class JobSpec(Camel, frozen=True):
    """The template, how many pods run at once, and what decides about failures."""

    template: PodTemplate = field(default_factory=PodTemplate)
    suspend: bool | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    managed_by: str | None = None
    backoff_limit_per_index: int | None = None
    backoff_limit: int | None = None
    pod_replacement_policy: str | None = None
    pod_failure_policy: PodFailurePolicy | None = None


class JobStatus(Camel, frozen=True):
    """`Complete` or `Failed` is True once the job has ended; the numbers are those of its pods."""

    conditions: tuple[Condition, ...] | None = None
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None


class Job(Object, frozen=True):
    """batch/v1 Job."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


class PriorityClass(Object, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class PodDisruptionBudget(Object, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: GeneratedMeta
    spec: DisruptionBudgetSpec = field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = field(default_factory=DisruptionBudgetStatus)


class ResourceQuota(Object, frozen=True):
    """core/v1 ResourceQuota."""

    spec: QuotaSpec = field(default_factory=QuotaSpec)
    status: QuotaStatus = field(default_factory=QuotaStatus)


class Event(Object, frozen=True):
    """A core/v1 Event: `involvedObject` is the victim, or the owner of pods; `related` is the preemptor.

    Its times are `event_time` and `series`, or `first_timestamp` and `last_timestamp` if an older client sent it.
    """

    involved_object: ObjectReference = field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reason: str | None = None
    message: str | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    reporting_component: str = ""
    source: EventSource | None = None


class OwnerMeta(Camel, frozen=True):
    """PartialObjectMetadata of an owner: enough to continue the owner walk."""

    metadata: Meta
    kind: str = ""
    api_version: str = ""


class Status(Camel, frozen=True):
    """meta/v1 Status: why a request was rejected."""

    code: int = 0
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None
