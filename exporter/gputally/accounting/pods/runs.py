"""Which runs of its containers a pod reports, and what shows that its kubelet took it up."""

from datetime import datetime, timedelta

from gputally.model.kube import ContainerStatus, Pod, Running, Terminated

_IMPOSSIBLE = timedelta(days=1)
"""No clock that a node's certificates let pass is further off."""


def starts(pod: Pod) -> list[datetime]:
    """Starts of main containers, of this run and the one before."""
    return [
        run.started_at
        for status in pod.status.container_statuses or ()
        for state in (status.state, status.last_state)
        if state and (run := state.running or state.terminated) and run.started_at and is_possible(run.started_at, pod)
    ]


def finished_at(pod: Pod) -> datetime | None:
    """The end of a terminal pod's last container, init containers and sidecars too: that one releases the devices.

    None as long as one that ran, or should have, is without an end. A phase may be terminal although containers run on,
    or wait for their next run: PodGC sets it when a node is gone, and leaves their states as the kubelet wrote them
    last. `ContainerStatusUnknown`, which a kubelet writes for what it cannot find any more, comes without times. Once a
    pod has initialized, all its main containers should have run. Once they all ended, sidecars that wait are over.

    Source: k8s.io/kubernetes pkg/controller/podgc/gc_controller.go, markFailedAndDeletePodWithCondition;
    pkg/kubelet/status/status_manager.go, TerminatePod and hasPodInitialized.
    """
    mains, inits = pod.status.container_statuses or (), pod.status.init_container_statuses or ()
    ends = [_finish(each, pod) for each in (*mains, *inits)]
    if None in ends:
        unknown = [each for each, end in zip((*mains, *inits), ends, strict=True) if end is None]
        if any(_ran(each, pod) for each in unknown) or (None in ends[: len(mains)] and _has_initialized(pod)):
            return None
    return max([end for end in ends if end], default=None)


def _has_initialized(pod: Pod) -> bool:
    return any(each.type == "Initialized" and each.status == "True" for each in pod.status.conditions or ())


def starts_again(pod: Pod) -> bool:
    """Whether the kubelet of this terminal pod would have started its containers again, had nothing else ended it.

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
    """The end of the last run; None before that, if nobody knows it, or if another run was to follow."""
    state = status.state
    run = state.terminated if state and (state.running or state.terminated) else _last_run(status, pod)
    return run.finished_at if run and run.finished_at and is_possible(run.finished_at, pod) else None


def _last_run(status: ContainerStatus, pod: Pod) -> Terminated | None:
    """The run before of a container that waits, if that will not run again: all main containers are over."""
    last, mains = status.last_state.terminated if status.last_state else None, pod.status.container_statuses
    if not (last and mains and _has_started(last, pod)):
        return None
    return last if all(each.state and each.state.terminated for each in mains) else None


def _has_started(run: Running | Terminated, pod: Pod) -> bool:
    """Whether it ran, at a time that may have been lost."""
    return run.started_at is None or is_possible(run.started_at, pod)


def is_possible(time: datetime, pod: Pod) -> bool:
    """Whether a container of `pod` can have started or ended then: runtimes write a zero for what never happened.

    containerd writes 1970-01-01 as the start of a container that failed to start, and CRI-O a zero of Go in 1754.
    Source: github.com/containerd/containerd internal/cri/server/container_status.go, toCRIContainerStatus.
    """
    created = pod.metadata.creation_timestamp
    return created is None or created - time < _IMPOSSIBLE


def is_accepted(pod: Pod) -> bool:
    """Whether the kubelet took the pod up, so that it has the devices. One that refuses a pod writes the time, too.

    Source: k8s.io/kubernetes pkg/kubelet/status/status_manager.go, updateStatusInternal.
    """
    status = pod.status
    return status.start_time is not None or status.phase in ("Running", "Succeeded") or bool(starts(pod))
