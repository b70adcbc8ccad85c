"""Simulates the reports of the node agents, to get a realistic number of usage series.

The trace has no utilisation, so every GPU is assumed busy for half of its allocated time, at 300 W. Agents are polled
every 2 minutes instead of 15 s, which does not change the number of samples.
"""

from collections.abc import Iterator
from typing import Final

from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, Observation
from gputally.model.units import GPU
from gputally.model.usage import AssignmentReport, Hour
from labs.history.workload import Job
from tests.core.manifests import us
from tests.core.usage import gpu_us, usage

EVERY_S: Final = 120
_HOUR_S: Final = 3600
_HELD_PER_USED: Final = 2
_MILLIJOULES: Final = 300_000
"""Energy per second."""


class Agents:
    """All agents of the cluster."""

    def __init__(self) -> None:
        self._assignment = dict[str, list[Job]]()

    def begin(self, job: Job) -> None:
        """Allocate the job's GPUs."""
        self._assignment.setdefault(job.node, []).append(job)

    def answers(self, second: int) -> Iterator[Observation]:
        """The reports of all agents with jobs. The pod watch is up to date before them."""
        yield Bookmark(kind=Kind.PODS, version="1", at_us=us(second), since_us=us(second))
        for node, jobs in self._assignment.items():
            if jobs:
                assignments = (_assignment(job, number, second) for job in jobs for number in range(job.gpus))
                yield usage(*assignments, at=second, node=node, watermark_us=us(second), allocations_us=None)
                jobs[:] = [job for job in jobs if job.end > second]


def _assignment(job: Job, number: int, second: int) -> AssignmentReport:
    """One GPU of the job in the hour that contains or ends at `second`; earlier hours no longer change."""
    hour_s = (second - 1) // _HOUR_S * _HOUR_S
    from_s, to_s = max(job.start, hour_s), min(job.end, second)
    allocated, gpu = gpu_us(to_s - from_s), f"{job.name}-{number}"
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
                measured=allocated,
                used=allocated // _HELD_PER_USED,
                energy=(to_s - from_s) * _MILLIJOULES,
            ),
        ),
    )
