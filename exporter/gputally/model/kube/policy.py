"""PriorityClasses, ResourceQuotas and PodDisruptionBudgets: the policy of a cluster for its pods.

Shapes: k8s.io/api scheduling/v1, core/v1, policy/v1.
"""

from msgspec import Struct, field

from gputally.model.kube.meta import Camel, GeneratedMeta, Object, Selector

Quantity = str | int


class ScopeExpression(Camel, frozen=True):
    """A requirement on a scope: `operator` is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(Camel, frozen=True):
    """All requirements hold for the pods that a quota counts."""

    match_expressions: tuple[ScopeExpression, ...] | None = None


class QuotaSpec(Camel, frozen=True):
    """`scopes` is the older form of a selector."""

    hard: dict[str, Quantity] | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class QuotaStatus(Camel, frozen=True):
    """What the quota controller counted, and the limits that admission enforces."""

    used: dict[str, Quantity] | None = None
    hard: dict[str, Quantity] | None = None


class DisruptionBudgetSpec(Camel, frozen=True):
    """A number or a percentage of the pods that it selects; at most one of the two is set."""

    min_available: str | int | None = None
    max_unavailable: str | int | None = None
    selector: Selector | None = None


class DisruptionBudgetStatus(Camel, frozen=True):
    """What the disruption controller computed for the spec of the observed generation."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class PriorityClass(Object, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class PodDisruptionBudget(Object, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: GeneratedMeta
    spec: DisruptionBudgetSpec = field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = field(default_factory=DisruptionBudgetStatus)


class ResourceQuota(Object, frozen=True):
    """core/v1 ResourceQuota."""

    spec: QuotaSpec = field(default_factory=QuotaSpec)
    status: QuotaStatus = field(default_factory=QuotaStatus)


class ClassVersion(Struct, frozen=True, kw_only=True, gc=False):
    """What a class said from `from_us` to `to_us` (µs); None while that lasts.

    Value and policy of a class never change: another value is a new object of the same name. The default may change.
    """

    name: str
    uid: str
    value: int
    preemption_policy: str
    is_default: bool
    from_us: int
    to_us: int | None = None


class QuotaUse(Struct, frozen=True):
    """GPUs in µGPU; `used` is None while the quota controller has not counted them."""

    hard: int
    used: int | None
