"""The PriorityClasses of a cluster, from the highest to the lowest, and how they changed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from msgspec import Struct

from gputally.accounting.policy.priority_classes import SYSTEM
from gputally.accounting.terms.tier import serves, tier_of
from gputally.formatting.amounts import listed
from gputally.ledger.records import PriorityClassRecord, Window
from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.model.rules import Rules
from gputally.model.units import to_datetime
from gputally.posture.objects import ClassObject

POLICIES: Final = (PREEMPTS, NEVER)
"""Source: k8s.io/api core/v1/types.go, PreemptionPolicy."""
SYSTEM_CLASSES: Final = ("system-node-critical", "system-cluster-critical")
"""Every cluster has them. Source: k8s.io/kubernetes pkg/apis/scheduling/helpers.go."""


class CatalogueClass(Struct, frozen=True, kw_only=True):
    """A PriorityClass. The tier is that of a pod without labels; `is_serving` says whether that tier serves users."""

    name: str
    value: int
    tier: str
    preemption_policy: str
    global_default: bool
    is_system: bool
    is_serving: bool
    description: str = ""

    @property
    def policy_exists(self) -> bool:
        """Whether the API has the policy; else the API server refuses the class."""
        return self.preemption_policy in POLICIES

    def may_preempt(self, victim: "CatalogueClass") -> bool:
        """Whether pods of this class may preempt those of `victim`; a class that the API server refuses has no pods.

        Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption, isPreemptionAllowed and
        PodEligibleToPreemptOthers.
        """
        return self.preemption_policy == PREEMPTS and self.value > victim.value


def catalogue(classes: Iterable[ClassObject], rules: Rules) -> tuple[CatalogueClass, ...]:
    """The classes by value, the highest first."""
    found = (_entry(each, rules) for each in classes)
    return tuple(sorted(found, key=lambda each: (-each.value, each.name)))


def _entry(found: ClassObject, rules: Rules) -> CatalogueClass:
    name = found.metadata.name
    tier = tier_of(name, found.value, rules)
    return CatalogueClass(
        name=name,
        value=found.value,
        tier=tier,
        preemption_policy=found.preemption_policy or PREEMPTS,
        global_default=bool(found.global_default),
        is_system=name.startswith(SYSTEM),
        is_serving=serves(tier, rules),
        description=found.description or "",
    )


def own_classes(classes: Iterable[CatalogueClass]) -> tuple[CatalogueClass, ...]:
    """The classes without those of the system."""
    return tuple(each for each in classes if not each.is_system)


def class_named(classes: Sequence[CatalogueClass], name: str) -> CatalogueClass | None:
    """The class of that name."""
    return next((each for each in classes if each.name == name), None)


def default_class(classes: Iterable[CatalogueClass]) -> CatalogueClass | None:
    """The class that admission writes into pods without one: the lowest, should there be several.

    Source: k8s.io/kubernetes plugin/pkg/admission/priority/admission.go, getDefaultPriorityClass.
    """
    return min((each for each in classes if each.global_default), key=lambda each: each.value, default=None)


class ClassChange(Struct, frozen=True, kw_only=True):
    """When a class was created, changed or deleted, and what changed."""

    at: datetime
    name: str
    what: str


def class_changes(versions: Iterable[PriorityClassRecord], window: Window) -> tuple[ClassChange, ...]:
    """The changes in the window, in the order of time. Those before the first known version are not known."""
    by_name = sorted(versions, key=lambda each: (each.name, each.from_us))
    found = (change for _, own in groupby(by_name, key=lambda each: each.name) for change in _changes(list(own)))
    within = [(us, name, what) for us, name, what in found if window.start_us <= us < window.end_us]
    return tuple(ClassChange(at=to_datetime(us), name=name, what=what) for us, name, what in sorted(within))


def _changes(versions: Sequence[PriorityClassRecord]) -> Iterator[tuple[int, str, str]]:
    """Time (µs), name and change of all versions of one class, by their start."""
    for before, new in zip((None, *versions), (*versions, None), strict=False):
        if before and before.to_us is not None and (new is None or new.from_us > before.to_us):
            yield before.to_us, before.name, "deleted"
        if new:
            yield new.from_us, new.name, _difference(before, new)


def _difference(before: PriorityClassRecord | None, new: PriorityClassRecord) -> str:
    if before is None:
        default = ", the globalDefault" if new.is_default else ""
        return f"created: value {new.value}, preemptionPolicy {new.preemption_policy}{default}"
    found = []
    if before.value != new.value:
        found.append(f"value {new.value} instead of {before.value}")
    if before.preemption_policy != new.preemption_policy:
        found.append(f"preemptionPolicy {new.preemption_policy} instead of {before.preemption_policy}")
    if before.is_default != new.is_default:
        found.append("now the globalDefault" if new.is_default else "no longer the globalDefault")
    return listed(found) if found else "created again, with the same value and preemptionPolicy"
