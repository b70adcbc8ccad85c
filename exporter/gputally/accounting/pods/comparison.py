"""Allocations according to the API, compared with a kubelet's device assignments."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import AssignmentRecord

GRACE_US = 15 * US_PER_SECOND
"""One side may not know younger allocations yet: kubelets start pods, and are polled, seconds after their binding."""


class Difference(Struct, frozen=True, kw_only=True, gc=False):
    """µGPU of one node that only one side reports as allocated, as of `at_us`; `pool` is the exported pool label."""

    pool: str
    at_us: int
    api_only: int
    device_only: int


def difference(
    pods: Mapping[str, PodRecord], assignments: Iterable[AssignmentRecord], *, pool: str, told_us: int, at_us: int
) -> Difference:
    """Compare both sides at `told_us`, the time of the kubelet's report; ignore what began or ended just before.

    Only the presence of a pod counts, not its quantity: a slice's share depends on how it is weighted.
    """
    known_us = told_us - GRACE_US
    present = [each for each in assignments if each.until_us is None]
    held = {each.pod_uid for each in present}
    return Difference(
        pool=pool,
        at_us=at_us,
        api_only=sum(_stable_quantity(pod, known_us) for uid, pod in pods.items() if uid not in held),
        device_only=sum(
            each.share
            for each in present
            if each.pod_uid is not None
            and each.key.since_us - each.ahead_us <= known_us
            and (each.pod_uid not in pods or _is_released(pods[each.pod_uid], known_us))
        ),
    )


def _stable_quantity(pod: PodRecord, known_us: int) -> int:
    """The open µGPU of a pod that was bound by `known_us`; 0 for later ones."""
    if pod.scheduled_us is None or pod.scheduled_us > known_us:
        return 0
    return sum(segment.quantity for segment in pod.segments if segment.end_us is None)


def _is_released(pod: PodRecord, known_us: int) -> bool:
    """Whether the pod had released all GPUs by `known_us`."""
    return all(segment.end_us is not None and segment.end_us <= known_us for segment in pod.segments)
