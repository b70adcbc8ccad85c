"""The watched resources: what one watch observes, where, and the table of all."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from gputally.accounting.disruptions.node_signals import NAMESPACE, SENDERS
from gputally.accounting.jobs.record import is_gpu_job
from gputally.accounting.waiting.bound_pods import Matters, other_pod
from gputally.accounting.watched.agents import is_agent
from gputally.accounting.watched.unaccounted_pods import may_be_unaccounted
from gputally.frameworks.all import POD_GROUPS
from gputally.frameworks.kueue import KueueWorkload
from gputally.frameworks.pod_group_kind import PodGroupKind
from gputally.model.health import WatchHealth
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Namespace, Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Pod
from gputally.model.kube.policy import PodDisruptionBudget, PriorityClass, ResourceQuota
from gputally.model.kube.workloads import Job
from gputally.model.observation import Observation
from gputally.model.rules import Rules
from gputally.shares.request import may_be_added

IDLE_SECONDS: Final = 150.0
"""The server sends a bookmark about every minute: allows for two missing ones."""
_EVENTS_IDLE_S: Final = 900.0
"""Servers send no bookmarks for Events, and end a watch after at most ten minutes."""


def is_watched(pod: Pod, rules: Rules) -> bool:
    """Whether the pod requests GPUs or what may be some, is an agent, has claims, or may preempt pods with GPUs."""
    is_nominated = bool(pod.status.nominated_node_name)
    return may_be_unaccounted(pod, rules) or may_be_added(pod, rules) or is_nominated or is_agent(pod, rules)


def everything(_: object) -> bool:
    """Keep every object."""
    return True


class Resource(Struct, frozen=True, kw_only=True):
    """What to watch: `path` such as /api/v1/pods, decoded as `type`.

    Where the server lacks `path`, the `older` ones are tried: other versions of the API, of which it serves some.

    `keep` filters objects. It must never raise, and depend only on immutable fields, or on fields whose loss need not
    be reported. A connection ends after `idle_seconds` without data: use more than 600 for a resource without
    bookmarks (core events on most servers).

    `brief` says of an object that `keep` rejects what matters nevertheless, given the times of its observation.

    `without` says what stays unknown while the resource is missing or forbidden, "" if it is required. `is_first`
    resources classify pods and are accounted before them. The watch of a resource that `resumes` continues from the
    earlier process's checkpoint, because a list does not report when objects ended.

    A resource that `reads_ahead` is read while others are accounted. Any other one is listed after the first ones, and
    read only as fast as it is accounted, as its objects may be large.
    """

    kind: Kind
    path: str
    type: type[Object]
    older: tuple[str, ...] = ()
    field_selector: str = ""
    keep: Callable[[Any], bool] = everything
    brief: Callable[[Any, int, int], Observation | None] | None = None
    idle_seconds: float = IDLE_SECONDS
    without: str = ""
    is_first: bool = False
    reads_ahead: bool = False
    resumes: bool = False


class Paths:
    """The paths of a resource in the versions of its API: `now` is the one in use."""

    def __init__(self, resource: Resource) -> None:
        self._all = (resource.path, *resource.older)
        self._turn = 0

    @property
    def now(self) -> str:
        """The path in use."""
        return self._all[self._turn]

    @property
    def were_all_tried(self) -> bool:
        """Whether it is the turn of the first one again."""
        return self._turn == 0

    def turn(self) -> bool:
        """Turn to the next path; returns whether there is more than one."""
        self._turn = (self._turn + 1) % len(self._all)
        return len(self._all) > 1


_RECLAIMS: Final = tuple(
    Resource(
        kind=kind,
        path=f"/api/v1/namespaces/{NAMESPACE}/events",
        type=Event,
        field_selector=f"reason={sender.reason},involvedObject.kind=Node",
        idle_seconds=_EVENTS_IDLE_S,
        without=f"a spot reclaim that only {sender.name} announces is not recognised",
    )
    for kind, sender in SENDERS.items()
)


def _pod_groups(found: PodGroupKind) -> Resource:
    path, *older = (f"/apis/{found.api}/{version}/podgroups" for version in found.versions)
    return Resource(
        kind=found.kind,
        path=path,
        older=tuple(older),
        type=found.type,
        without=f"gangs of {found.scheduler} have the pods that their labels and annotations state, or that exist",
    )


ON_REQUEST: Final = (
    Resource(
        kind=Kind.DISRUPTION_BUDGETS,
        path="/apis/policy/v1/poddisruptionbudgets",
        type=PodDisruptionBudget,
        without="it is not known which disruptions violate a PodDisruptionBudget, nor which ones would",
    ),
    Resource(
        kind=Kind.QUOTAS,
        path="/api/v1/resourcequotas",
        type=ResourceQuota,
        without="the quotas of tenants are not exported, and forecasts do not consider them",
    ),
    Resource(
        kind=Kind.FAILED_CREATES,
        path="/api/v1/events",
        type=Event,
        field_selector="reason=FailedCreate",
        idle_seconds=_EVENTS_IDLE_S,
        without="it is not known which pods a quota or an admission check refuses",
    ),
    Resource(
        kind=Kind.KUEUE_WORKLOADS,
        path="/apis/kueue.x-k8s.io/v1beta2/workloads",
        older=("/apis/kueue.x-k8s.io/v1beta1/workloads",),
        type=KueueWorkload,
        without="evictions by Kueue count as deletions, and it is not known which jobs wait in its queues, or why",
    ),
    *map(_pod_groups, POD_GROUPS),
)
"""Watched only if the rules name them, as their `Kind` says."""


def resources(rules: Rules, *, matters: Matters | None = None) -> tuple[Resource, ...]:
    """The resources that the aggregator watches. Pods without GPUs, except agents, are decoded and dropped.

    With `matters`, what they take from nodes that matter is kept, and more of each pod is decoded.
    """
    return (
        _pods(rules, matters),
        Resource(kind=Kind.NODES, path="/api/v1/nodes", type=Node, is_first=True, reads_ahead=True, resumes=True),
        Resource(kind=Kind.NAMESPACES, path="/api/v1/namespaces", type=Namespace, is_first=True, reads_ahead=True),
        Resource(
            kind=Kind.PRIORITY_CLASSES,
            path="/apis/scheduling.k8s.io/v1/priorityclasses",
            type=PriorityClass,
            is_first=True,
            reads_ahead=True,
            without="a tier is exported only once a pod has it",
        ),
        Resource(
            kind=Kind.EVENTS,
            path="/api/v1/events",
            type=Event,
            field_selector="reason=Preempted",
            idle_seconds=_EVENTS_IDLE_S,
            without="preemptions are counted with an unknown preemptor",
        ),
        *_RECLAIMS,
        Resource(
            kind=Kind.JOBS,
            path="/apis/batch/v1/jobs",
            type=Job,
            keep=partial(is_gpu_job, rules=rules),
            without="the outcome of a job is that of each of its pods",
        ),
        *(each for each in ON_REQUEST if each.kind in rules.watched),
    )


def _pods(rules: Rules, matters: Matters | None) -> Resource:
    return Resource(
        kind=Kind.PODS,
        path="/api/v1/pods",
        type=PlaceablePod if matters else Pod,
        keep=partial(is_watched, rules=rules),
        brief=partial(other_pod, rules=rules, matters=matters) if matters else None,
        reads_ahead=True,
        resumes=True,
    )


def unwatched(resource: Resource) -> WatchHealth:
    """The health of a watch that has not started."""
    return WatchHealth(kind=resource.kind, available=True if resource.without else None)
