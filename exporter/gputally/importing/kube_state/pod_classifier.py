"""Classifies pods of the past by the rules and prices of the cluster, and computes their segments."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from gputally.accounting.facts.allocation import segments_of
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.terms.classify import terms_of
from gputally.accounting.terms.job import job_of
from gputally.accounting.terms.tenant import tenant_of
from gputally.accounting.totals.label_limiter import PodLabels
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.node_record import NodeFacts
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.shares.request import limited

MachineKey = tuple[str, float]
"""The name of a node and the time (s) of the machine's first sample under it; 0 if no scrape showed the machine."""


class PodContext(Struct, kw_only=True):
    """What pods refer to: machines, namespaces, and the controllers of ReplicaSets, by (namespace, name).

    `nodes` are the facts of machines, which follow from `node_labels`.
    """

    node_labels: dict[MachineKey, Mapping[str, str]] = field(default_factory=dict)
    nodes: dict[MachineKey, NodeFacts] = field(default_factory=dict)
    namespace_labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    namespace_annotations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    controllers: dict[tuple[str, str], OwnerReference] = field(default_factory=dict)


def classified(record: PodRecord, facts: NodeFacts, context: PodContext, rules: Rules) -> PodRecord:
    """The record with its job, and with terms that hold from its start; `facts` are those of its node."""
    tenant = tenant_of(
        record.namespace,
        pod_labels=dict(record.labels),
        namespace_labels=context.namespace_labels.get(record.namespace, {}),
        namespace_annotations=context.namespace_annotations.get(record.namespace, {}),
        rules=rules,
    )
    kind, job = _job(record, context)
    terms = terms_of(record, facts, tenant, rules, from_us=record.scheduled_us or 0, limit=_unlimited)
    most = limited(record.units, facts.offered or None, rules)
    return replace(record, job_kind=kind, job=job, terms=(terms,), limited=most)


def _unlimited(labels: PodLabels) -> PodLabels:
    return labels


def _job(record: PodRecord, context: PodContext) -> tuple[str, str]:
    owner = Owner(record.namespace, record.owner) if record.owner else None
    owners: dict[Owner, OwnerResolved] = {}
    if owner and (parent := context.controllers.get((record.namespace, owner.reference.name))):
        owners[owner] = OwnerResolved(owner=owner, parent=parent, at_us=0)
    return job_of(record.name, dict(record.labels), owner, owners)


class PodClassifier:
    """See `JobClassifier`: for pods that already have their terms."""

    def __init__(self, pricing: Pricing) -> None:
        self._pricing = pricing

    def uid(self, pod: PodRecord) -> str:
        """The UID of the pod in Kubernetes."""
        return pod.uid

    def is_running(self, pod: PodRecord) -> bool:
        """Whether it has not ended in the window."""
        return pod.end_us is None

    def record(self, pod: PodRecord, *, until_us: int, revision: int) -> PodRecord:
        """The pod with its segments."""
        pod = replace(pod, revision=revision)
        until_us = until_us if pod.end_us is None else pod.end_us
        return replace(pod, segments=segments_of(pod, until_us=until_us, prices=self._pricing.of_allocation))
