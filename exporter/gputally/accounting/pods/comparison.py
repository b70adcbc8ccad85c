"""Allocations as the API tells them, against those a node's kubelet tells."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from gputally.model.measured.usage_record import AssignmentRecord
from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_SECOND

GRACE_US = 15 * US_PER_SECOND
"""What is younger may not be known everywhere: a kubelet starts a pod, and is asked, some seconds after its binding."""


class Difference(Struct, frozen=True, kw_only=True, gc=False):
    """µGPU of one node that only one side knows to be allocated, as of `at_us`; `pool` is the exported one."""

    pool: str
    at_us: int
    api_only: int
    device_only: int


def difference(
    pods: Mapping[str, PodRecord], assignments: Iterable[AssignmentRecord], *, pool: str, told_us: int, at_us: int
) -> Difference:
    """Both sides as they were at `told_us`, when the kubelet told its own, without what began or ended just before.

    A pod is on a side or not: how much it has may differ, since a slice's share depends on how it is weighed.
    """
    known_us = told_us - GRACE_US
    present = [each for each in assignments if each.until_us is None]
    held = {each.pod_uid for each in present}
    return Difference(
        pool=pool,
        at_us=at_us,
        api_only=sum(_had_all_along(pod, known_us) for uid, pod in pods.items() if uid not in held),
        device_only=sum(
            each.share
            for each in present
            if each.pod_uid is not None
            and each.key.since_us - each.ahead_us <= known_us
            and (each.pod_uid not in pods or _had_nothing(pods[each.pod_uid], known_us))
        ),
    )


def _had_all_along(pod: PodRecord, known_us: int) -> int:
    """The µGPU of a pod that was bound by then and has not ended."""
    if pod.scheduled_us is None or pod.scheduled_us > known_us:
        return 0
    return sum(segment.quantity for segment in pod.segments if segment.end_us is None)


def _had_nothing(pod: PodRecord, known_us: int) -> bool:
    """Whether the pod had no GPUs any more by then."""
    return all(segment.end_us is not None and segment.end_us <= known_us for segment in pod.segments)
