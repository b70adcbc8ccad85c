"""Controllers that create pods: Jobs, ReplicaSets, StatefulSets and DaemonSets.

Shapes: k8s.io/api batch/v1, apps/v1.
"""

from msgspec import field

from gputally.model.kube.meta import Camel, Condition, Meta, Object
from gputally.model.kube.pods import PodTemplate


class ExitCodes(Camel, frozen=True):
    """The exit codes that a rule matches, or does not match: `operator` is In or NotIn."""

    operator: str = ""
    values: tuple[int, ...] = ()


class PodConditionPattern(Camel, frozen=True):
    """A condition of a pod that a rule matches."""

    type: str = ""
    status: str = "True"


class PodFailureRule(Camel, frozen=True):
    """What to do with a failed pod: `action` is Count, Ignore, FailJob or FailIndex."""

    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] | None = None


class PodFailurePolicy(Camel, frozen=True):
    """The first rule that matches a failed pod decides."""

    rules: tuple[PodFailureRule, ...] = ()


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
