"""Gangs: pods that their scheduler binds all at once, or not at all."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import GangState

Gang = tuple[str, str]
"""Namespace and name."""
_MOST: Final = 100_000
"""More pods than a gang has; anyone may state more."""
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
        return f"Volcano PodGroup {name}", _number(annotations.get(_VOLCANO_LEAST)) or _reported(pod)
    if name := _first(labels, _COSCHEDULING):
        return f"PodGroup {name}", _number(labels.get(_COSCHEDULING_LEAST)) or _reported(pod)
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


def _number(text: str | None) -> int:
    return min(int(text), _MOST) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004 - digits


class Gangs:
    """The members of each gang, by namespace and name: which of them are bound, and how many must be."""

    def __init__(self) -> None:
        self._members: dict[Gang, dict[str, bool]] = {}
        self._least: dict[Gang, int] = {}
        self._gang_of: dict[str, Gang] = {}

    def put(self, uid: str, gang: Gang, *, is_bound: bool, least: int) -> bool:
        """A member was added or has changed; returns whether that may matter to the others."""
        members = self._members.setdefault(gang, {})
        is_new = members.get(uid) is not is_bound or least > self._least.get(gang, 0)
        members[uid] = is_bound
        self._gang_of[uid] = gang
        if least:
            self._least[gang] = least
        return is_new

    def drop(self, uid: str) -> Gang | None:
        """A member has ended or is deleted; returns its gang."""
        if gang := self._gang_of.pop(uid, None):
            del self._members[gang][uid]
            if not self._members[gang]:
                del self._members[gang]
                self._least.pop(gang, None)
        return gang

    def of(self, uid: str) -> Gang | None:
        """The gang of a pod."""
        return self._gang_of.get(uid)

    def incomplete(self) -> Counter[bool]:
        """Gangs with pending members, by whether other members are bound and hold GPUs for nothing."""
        found = Counter[bool]()
        for members in self._members.values():
            bound = sum(members.values())
            if bound < len(members):
                found[bound > 0] += 1
        return found

    def pending(self, gang: Gang) -> Iterator[str]:
        """Its members that are not bound."""
        return (uid for uid, is_bound in self._members.get(gang, {}).items() if not is_bound)

    def state(self, gang: Gang, *, is_silent: bool, waiting: tuple[tuple[Needs, int], ...]) -> GangState | None:
        """The gang as its scheduler sees it; None if its size is not known.

        Its scheduler is silent about the pods of a gang with too few members, so that these are fewer than must run.
        """
        members = self._members.get(gang, {})
        least = self._least.get(gang, 0)
        if not least and is_silent:
            least = len(members) + 1
        if not least:
            return None
        return GangState(name=gang[1], least=least, members=len(members), bound=sum(members.values()), waiting=waiting)
