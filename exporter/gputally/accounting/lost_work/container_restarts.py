"""Finds the runs of containers that ended while their pod went on, so that their work was lost without a new pod."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.facts import lifetime
from gputally.accounting.facts.node_clock import true_times
from gputally.accounting.facts.runs import is_possible
from gputally.accounting.jobs.checkpoints import Checkpoints, stated_by
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import Container, ContainerStatus, Pod, Terminated
from gputally.model.lost_work import WorkCheckpoint
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.shares.schemes import rule_of

_SIDECAR: Final = "Always"
"""The restart policy of an init container that makes it one."""
ALL_RESTARTING: Final = "AllContainersRestarting"
"""The condition of a pod whose kubelet restarts all its containers in place; it is true until all are removed."""
_REMOVED: Final = "RestartingAllContainers"
"""The reason with which a kubelet replaces the last run of a container that it removed for that; it has no times.

Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses; pkg/kubelet/status/generate.go,
GenerateAllContainersRestartingCondition.
"""
_START: Final = ""
"""The key of the document whose `until_us` is when the ledger began to account restarts."""
WAITING: Final = 1 << 62
"""A time after all others, as long as containers wait for their next run."""


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
        if condition.type == ALL_RESTARTING and condition.status == "True":
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
    restarting = next((each for each in pod.status.conditions or () if each.type == ALL_RESTARTING), None)
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


class PodRuns(Struct, frozen=True, gc=False):
    """The containers of a pod run since `since_us`, which is `WAITING` while they do not; the run before ended.

    It ended at `until_us`, 0 if that is not known. Times are µs.
    """

    uid: str
    since_us: int
    until_us: int = 0


class LostRun(NamedTuple):
    """The work of a pod from `from_us` to `to_us` (µs) was lost as a container failed, or all were restarted.

    `saved` is the last checkpoint in that time that the pod had stated by then, or states together with its restart.
    It was noticed at `noticed_us`.
    """

    uid: str
    from_us: int
    to_us: int
    exit_code: int | None
    noticed_us: int
    saved: WorkCheckpoint | None = None


class ContainerRestarts(KeyedPart[PodRuns]):
    """The last restart of each existing pod with GPUs whose containers have restarted, by UID.

    It comes before `checkpoints`: what a pod states together with its restart may be of the next run.
    """

    name = "container_restart"
    kinds = (Kind.PODS,)

    def __init__(self, pods: Mapping[str, PodRecord], checkpoints: Checkpoints, rules: Rules) -> None:
        super().__init__()
        self.fresh: set[str] = set()
        """UIDs of pods that restarted or run again, until `LostWorkPart` has taken them up."""
        self.lost: dict[str, list[LostRun]] = {}
        """Runs that are not accounted yet, by UID of the pod."""
        self.known_pods = self.known
        self._pods = pods
        self._checkpoints = checkpoints
        self._rules = rules
        self._start_us = 0
        """Runs that ended before are not accounted: the accounting began then."""
        self._is_start_written = True

    def since_us(self, uid: str) -> int | None:
        """Since when the containers of a pod that has restarted run (µs), `WAITING` while they do not; else None."""
        known = self.known.get(uid)
        return known.since_us if known else None

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        record = self._pods.get(found.metadata.uid)
        if record is not None and isinstance(found, Pod) and may_have_restarted(found):
            self._take(found, record, at_us)

    def last_seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.last_seen`; the record does not have that state yet: it may be the first with a start."""
        record = self._pods.get(found.metadata.uid)
        if record is not None and isinstance(found, Pod) and may_have_restarted(found):
            self._take(found, lifetime.seen(record, found, at_us=at_us, since_us=at_us), at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._remove(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def drain(self) -> dict[str, PodRuns | None]:
        """See `StatePart.drain`."""
        changed = super().drain()
        if not self._is_start_written:
            changed[_START] = PodRuns(_START, since_us=0, until_us=self._start_us)
            self._is_start_written = True
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        super().touch_all()
        self._is_start_written = False

    def restore(self, documents: Iterable[PodRuns], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            by_now = no_later(each, at_us, "until_us")
            self.known[each.uid] = by_now if by_now.since_us == WAITING else no_later(by_now, at_us, "since_us")
        start = self.known.pop(_START, None)
        self._start_us, self._is_start_written = start.until_us if start else at_us, start is not None
        self.fresh.update(self.known)

    def _take(self, found: Pod, record: PodRecord, at_us: int) -> None:
        restart = last_restart(found, self._rules)
        if restart is None or record.started_us is None:  # what only failed to start has not run
            return
        known = self.known.get(record.uid, PodRuns(record.uid, record.started_us))
        until_us = known.until_us
        if restart.ended and (run := _lost_run(record, known, restart.ended, at_us)):
            until_us = run.to_us
            if restart.ended.is_lost and run.to_us > self._start_us:
                self.lost.setdefault(record.uid, []).append(self._with_checkpoint(run, found, at_us))
        since_us = _true_us(restart.runs_since, record, at_us) if restart.runs_since else WAITING
        if since_us < until_us:  # a pod that ends while it waits reports the run before as its last one
            since_us = WAITING
        self._keep(PodRuns(record.uid, since_us, until_us))

    def _with_checkpoint(self, run: LostRun, pod: Pod, at_us: int) -> LostRun:
        known = self._checkpoints.of(run.uid).stated
        stated = [*stated_by(pod, at_us=at_us), *((known,) if known else ())]
        before = [each for each in stated if each.at_us <= run.to_us]
        return run._replace(saved=max(before, key=lambda each: each.at_us, default=None))

    def _keep(self, new: PodRuns) -> None:
        if new != self.known.get(new.uid):
            self._store(new.uid, new)
            self.fresh.add(new.uid)


def _lost_run(record: PodRecord, known: PodRuns, ended: EndedRun, at_us: int) -> LostRun | None:
    """The run of a pod that ended; None if it is known."""
    to_us = _true_us(ended.finished_at, record, at_us)
    from_us = _true_us(ended.started_at, record, at_us) if ended.started_at else known.since_us
    if to_us <= known.until_us or from_us >= to_us:
        return None
    return LostRun(record.uid, max(from_us, known.until_us), to_us, ended.exit_code, at_us)


def _true_us(time: datetime, record: PodRecord, at_us: int) -> int:
    return min(true_times(to_us(time), record.clock)[0], at_us)
