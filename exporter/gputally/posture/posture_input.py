"""What a posture is computed from: the objects of a cluster or of files, and what could not be read."""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.kube.meta import Namespace
from gputally.model.kube.nodes import Node
from gputally.placement.unknown_workload import UnknownWorkload
from gputally.posture.posture_objects import (
    AnyObject,
    ClassObject,
    CronJobObject,
    DisruptionBudget,
    JobObject,
    PosturePod,
    QuotaObject,
    ReplicatedObject,
    TrainingJobObject,
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
    PostureKind(PostureResource.TRAINING_JOBS, "kubeflow.org", "PyTorchJob", TrainingJobObject, extension=True),
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
