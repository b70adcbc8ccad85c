"""What a posture is computed from: the objects of a cluster or of files, with only the fields that are used.

Shapes: k8s.io/api core/v1, apps/v1, batch/v1, policy/v1, scheduling/v1; kubeflow.org/v1 for PyTorchJob.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct, field

from gputally.frameworks import kubeflow
from gputally.model.kube.meta import AnnotatedMeta, Camel, Condition, Namespace
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Container, Pod, PodMeta, PodSpec, PodStatus
from gputally.model.kube.policy import DisruptionBudgetSpec, QuotaSpec, QuotaStatus
from gputally.model.kube.workloads import PodFailurePolicy
from gputally.placement.unknown_workload import UnknownWorkload


class CommandedContainer(Container, frozen=True):
    """With its command, which may contain a handler of SIGTERM."""

    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None


class PostureSpec(PodSpec, frozen=True):
    """A pod's spec with what decides how a preemption ends it."""

    containers: tuple[CommandedContainer, ...] = ()
    termination_grace_period_seconds: int | None = None


class PosturePod(Pod, frozen=True):
    """A pod, or the template of one: then it has no status, and perhaps no metadata."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: PostureSpec = field(default_factory=PostureSpec)
    status: PodStatus = field(default_factory=PodStatus)


class ClassObject(Camel, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass; without a policy, the API server writes PreemptLowerPriority."""

    metadata: AnnotatedMeta
    value: int = 0
    global_default: bool | None = None
    description: str | None = None
    preemption_policy: str | None = None


class QuotaObject(Camel, frozen=True):
    """core/v1 ResourceQuota."""

    metadata: AnnotatedMeta
    spec: QuotaSpec = field(default_factory=QuotaSpec)
    status: QuotaStatus = field(default_factory=QuotaStatus)


class DisruptionBudget(Camel, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: AnnotatedMeta
    spec: DisruptionBudgetSpec = field(default_factory=DisruptionBudgetSpec)


class JobTerms(Camel, frozen=True):
    """The spec of a Job."""

    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    template: PosturePod = field(default_factory=PosturePod)


class EndedStatus(Camel, frozen=True):
    """`Complete` or `Failed` is True once the Job has ended."""

    conditions: tuple[Condition, ...] | None = None


class JobObject(Camel, frozen=True):
    """batch/v1 Job."""

    metadata: AnnotatedMeta
    spec: JobTerms = field(default_factory=JobTerms)
    status: EndedStatus = field(default_factory=EndedStatus)


class RunTemplate(Camel, frozen=True):
    """The Jobs that a CronJob creates."""

    spec: JobTerms = field(default_factory=JobTerms)


class CronSpec(Camel, frozen=True):
    """Only the template."""

    job_template: RunTemplate = field(default_factory=RunTemplate)


class CronJobObject(Camel, frozen=True):
    """batch/v1 CronJob."""

    metadata: AnnotatedMeta
    spec: CronSpec = field(default_factory=CronSpec)


class ReplicaTerms(Camel, frozen=True):
    """Copies of one template; without a number, one."""

    replicas: int | None = None
    template: PosturePod = field(default_factory=PosturePod)


class ReplicatedObject(Camel, frozen=True):
    """apps/v1 Deployment or StatefulSet."""

    metadata: AnnotatedMeta
    spec: ReplicaTerms = field(default_factory=ReplicaTerms)


class TrainingSpec(Camel, frozen=True):
    """Templates by role, such as Master and Worker."""

    replicas: dict[str, ReplicaTerms] = field(default_factory=dict, name=kubeflow.PYTORCH_ROLES)


class TrainingJobObject(Camel, frozen=True):
    """kubeflow.org/v1 PyTorchJob."""

    metadata: AnnotatedMeta
    spec: TrainingSpec = field(default_factory=TrainingSpec)


AnyObject = (
    ClassObject
    | QuotaObject
    | DisruptionBudget
    | Node
    | Namespace
    | PosturePod
    | JobObject
    | CronJobObject
    | ReplicatedObject
    | TrainingJobObject
)


class PostureResource(StrEnum):
    """The resources that are read, by the plural name the API uses."""

    CLASSES = "priorityclasses"
    QUOTAS = "resourcequotas"
    BUDGETS = "poddisruptionbudgets"
    NODES = "nodes"
    NAMESPACES = "namespaces"
    PODS = "pods"
    JOBS = "jobs"
    CRON_JOBS = "cronjobs"
    DEPLOYMENTS = "deployments"
    STATEFUL_SETS = "statefulsets"
    TRAINING_JOBS = "pytorchjobs"


class PostureKind(NamedTuple):
    """Where a resource is served, and its kind in files.

    If it is an `extension`, a cluster may lack it: then there are no such objects. If it is `unknown_if_absent`, files
    without such objects say nothing about those of the cluster.
    """

    resource: PostureResource
    group: str
    kind: str
    type: type[AnyObject]
    extension: bool = False
    unknown_if_absent: bool = False

    @property
    def path(self) -> str:
        """The path of the list of all namespaces."""
        return f"/apis/{self.group}/v1/{self.resource}" if self.group else f"/api/v1/{self.resource}"


KINDS: Final = (
    PostureKind(PostureResource.CLASSES, "scheduling.k8s.io", "PriorityClass", ClassObject, unknown_if_absent=True),
    PostureKind(PostureResource.QUOTAS, "", "ResourceQuota", QuotaObject),
    PostureKind(PostureResource.BUDGETS, "policy", "PodDisruptionBudget", DisruptionBudget),
    PostureKind(PostureResource.NODES, "", "Node", Node, unknown_if_absent=True),
    PostureKind(PostureResource.NAMESPACES, "", "Namespace", Namespace),
    PostureKind(PostureResource.PODS, "", "Pod", PosturePod),
    PostureKind(PostureResource.JOBS, "batch", "Job", JobObject),
    PostureKind(PostureResource.CRON_JOBS, "batch", "CronJob", CronJobObject),
    PostureKind(PostureResource.DEPLOYMENTS, "apps", "Deployment", ReplicatedObject),
    PostureKind(PostureResource.STATEFUL_SETS, "apps", "StatefulSet", ReplicatedObject),
    PostureKind(PostureResource.TRAINING_JOBS, kubeflow.GROUP, kubeflow.PYTORCH_JOB, TrainingJobObject, extension=True),
)


class NotRead(Struct, frozen=True, kw_only=True):
    """A resource that could not be read, or objects of it that could not be decoded, and why."""

    resource: PostureResource
    why: str


class PostureInput(Struct, frozen=True, kw_only=True):
    """The objects by resource; None for what is unknown, which is not the same as none.

    `from_files` says that admission has not seen the objects. `ignored` counts objects of other kinds, except for the
    `unknown` ones, which have templates of pods.
    """

    source: str
    from_files: bool = False
    priorityclasses: tuple[ClassObject, ...] | None = None
    resourcequotas: tuple[QuotaObject, ...] | None = None
    poddisruptionbudgets: tuple[DisruptionBudget, ...] | None = None
    nodes: tuple[Node, ...] | None = None
    namespaces: tuple[Namespace, ...] | None = None
    pods: tuple[PosturePod, ...] | None = None
    jobs: tuple[JobObject, ...] | None = None
    cronjobs: tuple[CronJobObject, ...] | None = None
    deployments: tuple[ReplicatedObject, ...] | None = None
    statefulsets: tuple[ReplicatedObject, ...] | None = None
    pytorchjobs: tuple[TrainingJobObject, ...] | None = None
    not_read: tuple[NotRead, ...] = ()
    ignored: dict[str, int] = {}
    unknown: tuple[UnknownWorkload, ...] = ()

    def knows(self, resource: PostureResource) -> bool:
        """Whether the objects of the resource are known."""
        return getattr(self, resource) is not None
