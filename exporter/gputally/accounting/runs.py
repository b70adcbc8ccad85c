"""Which runs of its containers a pod reports, and what shows that its kubelet took it up."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gputally.model.kube import ContainerStatus, Pod, Running, Terminated

_IMPOSSIBLE = timedelta(days=1)
"""No clock that a node's certificates let pass is further off."""


def starts(pod: Pod) -> Iterator[datetime]:
    """Starts of main containers, of this run and the one before."""
    for status in pod.status.container_statuses or ():
        for run in _runs(status):
            if run.started_at and is_possible(run.started_at, pod):
                yield run.started_at


def finishes(pod: Pod) -> Iterator[datetime]:
    """Ends of all containers, init containers and sidecars too: the last one releases the devices."""
    for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())):
        terminated = status.state.terminated if status.state else None
        if terminated and terminated.finished_at and is_possible(terminated.finished_at, pod):
            yield terminated.finished_at


def is_possible(time: datetime, pod: Pod) -> bool:
    """Whether a container of `pod` can have started or ended then: runtimes write a zero for what never happened.

    containerd writes 1970-01-01 as the start of a container that failed to start, and CRI-O a zero of Go in 1754.
    Source: github.com/containerd/containerd internal/cri/server/container_status.go, toCRIContainerStatus.
    """
    created = pod.metadata.creation_timestamp
    return created is None or time > created - _IMPOSSIBLE


def is_accepted(pod: Pod) -> bool:
    """Whether the kubelet took the pod up, so that it has the devices. One that refuses a pod writes the time, too.

    Source: k8s.io/kubernetes pkg/kubelet/status/status_manager.go, updateStatusInternal.
    """
    status = pod.status
    return status.start_time is not None or status.phase in ("Running", "Succeeded") or any(starts(pod))


def _runs(status: ContainerStatus) -> Iterator[Running | Terminated]:
    for state in (status.state, status.last_state):
        if state and (run := state.running or state.terminated):
            yield run
