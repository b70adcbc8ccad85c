"""KAI-Scheduler: the queue and the PodGroup of a pod, and why it was evicted, as its condition DisruptionTarget says.

The condition is written only with `--update-pod-eviction-condition`, with the reason PreemptionByScheduler for all
actions.
"""

import re
from typing import Final, NamedTuple

from gputally.frameworks.framework import Framework
from gputally.frameworks.stated import first_of
from gputally.model.disruptions import Cause
from gputally.model.kube.pods import Texts

_GROUP: Final = "pod-group-name"
"""The annotation with which KAI-Scheduler names the PodGroup of a pod.

Source: kai-scheduler/KAI-Scheduler pkg/common/constants/constants.go, PodGroupAnnotationForPod.
"""
_LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME: Final = rf"(?=[^/ \n]{{1,254}}(?:[/ \n]|$)){_LABEL}(?:\.{_LABEL})*"
"""The name of an object, of up to 253 characters, and perhaps a full stop."""
_POD: Final = rf"Pod {_LABEL}/{_NAME} was preempted "
_FOR_WORKLOAD: Final = re.compile(
    rf"{_POD}by (?:higher priority )?workload (?P<namespace>{_LABEL})/(?P<name>{_NAME})\.?(?:\n|$)"
)
"""Text of the actions preempt and reclaim; reclaim goes on with a line for each queue. The workload is a PodGroup."""
_TO_PACK: Final = re.compile(rf"{_POD}and rescheduled due to bin packing")
_INCOMPLETE: Final = re.compile("Workload doesn't (?:meet|have) the minimum required number of pods")
KAI: Final = Framework(queues=("kai.scheduler/queue",))


class KaiEviction(NamedTuple):
    """The cause, and the PodGroup that the pod made room for, "" without one."""

    cause: Cause
    namespace: str = ""
    name: str = ""


def kai_eviction_in(message: str | None) -> KaiEviction | None:
    """What the message says; None if it is none of KAI's.

    Source: kai-scheduler/KAI-Scheduler pkg/scheduler/api/unschedule_info.go, GetPreemptMessage, GetReclaimMessage,
    GetConsolidateMessage and GetGangEvictionMessage; pkg/scheduler/cache/evictor/default_evictor.go.
    """
    if not message:
        return None
    if found := _FOR_WORKLOAD.match(message):
        return KaiEviction(Cause.PREEMPTION, found["namespace"], found["name"])
    if _TO_PACK.match(message):
        return KaiEviction(Cause.CONSOLIDATION)
    return KaiEviction(Cause.QUEUE_EVICTION) if _INCOMPLETE.match(message) else None


def kai_group_in(annotations: Texts | None) -> str:
    """The name of the PodGroup of a pod, as KAI-Scheduler annotates it; "" for none."""
    return first_of(annotations, (_GROUP,))
