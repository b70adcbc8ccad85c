"""Under which terms a pod holds its GPUs: tier, tenant, model, pool, price asset and quantities."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from gputally.accounting.job import JOB_LABEL_KEYS
from gputally.accounting.node import quantities_on
from gputally.accounting.tenant import relevant_labels, tenant_of
from gputally.accounting.tier import tier_of
from gputally.model.allocation import Terms
from gputally.model.kube import Labels
from gputally.model.node import NodeFacts
from gputally.model.pod import PodRecord
from gputally.model.rules import Rules

_QUEUE_LABELS = (
    "kueue.x-k8s.io/local-queue-name",
    "kueue.x-k8s.io/queue-name",
    "volcano.sh/queue-name",
    "kai.scheduler/queue",
)


class NamespaceMarks(Struct, frozen=True):
    """What tenant rules can look at of a namespace."""

    uid: str = ""
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)


def kept_labels(labels: Labels | None, rules: Rules) -> tuple[tuple[str, str], ...]:
    """The labels of a pod that anything here looks at, which is all that is remembered of them."""
    wanted = relevant_labels(rules) | JOB_LABEL_KEYS | frozenset(_QUEUE_LABELS)
    return tuple(sorted((key, value) for key, value in (labels or {}).items() if key in wanted))


def tenant_for(record: PodRecord, namespace: NamespaceMarks, rules: Rules) -> str:
    """The tenant by the pod's and its namespace's present marks."""
    return tenant_of(
        record.namespace,
        pod_labels=dict(record.labels),
        namespace_labels=namespace.labels,
        namespace_annotations=namespace.annotations,
        rules=rules,
    )


def terms_of(record: PodRecord, facts: NodeFacts, namespace: NamespaceMarks, rules: Rules, *, from_us: int) -> Terms:
    """What applies to the bound pod from `from_us` on."""
    return Terms(
        from_us=from_us,
        tier=tier_of(record.class_name, record.priority, rules),
        tenant=tenant_for(record, namespace, rules),
        queue=queue_of(dict(record.labels)),
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(record.units, facts.sharing, rules),
    )


def moved(terms: Terms, units: tuple[tuple[str, int], ...], facts: NodeFacts, rules: Rules) -> Terms:
    """`terms` of a pod that was on another node all along than was thought."""
    return replace(
        terms,
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(units, facts.sharing, rules),
    )


def queue_of(labels: Mapping[str, str]) -> str:
    """The queue by the label of Kueue, Volcano or KAI; "" without one."""
    return next((labels[key] for key in _QUEUE_LABELS if labels.get(key)), "")
