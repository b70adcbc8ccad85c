"""The preemption of a pod whose queue made room for another workload."""

from msgspec.structs import replace

from gputally.model.disruptions.disruption import Disruption
from gputally.model.disruptions.preemption import Preemption, Preemptor


def by_queue(each: Disruption, known: Preemption | None, *, at_us: int) -> Preemption:
    """The preemption of that victim, with what is `known` of it. The preemptor is known by its UID alone at first."""
    new = Preemption(
        victim_uid=each.victim_uid,
        victim_namespace=each.victim_namespace,
        victim_name=each.victim_name,
        victim_tier=each.victim_tier,
        victim_tenant=each.victim_tenant,
        node=each.node,
        quantity=each.quantity,
        decided_us=each.decided_us,
        requested_us=each.requested_us,
        released_us=each.released_us,
        noticed_us=at_us,
        preemptor=Preemptor(uid=each.by.uid, namespace="", name="") if each.by.uid else None,
        queue_rule=each.by.rule,
    )
    if known is None:
        return new
    return replace(
        new,
        noticed_us=known.noticed_us,
        preemptor=known.preemptor,
        preemptor_pods=known.preemptor_pods,
        counted=known.counted,
        forbidden=known.forbidden,
    )
