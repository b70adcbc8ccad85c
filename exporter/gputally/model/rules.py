"""The configuration of classification: tiers, tenants, resources, pools, limits; and the budgets."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.model.budgets import Budget
from gputally.model.periods import Closing

FIXED: Final = "fixed"
"""Each unit of a resource is the `weight` of its rule."""
SERVING_BY_NAME: Final = "(.*[-_.])?(inference|infer|serving|serve|online|realtime|real-time)([-_.].*)?"
"""Tiers that serve user traffic by default: their names contain one of these words as a separate part."""
WHAT_IF_CHECKPOINTS_US: Final = tuple(minutes * 60_000_000 for minutes in (5, 10, 15, 30, 60))
"""Checkpoint intervals for which it is computed, too, what preemptions would have destroyed."""


class TierRule(Struct, frozen=True, kw_only=True, cache_hash=True):
    """Pods that match all criteria get `tier`; an absent criterion matches every pod.

    `class_name` is a regular expression for the whole name of the PriorityClass. A pod matches a `label` if it has that
    key and `matches`, a regular expression, matches the whole value. `tier` may contain `{class}`, the name of the
    PriorityClass, and groups of `class_name` as `{1}` or `{name}`; with a label, `{value}` and groups of `matches`.
    """

    tier: str
    class_name: str | None = None
    label: str = ""
    matches: str | None = None
    min_priority: int | None = None
    max_priority: int | None = None


class TenantSource(StrEnum):
    """The source of the tenant in a tenant rule."""

    POD_LABEL = "pod-label"
    NAMESPACE_LABEL = "namespace-label"
    NAMESPACE_ANNOTATION = "namespace-annotation"
    NAMESPACE = "namespace"


class TenantRule(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The value found at `source` (label or annotation `key`) gives `tenant`, if the expression `pattern` matches it.

    `tenant` may contain `{value}` and groups of `pattern` as `{1}` or `{name}`.
    """

    source: TenantSource
    key: str = ""
    pattern: str | None = None
    tenant: str = "{value}"


class ResourceRule(Struct, frozen=True, kw_only=True, cache_hash=True):
    """Resource names that match the glob `pattern` are GPUs, weighed by the share scheme `weighing`."""

    pattern: str
    weighing: str = FIXED
    weight: int = 1_000_000


class MigBasis(StrEnum):
    """The basis for the GPU share of a MIG profile: 1g.10gb is 1/7 by compute, 1/8 by memory (80 GB)."""

    COMPUTE = "compute"
    MEMORY = "memory"


class HamiBasis(StrEnum):
    """The basis for the GPU share of a pod that HAMi limits by memory and by cores.

    HAMi does not overcommit either of them, but allows any mixture: by `cores` or by the `larger` of both, the shares
    of one GPU may add up to more than 1.
    """

    MEMORY = "memory"
    CORES = "cores"
    """A pod without a cores limit counts by its memory."""
    LARGER = "larger"


class KaiNames(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The name of KAI's scheduler, and the namespace of the pods that reserve GPUs for it."""

    scheduler: str = "kai-scheduler"
    reservations: str = "kai-resource-reservation"


class Limits(Struct, frozen=True, kw_only=True, cache_hash=True):
    """How many values of each label are exported before further ones become `other`.

    A value without growth for `idle_hours` may be replaced by another.
    """

    tiers: int = 32
    tenants: int = 500
    gpu_models: int = 64
    pools: int = 200
    idle_hours: int = 24


class ChargeCeilings(Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a wait may be charged for, in GPUs, even if the cluster never had as many: its pools scale from zero.

    `gpus` are those of all pods that one workload lacks, `gpus_per_pod` those of one pod.
    """

    gpus: int = 10_000
    gpus_per_pod: int = 256


class AgentMarks(Struct, frozen=True, kw_only=True, cache_hash=True):
    """Identifies agents: pods in `namespace` ("" for all) with all of these `labels`; without labels, none matches."""

    namespace: str = "gputally"
    labels: tuple[tuple[str, str], ...] = (
        ("app.kubernetes.io/name", "gputally"),
        ("app.kubernetes.io/component", "agent"),
    )


class CheckpointRule(Struct, frozen=True, kw_only=True, cache_hash=True):
    """Pods of `tier` ("" for any) are taken to save a checkpoint every `interval_us` since their start."""

    tier: str = ""
    interval_us: int


class Placeholders(Struct, frozen=True, kw_only=True, cache_hash=True):
    """Pods that only keep GPUs free for others have no work to lose, by regular expressions for a whole text.

    A pod is a placeholder if one of `tiers` matches its tier, one of `classes` the name of its PriorityClass, or
    `images` match the images of all its containers.
    """

    tiers: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


class TimeLimit(Struct, frozen=True, kw_only=True, cache_hash=True):
    """How long pods of `tier` ("" for any) may be pending, and starting, before an alert; None says nothing."""

    tier: str = ""
    pending_us: int | None = None
    starting_us: int | None = None


class Rules(Struct, frozen=True, kw_only=True, cache_hash=True):
    """All classification rules; the defaults are the zero-configuration behaviour.

    `known_tiers` are exported as 0 before any pod has them. `serving` are regular expressions for the whole names
    of the tiers that serve user traffic; none in a cluster that only trains. `resources` precede the built-in
    resources of the sharing schemes, which apply unless `built_in_resources` is off. The first of `checkpoints` for
    its tier applies to a pod that states nothing, and the first of `time_limits` for a tier to its pods. Pods that
    serve, and `placeholders`, have no work to lose. `what_if_checkpoints_us` are in ascending order. No period is
    closed without `closing`. `watched` are some of `OPTIONAL_RESOURCES`. `digest` changes with what affects the
    classification of pods.
    """

    tiers: tuple[TierRule, ...] = (TierRule(tier="{class}"),)
    known_tiers: tuple[str, ...] = ()
    serving: tuple[str, ...] = (SERVING_BY_NAME,)
    tenants: tuple[TenantRule, ...] = (TenantRule(source=TenantSource.NAMESPACE),)
    resources: tuple[ResourceRule, ...] = ()
    built_in_resources: bool = True
    pool_labels: tuple[str, ...] = (
        "karpenter.sh/nodepool",
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "kubernetes.azure.com/agentpool",
        "agentpool",
    )
    mig_basis: MigBasis = MigBasis.COMPUTE
    hami_basis: HamiBasis = HamiBasis.MEMORY
    kai: KaiNames = KaiNames()
    limits: Limits = Limits()
    waits: ChargeCeilings = ChargeCeilings()
    agents: AgentMarks = AgentMarks()
    checkpoints: tuple[CheckpointRule, ...] = ()
    placeholders: Placeholders = Placeholders()
    what_if_checkpoints_us: tuple[int, ...] = WHAT_IF_CHECKPOINTS_US
    time_limits: tuple[TimeLimit, ...] = ()
    closing: Closing | None = None
    budgets: tuple[Budget, ...] = ()
    watched: tuple[str, ...] = ()
    digest: str = ""
