"""Gangs: pods that their scheduler binds all at once, or not at all."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.accounting.groups.pod_group import count_of
from gputally.accounting.waiting.plea import Plea
from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import GangState

Gang = tuple[str, str]
"""Namespace and name."""
_MOST: Final = 100_000
"""More pods than a gang has; anyone may state more."""
MOST_KINDS: Final = 16
"""Different needs of members that are told apart; real gangs have a few."""
_VOLCANO: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_VOLCANO_LEAST: Final = "scheduling.volcano.sh/group-min-member"
_COSCHEDULING: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_COSCHEDULING_LEAST: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
_LEAST: Final = re.compile(r"(\d{1,6}) minAvailable|minMember of group: (\d{1,6})|\d+/(\d{1,6}) tasks in gang")
"""How the schedulers of Volcano and of scheduler-plugins report the size of a gang.

Sources: volcano pkg/scheduler/api/job_info.go and plugins/gang/gang.go; scheduler-plugins pkg/coscheduling/core.
"""


def gang_of(pod: PlaceablePod) -> tuple[str, int]:
    """The gang that the scheduler of the pod waits for, "" for none, and how many pods of it must run, 0 if unknown."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    if name := _first(annotations, _VOLCANO):
        return f"Volcano PodGroup {name}", min(count_of(annotations.get(_VOLCANO_LEAST, "")), _MOST) or _reported(pod)
    if name := _first(labels, _COSCHEDULING):
        return f"PodGroup {name}", min(count_of(labels.get(_COSCHEDULING_LEAST, "")), _MOST) or _reported(pod)
    if (group := pod.spec.scheduling_group) and group.pod_group_name:
        return f"PodGroup {group.pod_group_name}", _reported(pod)
    return "", 0


def _reported(pod: PlaceablePod) -> int:
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.message and (match := _LEAST.search(each.message)):
            return min(int(next(filter(None, match.groups()))), _MOST)
    return 0


def _first(values: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((values[key] for key in keys if values.get(key)), "")


class _Pods(Struct):
    """The members of a gang by UID, and whether each is bound; how many are, and how many must be, 0 if unknown."""

    members: dict[str, bool]
    bound: int = 0
    least: int = 0


class Gangs:
    """The members of each gang, by namespace and name: which of them are bound, and how many must be.

    `changed` are gangs whose state may differ from when somebody last cleared it.
    """

    def __init__(self) -> None:
        self.changed: set[Gang] = set()
        self._pods: dict[Gang, _Pods] = {}
        self._gang_of: dict[str, Gang] = {}
        self._states: dict[tuple[Gang, bool], GangState | None] = {}
        """What all members share, by whether it is guessed from the silence of the scheduler."""

    def put(self, uid: str, gang: Gang, *, is_bound: bool, least: int) -> None:
        """A member was added or has changed, also from another gang."""
        if self._gang_of.get(uid, gang) != gang:
            self.drop(uid)
        pods = self._pods.get(gang) or self._pods.setdefault(gang, _Pods({}))
        if pods.members.get(uid) is not is_bound or (least and least != pods.least):
            pods.bound += is_bound - pods.members.get(uid, False)
            pods.members[uid] = is_bound
            pods.least = least or pods.least
            self._gang_of[uid] = gang
            self._change(gang)

    def drop(self, uid: str) -> None:
        """A member has ended or is deleted, or belongs to no gang any more."""
        if gang := self._gang_of.pop(uid, None):
            pods = self._pods[gang]
            pods.bound -= pods.members.pop(uid)
            if not pods.members:
                del self._pods[gang]
            self._change(gang)

    def needs_changed(self, uid: str) -> None:
        """A pod needs something else, or waits no longer."""
        if gang := self._gang_of.get(uid):
            self._change(gang)

    def of(self, uid: str) -> Gang | None:
        """The gang of a pod."""
        return self._gang_of.get(uid)

    def pending(self, gang: Gang) -> Iterator[str]:
        """Its members that are not bound."""
        pods = self._pods.get(gang)
        return (uid for uid, is_bound in pods.members.items() if not is_bound) if pods else iter(())

    def state(self, gang: Gang, pleas: Mapping[str, Plea], *, is_silent: bool) -> GangState | None:
        """The gang as its scheduler sees it, one object for all of its members; None if its size is not known.

        Its scheduler is silent about the pods of a gang with too few members, so that these are fewer than must run.
        """
        pods = self._pods[gang]
        key = (gang, is_silent and not pods.least)
        if key not in self._states:
            least = pods.least or (len(pods.members) + 1 if is_silent else 0)
            self._states[key] = self._state(gang, pleas, least=least) if least else None
        return self._states[key]

    def _state(self, gang: Gang, pleas: Mapping[str, Plea], *, least: int) -> GangState:
        pods = self._pods[gang]
        waiting = Counter[Needs]()
        for plea in filter(None, map(pleas.get, self.pending(gang))):
            waiting[plea.needs] += 1
            if len(waiting) > MOST_KINDS:
                break
        is_mixed = len(waiting) > MOST_KINDS
        return GangState(
            name=gang[1],
            least=least,
            members=len(pods.members),
            bound=pods.bound,
            waiting=() if is_mixed else tuple(waiting.items()),
            is_mixed=is_mixed,
        )

    def _change(self, gang: Gang) -> None:
        self.changed.add(gang)
        self._states.pop((gang, False), None)
        self._states.pop((gang, True), None)
