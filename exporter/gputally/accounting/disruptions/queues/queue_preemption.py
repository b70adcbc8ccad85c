"""The preemption of a pod whose queue made room for another workload."""

from msgspec.structs import replace

from gputally.model.disruptions import Disruption, Preemption, Preemptor


def by_queue(each: Disruption, known: Preemption | None, *, priority: int | None, at_us: int) -> Preemption:
    """The preemption of that victim, whose workload has that priority, with what is `known` of it.

    The preemptor is known by UIDs alone at first.
    """
    by = each.by
    new = Preemption(
        victim_uid=each.victim_uid,
        victim_namespace=each.victim_namespace,
        victim_name=each.victim_name,
        victim_priority=priority,
        victim_tier=each.victim_tier,
        victim_tenant=each.victim_tenant,
        node=each.node,
        quantity=each.quantity,
        decided_us=each.decided_us,
        requested_us=each.requested_us,
        released_us=each.released_us,
        noticed_us=at_us,
        preemptor=Preemptor(uid=by.uid, namespace="", name="", job_uid=by.job_uid) if by.uid else None,
        queue_rule=by.rule,
    )
    if known is None:
        return new
    return replace(
        new,
        victim_priority=priority if known.victim_priority is None else known.victim_priority,
        noticed_us=known.noticed_us,
        preemptor=known.preemptor,
        preemptor_pods=known.preemptor_pods,
        counted=known.counted,
        forbidden=known.forbidden,
    )
