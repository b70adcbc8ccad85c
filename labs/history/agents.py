"""What agents of the nodes would have told, so that the series of use are as many as they would be.

The trace has no utilisation: that every GPU was busy for half the time it was held, at 300 W, is invented. Agents are
asked every two minutes instead of 15 s, which leaves the number of samples as it is.
"""

from collections.abc import Iterator
from typing import Final

from gputally.model.kube import Kind
from gputally.model.measured.usage_report import AssignmentReport, Hour
from gputally.model.observation import Bookmark, Observation
from gputally.model.units import GPU
from labs.history.workload import Job
from tests.core.manifests import us
from tests.core.usage import gpu_us, usage

EVERY_S: Final = 120
_HOUR_S: Final = 3600
_HELD_PER_USED: Final = 2
_MILLIJOULES: Final = 300_000
"""In a second."""


class Agents:
    """All of them: tell them who holds what."""

    def __init__(self) -> None:
        self._assignment = dict[str, list[Job]]()

    def begin(self, job: Job) -> None:
        """It has its GPUs."""
        self._assignment.setdefault(job.node, []).append(job)

    def answers(self, second: int) -> Iterator[Observation]:
        """Of those that have anything to tell. The watch of pods has told all before."""
        yield Bookmark(kind=Kind.PODS, version="1", at_us=us(second), since_us=us(second))
        for node, jobs in self._assignment.items():
            if jobs:
                assignments = (_assignment(job, number, second) for job in jobs for number in range(job.gpus))
                yield usage(*assignments, at=second, node=node, watermark_us=us(second), allocations_us=None)
                jobs[:] = [job for job in jobs if job.end > second]


def _assignment(job: Job, number: int, second: int) -> AssignmentReport:
    """One of its GPUs in the hour that `second` is in or ends: what was told of earlier ones changes no more."""
    hour_s = (second - 1) // _HOUR_S * _HOUR_S
    from_s, to_s = max(job.start, hour_s), min(job.end, second)
    held, gpu = gpu_us(to_s - from_s), f"{job.name}-{number}"
    return AssignmentReport(
        device=gpu,
        gpu=gpu,
        namespace=job.tenant,
        pod=job.name,
        container="main",
        resource="nvidia.com/gpu",
        share=GPU,
        since_us=us(job.start),
        seen_us=us(to_s),
        until_us=us(job.end) if job.end <= second else None,
        hours=(
            Hour(
                start_us=us(hour_s),
                from_us=us(from_s),
                to_us=us(to_s),
                measured=held,
                used=held // _HELD_PER_USED,
                energy=(to_s - from_s) * _MILLIJOULES,
            ),
        ),
    )
