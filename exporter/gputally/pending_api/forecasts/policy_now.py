"""The ResourceQuotas and PodDisruptionBudgets of a cluster at one instant."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.policy.pod_labels import labels_in
from gputally.model.kube.meta import Kind
from gputally.model.pod_record import PodRecord
from gputally.placement.disruption_budgets import NO_BUDGETS, Budgets
from gputally.placement.quotas import PodQuota

_NOT_LISTED: Final = "they are still being listed"
_NO_LABELS: Final = "the labels of some pods are not known, or there are too many budgets"


class PolicyNow(NamedTuple):
    """The quotas, with the tenants of their namespaces; and what is not known, by resource, with the reason."""

    quotas: Sequence[PodQuota] = ()
    tenants: Mapping[str, str] = {}
    unknown: Mapping[str, str] = {}


NO_POLICY: Final = PolicyNow()


def read_policy(fleet: Fleet) -> PolicyNow:
    """The quotas now, and whether quotas and budgets are known."""
    admission = fleet.policy.admission
    quotas = tuple(admission.known.values())
    listed = {
        Kind.QUOTAS: admission.is_listed,
        Kind.DISRUPTION_BUDGETS: fleet.policy.budgets.read() is not None,
    }
    return PolicyNow(
        quotas=quotas,
        tenants={each.namespace: fleet.pods.namespaces.tenant_in(each.namespace) for each in quotas},
        unknown={kind.value: _why(fleet, kind) for kind, is_listed in listed.items() if not is_listed},
    )


def read_budgets(fleet: Fleet, records: Mapping[str, PodRecord]) -> Budgets:
    """The budgets now, and which pods they select; of pods without GPUs, they select none."""
    if not (found := fleet.policy.budgets.read()):
        return NO_BUDGETS
    labels = dict(fleet.policy.labels.known)

    def namespace_of(uid: str) -> str:
        return records[uid].namespace if uid in records else ""

    def labels_of(uid: str) -> Mapping[str, str] | None:
        return labels_in(labels[uid]) if uid in labels else None

    return Budgets(found, namespace_of, labels_of)


def not_considered(policy: PolicyNow, budgets: Budgets) -> dict[str, str]:
    """What a forecast did not consider, by resource, with the reason."""
    partial = {Kind.DISRUPTION_BUDGETS.value: _NO_LABELS} if budgets.is_partial else {}
    return partial | dict(policy.unknown)


def _why(fleet: Fleet, kind: Kind) -> str:
    if kind.value in fleet.rules.watched:
        return _NOT_LISTED
    return f"they are not watched; start the aggregator with --watch={kind.value}"
