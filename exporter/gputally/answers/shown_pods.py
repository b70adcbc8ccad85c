"""Pods as answers show them, without a verdict."""

from gputally.accounting.fleet.active_pods import ANY
from gputally.answers.past_pods import PastPod
from gputally.model.api.pending import PendingPod
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU, to_datetime


def known_pod(record: PodRecord, *, tier: str, tenant: str, quantity: int, gpu_model: str) -> PendingPod:
    """A pod that exists, with its quantity (µGPU) of a model, as it holds them or waits for them."""
    created = to_datetime(record.created_us)
    return PendingPod(
        namespace=record.namespace,
        pod=record.name,
        uid=record.uid,
        tier=tier,
        tenant=tenant,
        job_kind=record.job_kind,
        job=record.job,
        class_name=record.class_name,
        priority=record.priority or 0,
        may_preempt=record.may_preempt,
        gpus=quantity / GPU,
        gpu_model=gpu_model,
        created=created,
        since=created,
    )


def gone_pod(gone: PastPod) -> PendingPod:
    """A pod of the ledger, which keeps the class and the priority only of pods that were bound, and no policy."""
    known = gone.allocation
    created_us = gone.waits[0].from_us if gone.waits else gone.preempted.decided_us if gone.preempted else 0
    created = to_datetime(known.created_us if known else created_us)
    return PendingPod(
        namespace=gone.namespace,
        pod=gone.name,
        uid=gone.uid,
        tier=gone.tier,
        tenant=gone.tenant,
        job_kind=known.job_kind if known else "",
        job=known.job if known else "",
        class_name=known.class_name if known else None,
        priority=known.priority if known else None,
        may_preempt=None,
        gpus=gone.quantity / GPU,
        gpu_model=ANY,
        created=created,
        since=created,
    )
