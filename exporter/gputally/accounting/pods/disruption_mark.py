"""What the object of a pod says about its disruption, other than a preemption by the scheduler."""

from typing import Final

from gputally.accounting.nodes.node_clock import OFF_US
from gputally.model.disruption import Cause, Disrupted
from gputally.model.kube import Condition, Pod
from gputally.model.pod import PodRecord
from gputally.model.units import to_us

PREEMPTION_REASONS: Final = ("PreemptionByScheduler", "PreemptionByKubeScheduler")
"""Kubernetes 1.25 and 1.26 write the second."""
_CAUSES: Final = {
    "DeletionByTaintManager": Cause.TAINT,
    "DeletionByDeviceTaintManager": Cause.DEVICE_TAINT,
    "EvictionByEvictionAPI": Cause.EVICTION,
    "DeletionByPodGC": Cause.NODE_LOST,
}
"""By the reason of the condition DisruptionTarget.

Source: k8s.io/api core/v1 types.go; k8s.io/kubernetes pkg/controller tainteviction, devicetainteviction and podgc,
pkg/registry/core/pod/storage/eviction.go.
"""
_BY_KUBELET: Final = {
    "Evicted": Cause.NODE_PRESSURE,
    "Terminated": Cause.NODE_SHUTDOWN,
    "Preempting": Cause.KUBELET_ADMISSION,
}
"""By `status.reason`. Source: k8s.io/kubernetes pkg/kubelet eviction, nodeshutdown and preemption."""


def disruption_of(record: PodRecord, pod: Pod, at_us: int) -> Disrupted | None:
    """The disruption of a pod whose newest state is `pod`.

    A condition may be withdrawn, but not once the pod has ended or its deletion was requested: what is written later,
    as by PodGC, does not change why. A condition that is later than somebody's deletion request is not the cause.
    """
    known, is_final = record.disruption, record.deletion_us is not None or record.ending is not None
    if known and is_final:
        return known
    new = _reported(pod, at_us)
    if new and record.deletion_us is not None and new.at_us > record.deletion_us + OFF_US:
        return None
    return new


def target_of(pod: Pod) -> Condition | None:
    """The condition DisruptionTarget, if it is true."""
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition
    return None


def _reported(pod: Pod, at_us: int) -> Disrupted | None:
    status, target = pod.status, target_of(pod)
    if target is None or target.reason in PREEMPTION_REASONS:
        return None
    cause = _CAUSES.get(target.reason or "") or _BY_KUBELET.get(status.reason or "", Cause.OTHER)
    time = target.last_transition_time
    return Disrupted(cause, min(to_us(time), at_us) if time else at_us)
