"""Generates the samples of kube-state-metrics v2.20 for the same pods and scrape times.

For each existing pod, these are all series needed to calculate GPU-hours by tenant, with their labels
(internal/store/pod.go, with --metric-labels-allowlist=pods=[team]; Prometheus with honor_labels). The many other
series of each pod are omitted, which favours the peer.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from labs.history.month import TEAM
from labs.history.window import Window
from labs.history.workload import Job, Workload
from tests.core.manifests import MIDNIGHT_S

LABELS: Final = {"job": "kube-state-metrics", "instance": "kube-state-metrics"}
PHASES: Final = ("Pending", "Succeeded", "Failed", "Unknown", "Running")


class Run(NamedTuple):
    """A series with a constant value in the scrapes from second `start` until before `end`."""

    prefix: str
    value: int
    start: int
    end: int


def files(window: Window, workload: Workload, into: Path) -> Iterator[Path]:
    """Write the scrapes as one OpenMetrics file per block; files are generated lazily."""
    for number, scrapes in enumerate(window.blocks()):
        moments = [f"{window.start_s + second}\n" for second in scrapes]
        path = into / f"peer-{number}.om"
        with path.open("w") as out:
            for job in workload.jobs:
                if job.start <= scrapes[-1] and job.deleted > scrapes[0]:
                    out.writelines(_samples(run, scrapes, moments) for run in _runs(job))
            out.writelines(f"up 1 {moment}" for moment in moments)
            out.write("# EOF\n")
        yield path


def _samples(run: Run, scrapes: range, moments: list[str]) -> str:
    head = f"{run.prefix} {run.value} "
    seen = moments[_place(run.start, scrapes) : _place(run.end, scrapes)]
    return head + head.join(seen) if seen else ""


def _place(second: int, scrapes: range) -> int:
    """Index of the first scrape at or after `second`."""
    return max(0, -(-(second - scrapes.start) // scrapes.step))


def _runs(job: Job) -> Iterator[Run]:
    """All series of a pod; a series whose value changes has two runs."""
    whole = (job.start, job.deleted)
    host = f"10.0.{int(job.node.removeprefix('node-'))}.1"
    named = {"node": job.node, "created_by_kind": "", "created_by_name": "", "priority_class": ""}
    yield Run(_series("kube_pod_info", job, host_ip=host, pod_ip=host, host_network="false", **named), 1, *whole)
    yield Run(_series("kube_pod_labels", job, **{f"label_{TEAM}": job.tenant}), 1, *whole)
    asked = {"container": "main", "node": job.node, "resource": "nvidia_com_gpu", "unit": "integer"}
    yield Run(_series("kube_pod_container_resource_requests", job, **asked), job.gpus, *whole)
    yield Run(_series("kube_pod_start_time", job), MIDNIGHT_S + job.start, *whole)
    yield Run(_series("kube_pod_completion_time", job), MIDNIGHT_S + job.end, job.end, job.deleted)
    for phase in PHASES:
        series = _series("kube_pod_status_phase", job, phase=phase)
        yield Run(series, int(phase == "Running"), job.start, job.end)
        yield Run(series, int(phase == job.phase), job.end, job.deleted)


def _series(name: str, job: Job, **labels: str) -> str:
    every: Mapping[str, str] = {"namespace": job.tenant, "pod": job.name, "uid": job.uid, **labels}
    inside = ",".join(f'{label}="{value}"' for label, value in every.items())
    return f"{name}{{{inside}}}"
