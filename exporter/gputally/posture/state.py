"""What the checks read: the objects in the forms that they compare."""

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from gputally.model.rules import Rules
from gputally.posture.classes import CatalogueClass, catalogue, class_named, default_class, own_classes
from gputally.posture.gpu_workloads import GpuTemplate, GpuWorkload, gpu_workloads
from gputally.posture.objects import PostureInput
from gputally.posture.preemptions import preemptors_of
from gputally.posture.quotas import ScopedQuota, scoped_quotas


class PostureState(Struct, frozen=True, kw_only=True):
    """`classes` and `quotas` are empty where they are unknown; a check that needs them does not run then."""

    found: PostureInput
    rules: Rules
    classes: tuple[CatalogueClass, ...]
    quotas: tuple[ScopedQuota, ...]
    workloads: tuple[GpuWorkload, ...]
    quotas_by_namespace: dict[str, tuple[ScopedQuota, ...]]

    @property
    def own(self) -> tuple[CatalogueClass, ...]:
        """The classes without those of the system, the highest first."""
        return own_classes(self.classes)

    @property
    def default(self) -> CatalogueClass | None:
        """The class that admission writes into pods without one."""
        return default_class(self.classes)

    def class_of(self, template: GpuTemplate) -> str:
        """The class that the pods of a template have after admission; "" for none."""
        if template.class_name or template.is_admitted:
            return template.class_name
        return self.default.name if self.default else ""

    def may_be_preempted(self, template: GpuTemplate) -> bool:
        """Whether a class may preempt these pods; True if the classes are unknown, or if the pods have none."""
        found = class_named(self.classes, self.class_of(template))
        return found is None or bool(self.preemptors(template))

    def preemptors(self, template: GpuTemplate) -> tuple[str, ...]:
        """The known classes that may preempt these pods."""
        found = class_named(self.classes, self.class_of(template))
        return preemptors_of(found, self.classes) if found else ()


def posture_state(found: PostureInput, rules: Rules) -> PostureState:
    """The state of the objects under the rules of tiers and resources."""
    quotas = scoped_quotas(found.resourcequotas or (), rules)
    return PostureState(
        found=found,
        rules=rules,
        classes=catalogue(found.priorityclasses or (), rules),
        quotas=quotas,
        workloads=gpu_workloads(found, rules),
        quotas_by_namespace={
            namespace: tuple(of_it) for namespace, of_it in groupby(quotas, key=lambda each: each.namespace)
        },
    )


def by_role(template: GpuTemplate) -> str:
    """` of the role Worker`, "" for the only kind of pods."""
    return f" of the role {template.role}" if template.role else ""


def total(templates: Sequence[GpuTemplate], resource: str) -> int:
    """Devices of a resource that all their replicas request together."""
    return sum(each.replicas * dict(each.units).get(resource, 0) for each in templates)
