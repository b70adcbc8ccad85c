"""Workloads of Kueue: the pods of a job as its queue sees them.

Shapes: kueue apis/kueue/v1beta2, and v1beta1.
"""

from typing import Final

from msgspec import field

from gputally.model.kube.meta import Camel, Condition, Object
from gputally.model.kube.pods import PodTemplate

_POD_CLASSES: Final = frozenset({"PriorityClass", "scheduling.k8s.io/priorityclass"})
_WORKLOAD_CLASSES: Final = frozenset({"WorkloadPriorityClass", "kueue.x-k8s.io/workloadpriorityclass"})
_MOST_PRIORITY: Final = 2**31


class PodSet(Camel, frozen=True):
    """Equal pods of a job."""

    template: PodTemplate = field(default_factory=PodTemplate)
    name: str = ""
    count: int = 0


class PriorityClassRef(Camel, frozen=True):
    """A PriorityClass, or a WorkloadPriorityClass of Kueue."""

    kind: str = ""
    name: str = ""


class KueueWorkloadSpec(Camel, frozen=True):
    """The pods, the local queue, whether the workload may be admitted, and its priority.

    v1beta1 has `priority_class_name` and `priority_class_source` in place of `priority_class_ref`.
    """

    pod_sets: tuple[PodSet, ...] | None = None
    queue_name: str = ""
    active: bool | None = None
    priority: int | None = None
    priority_class_ref: PriorityClassRef | None = None
    priority_class_name: str = ""
    priority_class_source: str = ""


class KueueWorkloadStatus(Camel, frozen=True):
    """Among others the conditions QuotaReserved, Admitted, Evicted and Finished."""

    conditions: tuple[Condition, ...] | None = None


class KueueWorkload(Object, frozen=True):
    """kueue.x-k8s.io Workload."""

    spec: KueueWorkloadSpec = field(default_factory=KueueWorkloadSpec)
    status: KueueWorkloadStatus = field(default_factory=KueueWorkloadStatus)

    @property
    def priority(self) -> int:
        """Its priority in queues; 0 without one, as for Kueue."""
        return min(max(self.spec.priority or 0, -_MOST_PRIORITY), _MOST_PRIORITY - 1)

    @property
    def pod_class(self) -> str:
        """The PriorityClass that its priority is from, which may be the default one; "" for none."""
        return self._class_of(_POD_CLASSES)

    @property
    def workload_class(self) -> str:
        """The WorkloadPriorityClass that its priority is from; "" for none."""
        return self._class_of(_WORKLOAD_CLASSES)

    def _class_of(self, kinds: frozenset[str]) -> str:
        spec, ref = self.spec, self.spec.priority_class_ref
        kind, name = (ref.kind, ref.name) if ref else (spec.priority_class_source, spec.priority_class_name)
        return name if kind in kinds else ""

    def condition(self, of_type: str) -> Condition | None:
        """The condition of that type, None without one."""
        return next((each for each in self.status.conditions or () if each.type == of_type), None)

    def is_true(self, of_type: str) -> bool:
        """Whether it has that condition, and it is true."""
        found = self.condition(of_type)
        return found is not None and found.status == "True"
