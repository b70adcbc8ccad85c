"""The resources the simulated API server serves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Resource:
    """A resource of an API group; `has_status` means that it has a `/status` subresource.

    `plural` is its name in the store, and in paths unless `name` is another one: API groups may use the same.
    """

    plural: str
    kind: str
    group: str = ""
    namespaced: bool = True
    has_status: bool = False
    version: str = "v1"
    name: str = ""

    @property
    def served(self) -> str:
        """The plural name in paths."""
        return self.name or self.plural

    @property
    def api_version(self) -> str:
        """`v1`, `batch/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in error messages: `pods`, `jobs.batch`."""
        return f"{self.served}.{self.group}" if self.group else self.served


def _pod_groups(group: str, version: str) -> Resource:
    return Resource(f"podgroups.{group}", "PodGroup", group=group, version=version, name="podgroups", has_status=True)


EVENTS = Resource("events", "Event", group="events.k8s.io")
"""The events.k8s.io view of the Events that core/v1 also serves."""

RESOURCES = (
    Resource("pods", "Pod", has_status=True),
    Resource("nodes", "Node", namespaced=False, has_status=True),
    Resource("namespaces", "Namespace", namespaced=False, has_status=True),
    Resource("events", "Event"),
    Resource("resourcequotas", "ResourceQuota", has_status=True),
    EVENTS,
    Resource("priorityclasses", "PriorityClass", group="scheduling.k8s.io", namespaced=False),
    Resource("replicasets", "ReplicaSet", group="apps", has_status=True),
    Resource("deployments", "Deployment", group="apps", has_status=True),
    Resource("jobs", "Job", group="batch", has_status=True),
    Resource("cronjobs", "CronJob", group="batch", has_status=True),
    Resource("poddisruptionbudgets", "PodDisruptionBudget", group="policy", has_status=True),
    Resource("workloads", "Workload", group="kueue.x-k8s.io", version="v1beta2", has_status=True),
    _pod_groups("scheduling.volcano.sh", "v1beta1"),
    _pod_groups("scheduling.x-k8s.io", "v1alpha1"),
    _pod_groups("scheduling.k8s.io", "v1alpha2"),
    Resource("leases", "Lease", group="coordination.k8s.io"),
)

BY_PLURAL = {resource.plural: resource for resource in RESOURCES if resource is not EVENTS}
"""The storage resource of each plural name."""

_BY_GROUP = {(resource.group, resource.version, resource.served): resource for resource in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    """The resource, or None."""
    return _BY_GROUP.get((group, version, plural))
