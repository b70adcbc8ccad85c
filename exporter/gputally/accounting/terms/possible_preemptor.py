"""A pod as the one that preempts others."""

from gputally.accounting.terms.namespaces import Namespaces
from gputally.accounting.terms.tier import tier_of_pod
from gputally.model.disruptions import Preemptor
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules


def preemptor_from(record: PodRecord, rules: Rules, namespaces: Namespaces) -> Preemptor:
    """The pod with its present tier and tenant."""
    return Preemptor(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        tier=tier_of_pod(record, rules),
        tenant=namespaces.tenant(record),
        priority=record.priority or 0,
        may_preempt=record.may_preempt,
        class_name=record.class_name,
    )
