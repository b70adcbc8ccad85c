"""Gangs: pods that their scheduler binds all at once, or not at all."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from gputally.accounting.waiting.scheduling_status import SchedulingStatus
from gputally.frameworks.all import POD_GROUPS_BY_API, REPORTED_SIZE
from gputally.frameworks.groups import group_key, named_group
from gputally.frameworks.pod_group_kind import Declared
from gputally.frameworks.stated import MOST_PODS, count_of
from gputally.frameworks.volcano import scheduled_task
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import NO_ANNOTATIONS
from gputally.model.needs import GangState, Needs, TaskState

Gang = str
"""The key of its PodGroup; see `group_key`."""
MOST_KINDS: Final = 16
"""Different needs of members that are told apart; real gangs have a few."""


def gang_of(pod: PlaceablePod) -> tuple[str, int]:
    """The gang that the scheduler of the pod waits for, "" for none, and how many pods of it must run, 0 if unknown."""
    group, named = pod.spec.scheduling_group, named_group(pod.metadata.labels, pod.metadata.annotations)
    key = group_key(pod.metadata.namespace, named, group.pod_group_name if group else "")
    if not key:
        return "", 0
    return key, min(count_of(_stated(pod, named)), MOST_PODS) or _reported(pod)


def _stated(pod: PlaceablePod, named: str) -> str:
    """The minimum in an annotation or a label of a pod that names a PodGroup, "" for none."""
    kind = POD_GROUPS_BY_API.get(named.partition("/")[0])
    if kind is None:
        return ""
    if kind.size_annotation:
        return (pod.metadata.annotations or NO_ANNOTATIONS).get(kind.size_annotation) or ""
    return (pod.metadata.labels or {}).get(kind.size_label, "")


def task_of(pod: PlaceablePod) -> str:
    """The task of a Volcano job that the pod is one of, as its scheduler reads it; "" for none, or an impossible name.

    An annotation may have 256 KiB, and is kept as long as the pod exists.
    """
    return scheduled_task(pod.metadata.labels, pod.metadata.annotations or NO_ANNOTATIONS)


def _display(gang: Gang) -> str:
    api, _, name = gang.split("/", 2)
    return f"{POD_GROUPS_BY_API[api].title} {name}"


def _reported(pod: PlaceablePod) -> int:
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.message and (match := REPORTED_SIZE.search(each.message)):
            return min(int(next(filter(None, match.groups()))), MOST_PODS)
    return 0


class _Pods(Struct):
    """The members of a gang by UID, and whether each is bound; how many are, and how many must be, 0 if unknown.

    `task_of` has those that are one of a task.
    """

    members: dict[str, bool]
    bound: int = 0
    least: int = 0
    task_of: dict[str, str] = field(default_factory=dict)


class Gangs:
    """The members of each gang: which of them are bound, and how many must be, as its PodGroup has `declared`.

    `changed` are gangs whose state may differ from when somebody last cleared it.
    """

    def __init__(self, declared: Mapping[Gang, Declared]) -> None:
        self.changed: set[Gang] = set()
        self._declared = declared
        self._pods: dict[Gang, _Pods] = {}
        self._gang_of: dict[str, Gang] = {}
        self._states: dict[tuple[Gang, bool], GangState | None] = {}
        """What all members share, by whether it is guessed from the silence of the scheduler."""

    def put(self, uid: str, gang: Gang, *, is_bound: bool, least: int, task: str = "") -> None:
        """A member was added or has changed, also from another gang."""
        if self._gang_of.get(uid, gang) != gang:
            self.drop(uid)
        pods = self._pods.get(gang) or self._pods.setdefault(gang, _Pods({}))
        if pods.members.get(uid) is not is_bound or (least and least != pods.least):
            pods.bound += is_bound - pods.members.get(uid, False)
            pods.members[uid] = is_bound
            pods.least = least or pods.least
            if task:
                pods.task_of[uid] = task
            self._gang_of[uid] = gang
            self._change(gang)

    def drop(self, uid: str) -> None:
        """A member has ended or is deleted, or belongs to no gang any more."""
        if gang := self._gang_of.pop(uid, None):
            pods = self._pods[gang]
            pods.bound -= pods.members.pop(uid)
            pods.task_of.pop(uid, None)
            if not pods.members:
                del self._pods[gang]
            self._change(gang)

    def redeclared(self, gangs: Iterable[Gang]) -> None:
        """Note gangs whose PodGroup objects are new, have changed or are gone."""
        for gang in gangs:
            if gang in self._pods:
                self._change(gang)

    def needs_changed(self, uid: str) -> None:
        """A pod needs something else, or waits no longer."""
        if gang := self._gang_of.get(uid):
            self._change(gang)

    def of(self, uid: str) -> Gang | None:
        """The gang of a pod."""
        return self._gang_of.get(uid)

    def pending(self, gang: Gang) -> Iterator[str]:
        """Members of the gang that are not bound."""
        pods = self._pods.get(gang)
        return (uid for uid, is_bound in pods.members.items() if not is_bound) if pods else iter(())

    def state(self, gang: Gang, statuses: Mapping[str, SchedulingStatus], *, is_silent: bool) -> GangState | None:
        """The gang as its scheduler sees it, one object for all of its members; None if its size is not known.

        Its scheduler is silent about the pods of a gang with too few members, so that these are fewer than must run.
        """
        key = (gang, is_silent and not self._pods[gang].least)
        if key not in self._states:
            least = self._least(gang, is_silent=is_silent)
            self._states[key] = self._state(gang, statuses, least=least) if least else None
        return self._states[key]

    def _least(self, gang: Gang, *, is_silent: bool) -> int:
        """How many pods must run; 0 if unknown. What its PodGroup declares precedes what its pods say.

        Members without GPUs are not known: if the scheduler does not say that members are missing, they exist.
        """
        pods = self._pods[gang]
        if declared := self._declared.get(gang):
            is_missing = pods.least or is_silent
            return declared.pods if is_missing else min(declared.pods, len(pods.members))
        return pods.least or (len(pods.members) + 1 if is_silent else 0)

    def _state(self, gang: Gang, statuses: Mapping[str, SchedulingStatus], *, least: int) -> GangState:
        pods = self._pods[gang]
        waiting = Counter[Needs]()
        for status in filter(None, map(statuses.get, self.pending(gang))):
            waiting[status.needs] += 1
            if len(waiting) > MOST_KINDS:
                break
        is_mixed = len(waiting) > MOST_KINDS
        return GangState(
            name=_display(gang),
            least=least,
            members=len(pods.members),
            bound=pods.bound,
            waiting=() if is_mixed else tuple(waiting.items()),
            is_mixed=is_mixed,
            tasks=tuple(self._tasks(gang, pods, statuses)),
        )

    def _tasks(self, gang: Gang, pods: _Pods, statuses: Mapping[str, SchedulingStatus]) -> Iterator[TaskState]:
        """The tasks of the gang with a minimum; those without any member have no GPUs."""
        declared = self._declared.get(gang)
        if declared is None or not declared.tasks:
            return
        members, waiting = Counter(pods.task_of.values()), defaultdict[str, list[str]](list)
        for uid, task in pods.task_of.items():
            if not pods.members[uid]:
                waiting[task].append(uid)
        for task, least in declared.tasks:
            if count := members[task]:
                needs = Counter(status.needs for status in filter(None, map(statuses.get, waiting[task])))
                yield TaskState(task, least, count, count - len(waiting[task]), tuple(needs.items()))

    def _change(self, gang: Gang) -> None:
        self.changed.add(gang)
        self._states.pop((gang, False), None)
        self._states.pop((gang, True), None)
