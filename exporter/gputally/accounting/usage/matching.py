"""Matches a kubelet's device assignments with pods, and finds where both sides differ.

Kubelets report only names, and StatefulSets reuse names.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gputally.model.allocation import Gap
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import AssignmentRecord

TOLERANCE_US = 5 * US_PER_SECOND
"""How far a device may be found held before its pod was bound, or after it ended: timestamps are cut to the second,
and the kubelet takes a moment."""
GRACE_US = 15 * US_PER_SECOND
"""One side may not know younger allocations yet: kubelets start pods, and are polled, seconds after their binding."""


def span_of(assignment: AssignmentRecord) -> tuple[int, int]:
    """The span in which the device was known to be assigned, by our clock."""
    since_us = assignment.key.since_us
    end_us = max(since_us, assignment.seen_us if assignment.until_us is None else assignment.until_us)
    return since_us - assignment.ahead_us, end_us - assignment.ahead_us


def owner(assignment: AssignmentRecord, pods: Iterable[PodRecord]) -> PodRecord | None:
    """The pod of that name on that node that had GPUs for most of the assignment's time; None without one."""
    from_us, to_us = span_of(assignment)
    name = (assignment.key.namespace, assignment.key.pod)
    found = [(_overlap(pod, from_us, to_us), pod) for pod in pods if (pod.namespace, pod.name) == name]
    fitting = [(overlap_us, start_us, pod) for (overlap_us, start_us), pod in found if overlap_us >= -TOLERANCE_US]
    return max(fitting, key=lambda each: each[:2])[2] if fitting else None


def allocation(pod: PodRecord) -> tuple[int, int | None] | None:
    """[start, end) in which the pod may have had its devices, including an observation gap; None if never."""
    if not pod.segments:
        return None
    end_us = None if any(s.end_us is None for s in pod.segments) else max(s.end_us or 0 for s in pod.segments)
    if end_us is not None and pod.gap:
        end_us = max(end_us, pod.gap.to_us)
    return min(s.start_us for s in pod.segments), end_us


def narrowed(gap: Gap, assignments: Sequence[AssignmentRecord]) -> Gap:
    """The end of a pod with these assignments: after each was last seen, and before the last was found released."""
    from_us = max((each.seen_us - each.ahead_us for each in assignments), default=gap.from_us)
    from_us = min(max(from_us, gap.from_us), gap.to_us)
    gone_us = [each.until_us - each.ahead_us for each in assignments if each.until_us is not None]
    to_us = max(gone_us) if gone_us and len(gone_us) == len(assignments) else gap.to_us
    return Gap(from_us=from_us, to_us=min(max(to_us, from_us), gap.to_us))


def _overlap(pod: PodRecord, from_us: int, to_us: int) -> tuple[int, int]:
    """The overlap of both spans, negative for the distance between them, and the pod's start."""
    held = allocation(pod)
    if held is None:
        return -TOLERANCE_US - 1, 0
    start_us, end_us = held
    return (to_us if end_us is None else min(to_us, end_us)) - max(from_us, start_us), start_us


class Difference(Struct, frozen=True, kw_only=True, gc=False):
    """µGPU of one node that only one side reports as allocated, as of `at_us`; `pool` is the exported pool label."""

    pool: str
    at_us: int
    api_only: int
    device_only: int


def difference(
    pods: Mapping[str, PodRecord], assignments: Iterable[AssignmentRecord], *, pool: str, reported_us: int, at_us: int
) -> Difference:
    """Compare both sides at `reported_us`, the time of the kubelet's report; ignore what began or ended just before.

    Only the presence of a pod counts, not its quantity: a slice's share depends on how it is weighted.
    """
    known_us = reported_us - GRACE_US
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
