"""Kubernetes objects of a posture: only the fields that a check or a table uses.

Shapes: k8s.io/api core/v1, apps/v1, batch/v1, policy/v1, scheduling/v1; kubeflow.org/v1 for PyTorchJob.
"""

from msgspec import field

from gputally.model.kube.meta import AnnotatedMeta, Camel, Condition, Namespace
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Container, Pod, PodMeta, PodSpec, PodStatus
from gputally.model.kube.policy import DisruptionBudgetSpec, QuotaSpec, QuotaStatus
from gputally.model.kube.workloads import PodFailurePolicy


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

    replicas: dict[str, ReplicaTerms] = field(default_factory=dict, name="pytorchReplicaSpecs")


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
