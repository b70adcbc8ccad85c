"""The GPU jobs of the Helios trace as pods, one per row, and the GPU-seconds by tenant.

The trace's 15,000 jobs were submitted in 20 days, and the last one ends on day 37; no other 30 days have more GPU
jobs than the first 30. The trace has no nodes, GPU models or service classes. So there are enough 8-GPU nodes of one
model to start every job at its time in the trace, and no pod has a PriorityClass. A job larger than a node is one pod
on a node of that size, as in `gputally demo --trace`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from gputally_sim.trace.trace import MILLI_PER_GPU, OUTCOMES
from labs.history.window import Window
from tests.behaviour.traces import FOLDER, Row, rows_of

TRACE: Final = FOLDER / "helios15k_user.csv.gz"
GPUS_PER_NODE: Final = 8
KEPT_S: Final = 3600
"""Time that a pod is kept after its end, as with a Job's ttlSecondsAfterFinished."""


class Job(NamedTuple):
    """A pod with `gpus` of `node` from `start` to `end`, in seconds since the trace's start; it ends in `phase`."""

    name: str
    tenant: str
    gpus: int
    start: int
    end: int
    phase: str
    node: str

    @property
    def uid(self) -> str:
        """A UID of realistic length, identical in every run."""
        return str(uuid5(NAMESPACE_OID, self.name))

    @property
    def deleted(self) -> int:
        return self.end + KEPT_S

    def gpu_seconds(self, until: int) -> int:
        """GPU-seconds up to the second `until`."""
        return self.gpus * max(0, min(self.end, until) - self.start)


class Workload(NamedTuple):
    """Jobs by start time, and the number of GPUs of each node."""

    jobs: tuple[Job, ...]
    nodes: Mapping[str, int]

    def gpu_seconds(self, until: int) -> dict[str, int]:
        """True GPU-seconds by tenant up to the second `until`, without zeros."""
        sums: Counter[str] = Counter()
        for job in self.jobs:
            sums[job.tenant] += job.gpu_seconds(until)
        return {tenant: amount for tenant, amount in sums.items() if amount}

    def most_gpus(self, until: int) -> dict[str, int]:
        """Maximum concurrent GPUs by tenant."""
        changes: dict[str, Counter[int]] = {}
        for job in self.jobs:
            if job.start < until:
                of_tenant = changes.setdefault(job.tenant, Counter())
                of_tenant[job.start] += job.gpus
                of_tenant[job.end] -= job.gpus
        return {tenant: max(accumulate(deltas[at] for at in sorted(deltas))) for tenant, deltas in changes.items()}


def read(window: Window, trace: Path = TRACE) -> Workload:
    """The jobs that start in the window."""
    return _placed(sorted((row for row in rows_of(trace) if row.start < window.seconds), key=lambda row: row.start))


def _placed(rows: Iterable[Row]) -> Workload:
    """Place each job on the first node with free GPUs, and add a node if there is none."""
    free, sizes = dict[str, int](), dict[str, int]()
    ends: list[tuple[int, str, int]] = []
    jobs = list[Job]()
    for row in rows:
        while ends and ends[0][0] <= row.start:
            _, freed_node, freed = heappop(ends)
            free[freed_node] += freed
        gpus = row.milli // MILLI_PER_GPU
        node = next((name for name, room in free.items() if room >= gpus), None)
        if node is None:
            node = f"node-{len(sizes)}"
            free[node] = sizes[node] = max(GPUS_PER_NODE, gpus)
        free[node] -= gpus
        heappush(ends, (row.end, node, gpus))
        jobs.append(Job(row.name, row.tenant, gpus, row.start, row.end, OUTCOMES[row.status], node))
    return Workload(tuple(jobs), sizes)
