"""The runs of containers that ended while their pod went on, as the pod reports them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from gputally.accounting.facts.runs import is_possible
from gputally.model.kube.pods import Container, ContainerStatus, Pod, Terminated
from gputally.model.rules import Rules
from gputally.shares.schemes import rule_of

_SIDECAR: Final = "Always"
"""The restart policy of an init container that makes it one."""
_ALL: Final = "AllContainersRestarting"
"""The condition of a pod whose kubelet restarts all its containers in place; it is true until all are removed."""
_REMOVED: Final = "RestartingAllContainers"
"""The reason with which a kubelet replaces the last run of a container that it removed for that; it has no times.

Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses; pkg/kubelet/status/generate.go,
GenerateAllContainersRestartingCondition.
"""


class EndedRun(NamedTuple):
    """The last run of the containers that ended; `started_at` is None if the pod does not report it any more.

    `is_lost` says that what it did is to be done again: it failed, or was ended by the restart of all containers.
    """

    started_at: datetime | None
    finished_at: datetime
    exit_code: int | None
    is_lost: bool = True


class Restart(NamedTuple):
    """What a pod reports of its last restart: since when it runs again, None while it does not, and the run before.

    That is None if its end is not reported.
    """

    runs_since: datetime | None
    ended: EndedRun | None


def may_have_restarted(pod: Pod) -> bool:
    """Whether any container has had a run before, or all are being restarted; False for nearly all pods, and cheap."""
    status = pod.status
    for each in status.container_statuses or ():
        if each.last_state and each.last_state.terminated:
            return True
    for each in status.init_container_statuses or ():
        if each.last_state and each.last_state.terminated:
            return True
    for condition in status.conditions or ():  # noqa: SIM110 - without a generator, at each event of a pod
        if condition.type == _ALL and condition.status == "True":
            return True
    return False


def last_restart(pod: Pod, rules: Rules) -> Restart | None:
    """The last restart of the containers with GPUs; None without one, or if the pod does not show which run ended.

    Of several containers with GPUs, one that restarts alone says nothing about the work of the others: only the restart
    of all does. Containers that were lost with their node say nothing new.
    """
    statuses = _with_gpus(pod, rules)
    if statuses and all(map(_is_unknown, statuses)):
        return None
    lasts = [each.last_state.terminated for each in statuses if each.last_state and each.last_state.terminated]
    restarting = next((each for each in pod.status.conditions or () if each.type == _ALL), None)
    is_under_way = restarting is not None and restarting.status == "True"
    if is_under_way or any(each.reason == _REMOVED for each in lasts):
        at = restarting.last_transition_time if restarting else None
        if is_under_way:
            return Restart(None, _stopped(statuses, at))
        return Restart(_runs_since(statuses, pod), EndedRun(None, at, None) if at else None)
    if len(statuses) != 1 or not lasts:
        return None
    return Restart(_runs_since(statuses, pod), _ended(lasts[0], pod))


def _with_gpus(pod: Pod, rules: Rules) -> list[ContainerStatus]:
    """The statuses of main containers and sidecars that request GPUs; those of all main containers if none does."""
    spec, status = pod.spec, pod.status
    sidecars = [each for each in spec.init_containers or () if each.restart_policy == _SIDECAR]
    names = {each.name for each in (*spec.containers, *sidecars) if _requests_gpu(each, rules)}
    names = names or {each.name for each in spec.containers}
    known = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return [each for each in known if each.name in names]


def _requests_gpu(container: Container, rules: Rules) -> bool:
    resources = container.resources
    names = (*(resources.limits or ()), *(resources.requests or ())) if resources else ()
    return any(rule_of(name, rules) for name in names)


def _runs_since(statuses: list[ContainerStatus], pod: Pod) -> datetime | None:
    """The first start of the present runs; None as long as all containers wait: the others work while one does."""
    return min(_present_starts(statuses, pod), default=None)


def _present_starts(statuses: list[ContainerStatus], pod: Pod) -> Iterator[datetime]:
    for each in statuses:
        run = each.state and (each.state.running or each.state.terminated)
        if run and run.started_at and is_possible(run.started_at, pod):
            yield run.started_at


def _is_unknown(status: ContainerStatus) -> bool:
    """Whether the container was lost with its node: its present run has ended, and its times are not known.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, ContainerStatusUnknown.
    """
    ended = status.state.terminated if status.state else None
    return ended is not None and not (ended.started_at and ended.finished_at)


def _stopped(statuses: list[ContainerStatus], at: datetime | None) -> EndedRun | None:
    """The run that the restart of all containers at that time ended: of a container that had exited, before it."""
    if at is None:
        return None
    ended = [each.state.terminated if each.state else None for each in statuses]
    times = [run.finished_at if run and run.finished_at else at for run in ended]
    codes = [run.exit_code for run in ended if run]
    return EndedRun(None, max(times, default=at), codes[0] if codes else None)


def _ended(run: Terminated, pod: Pod) -> EndedRun | None:
    """The run of a container that restarted by itself; None without possible times."""
    if not (run.started_at and run.finished_at and is_possible(run.started_at, pod)):
        return None
    return EndedRun(run.started_at, run.finished_at, run.exit_code, is_lost=run.exit_code != 0)
