"""The container runs that a pod reports, and whether its kubelet accepted the pod."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from gputally.model.kube.pods import ContainerStatus, Pod, Running, Terminated

_IMPOSSIBLE = timedelta(days=1)
"""Certificate checks fail on nodes whose clocks are further off."""


def starts(pod: Pod, statuses: Iterable[ContainerStatus] | None = None) -> list[datetime]:
    """Start times of the main containers, or of those with these statuses, of the current and the previous run."""
    found: list[datetime] = []
    for status in statuses or pod.status.container_statuses or ():
        for state in (status.state, status.last_state):
            run = (state.running or state.terminated) if state else None
            if run and run.started_at and is_possible(run.started_at, pod):
                found.append(run.started_at)
    return found


def finished_at(pod: Pod) -> datetime | None:
    """When a terminal pod's last container ended, including init containers and sidecars: that releases the devices.

    None while a container that ran, or should have run, has no end. A phase may be terminal although containers run or
    wait for a restart: PodGC sets the phase when a node is gone, and keeps the last container states of the kubelet.
    `ContainerStatusUnknown`, which a kubelet sets for containers that it cannot find, has no times. After a pod's
    initialization, all main containers should have run. After their end, waiting sidecars do not run again.

    Source: k8s.io/kubernetes pkg/controller/podgc/gc_controller.go, markFailedAndDeletePodWithCondition;
    pkg/kubelet/status/status_manager.go, TerminatePod and hasPodInitialized.
    """
    mains, inits = pod.status.container_statuses or (), pod.status.init_container_statuses or ()
    ends = [_finish(each, pod) for each in (*mains, *inits)]
    if None in ends:
        unknown = [each for each, end in zip((*mains, *inits), ends, strict=True) if end is None]
        if any(_ran(each, pod) for each in unknown) or (None in ends[: len(mains)] and _has_initialized(pod)):
            return None
    return max(filter(None, ends), default=None)


def _has_initialized(pod: Pod) -> bool:
    return any(each.type == "Initialized" and each.status == "True" for each in pod.status.conditions or ())


def starts_again(pod: Pod) -> bool:
    """Whether the pod's restart policy would have restarted the containers of this terminal pod.

    Source: k8s.io/kubernetes pkg/kubelet/container/helpers.go, ShouldContainerBeRestarted.
    """
    policy = pod.spec.restart_policy
    if policy != "Always" and (policy != "OnFailure" or pod.status.phase != "Failed"):
        return False
    return not any(container.restart_policy for container in pod.spec.containers)


def _ran(status: ContainerStatus, pod: Pod) -> bool:
    runs = [state.running or state.terminated for state in (status.state, status.last_state) if state]
    return any(run and _has_started(run, pod) for run in runs)


def _finish(status: ContainerStatus, pod: Pod) -> datetime | None:
    """The end of the last run; None if it has not ended, is unknown, or another run was to follow."""
    state = status.state
    run = state.terminated if state and (state.running or state.terminated) else _last_run(status, pod)
    return run.finished_at if run and run.finished_at and is_possible(run.finished_at, pod) else None


def _last_run(status: ContainerStatus, pod: Pod) -> Terminated | None:
    """The previous run of a waiting container that will not restart because all main containers have ended."""
    last, mains = status.last_state.terminated if status.last_state else None, pod.status.container_statuses
    if not (last and mains and _has_started(last, pod)):
        return None
    return last if all(each.state and each.state.terminated for each in mains) else None


def _has_started(run: Running | Terminated, pod: Pod) -> bool:
    """Whether the container ran; its start time may be unknown."""
    return run.started_at is None or is_possible(run.started_at, pod)


def is_possible(time: datetime, pod: Pod) -> bool:
    """Whether a container of `pod` can have started or ended at `time`: runtimes write zero for what never happened.

    For a container that failed to start, containerd writes 1970-01-01 and CRI-O Go's zero time, in 1754.
    Source: github.com/containerd/containerd internal/cri/server/container_status.go, toCRIContainerStatus.
    """
    created = pod.metadata.creation_timestamp
    return created is None or created - time < _IMPOSSIBLE


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))


def is_cleared(pod: Pod) -> bool:
    """Whether its kubelet has removed its conditions and the statuses of its containers, as it does in a rejection.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, rejectPod.
    """
    return pod.status.start_time is not None and not _containers(pod)


def is_accepted(pod: Pod, *, is_rejected: bool) -> bool:
    """Whether this state shows that the kubelet accepted the pod, so that it holds devices.

    A start time alone does not show it: a kubelet sets it in the status of every pod that it rejects, and a kubelet
    that restarts first writes that status with the phase `Pending`. Only a status with containers is that of a pod
    which it accepted. A rejection removes them, so acceptance is read from an earlier state.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, rejectPod; pkg/kubelet/status/status_manager.go,
    updateStatusInternal and mergePodStatus.
    """
    status = pod.status
    if status.phase in ("Running", "Succeeded"):
        return True
    containers = _containers(pod)
    if starts(pod, containers):
        return True
    return status.start_time is not None and bool(containers) and not is_rejected
