"""Workloads of Kueue: the pods of a job as its queue sees them.

Shapes: kueue apis/kueue/v1beta2, and v1beta1, which has the same fields here.
"""

from msgspec import field

from gputally.model.kube import Condition, Object, PodTemplate
from gputally.model.objects.camel import Camel


class PodSet(Camel, frozen=True):
    """Equal pods of a job."""

    template: PodTemplate = field(default_factory=PodTemplate)
    name: str = ""
    count: int = 0


class KueueWorkloadSpec(Camel, frozen=True):
    """The pods, the local queue, and whether the workload may be admitted."""

    pod_sets: tuple[PodSet, ...] | None = None
    queue_name: str = ""
    active: bool | None = None


class KueueWorkloadStatus(Camel, frozen=True):
    """Among others the conditions QuotaReserved, Admitted, Evicted and Finished."""

    conditions: tuple[Condition, ...] | None = None


class KueueWorkload(Object, frozen=True):
    """kueue.x-k8s.io Workload."""

    spec: KueueWorkloadSpec = field(default_factory=KueueWorkloadSpec)
    status: KueueWorkloadStatus = field(default_factory=KueueWorkloadStatus)

    def condition(self, of_type: str) -> Condition | None:
        """The condition of that type, None without one."""
        return next((each for each in self.status.conditions or () if each.type == of_type), None)

    def is_true(self, of_type: str) -> bool:
        """Whether it has that condition, and it is true."""
        found = self.condition(of_type)
        return found is not None and found.status == "True"
