"""PodGroup objects: how many pods of a group its scheduler binds at once, and which pods name the group."""

from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct

from gputally.accounting.base.limits import KEPT, LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.frameworks.pod_group import count_of
from gputally.errors import MalformedObject
from gputally.model.kube.meta import Kind, Labels, Object, is_name
from gputally.model.kube.pod_groups import CorePodGroup, CoschedulingPodGroup, VolcanoPodGroup
from gputally.model.kube.pods import Texts
from gputally.model.pod_record import PodRecord
from gputally.model.units import dated_us

MOST_PODS: Final = 100_000
"""More pods than a gang has; anyone may state more."""
NO_GANG: Final = 1
"""The size of what is a gang by its labels alone."""
VOLCANO: Final = "scheduling.volcano.sh"
COSCHEDULING: Final = "scheduling.x-k8s.io"
CORE: Final = "scheduling.k8s.io"
GROUP_KINDS: Final = {
    Kind.VOLCANO_GROUPS: VOLCANO,
    Kind.COSCHEDULING_GROUPS: COSCHEDULING,
    Kind.CORE_GROUPS: CORE,
}
"""The watched kinds of PodGroups, with their API groups."""
VOLCANO_NAMES: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
COSCHEDULING_NAMES: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
)
"""Annotations and labels that name the group of a pod, the usual ones first."""
VOLCANO_SIZE: Final = "scheduling.volcano.sh/group-min-member"
COSCHEDULING_SIZE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""An annotation and a label that state a minimum."""
_OF_ONE_OWNER: Final = f"{VOLCANO}/podgroup-"
"""How the names of groups begin that Volcano creates for pods without one, by the UID of their owner.

They need one pod at a time, unless an annotation says otherwise. Source: volcano pkg/controllers/podgroup.
"""
_VOLCANO_JOBS: Final = "batch.volcano.sh/"
_LONGEST_NAME: Final = 253
MOST_TASKS: Final = 64
"""Tasks of one group; jobs have a few, and anyone may declare more."""


def named_group(labels: Labels | None, annotations: Texts | None) -> str:
    """API group and name of the PodGroup that an annotation or a label of a pod names; "" for none.

    Sources: volcano staging apis scheduling/v1beta1 (KubeGroupNameAnnotationKey, VolcanoGroupNameAnnotationKey);
    scheduler-plugins apis/scheduling (PodGroupLabel).
    """
    if name := first_of(annotations, VOLCANO_NAMES):
        return f"{VOLCANO}/{name}"
    name = first_of(labels, COSCHEDULING_NAMES)
    return f"{COSCHEDULING}/{name}" if name else ""


def declaring_group(labels: Labels | None, annotations: Texts | None) -> str:
    """The group that the pod names, without those that say nothing: Volcano creates them for a single owner."""
    named = named_group(labels, annotations)
    if annotations is None or not named.startswith(_OF_ONE_OWNER):
        return named
    return named if count_of(annotations.get(VOLCANO_SIZE) or "") > NO_GANG else ""


def group_key(namespace: str, named: str, scheduling_group: str) -> str:
    """Identifies the PodGroup object that a pod names in either way, "" for none; no namespace contains a slash."""
    if named:
        api, _, name = named.partition("/")
        return f"{api}/{namespace}/{name}"
    return f"{CORE}/{namespace}/{scheduling_group}" if scheduling_group else ""


def key_for(record: PodRecord) -> str:
    """Identifies the PodGroup object that the record of a pod names, "" for none."""
    return group_key(record.namespace, record.pod_group, record.scheduling_group)


def first_of(values: Texts | None, keys: tuple[str, ...]) -> str:
    """The first of the values that is the name of an object, "" for none."""
    if not values:
        return ""
    for key in keys:  # each new pod asks often: a generator takes twice the time
        if (name := values.get(key)) and len(name) <= _LONGEST_NAME:
            return name
    return ""


class Declared(Struct, frozen=True, gc=False):
    """How many `pods` a PodGroup needs at once, since `created_us`; with `tasks`, at least so many of each of these."""

    pods: int
    created_us: int
    tasks: tuple[tuple[str, int], ...] = ()


def declared_by(found: Object, *, at_us: int) -> Declared | None:
    """What a PodGroup says; None if it says nothing. Raises: MalformedObject for an impossible number of pods.

    A group without a gang is one whose pods are bound one by one. Volcano creates groups of one pod for whatever it
    schedules: only those of its own jobs say that one pod is enough.
    """
    match found:
        case VolcanoPodGroup(spec=spec) | CoschedulingPodGroup(spec=spec):
            pods = spec.min_member
        case CorePodGroup(spec=spec):
            gang = spec.scheduling_policy.gang
            pods = gang.min_count if gang else 0
        case _:
            pods = None
    if pods is None:
        return None
    meta = found.metadata
    if not 0 <= pods <= MOST_PODS:
        raise MalformedObject(meta.uid, f"PodGroup {meta.namespace}/{meta.name} needs {pods} pods")
    if isinstance(found, VolcanoPodGroup) and pods <= NO_GANG:
        owners = meta.owner_references or ()
        if not any(each.api_version.startswith(_VOLCANO_JOBS) for each in owners):
            return None
    tasks = _tasks_of(found, pods) if isinstance(found, VolcanoPodGroup) else ()
    return Declared(max(pods, NO_GANG), dated_us(meta.creation_timestamp, at_us), tasks)


def _tasks_of(found: VolcanoPodGroup, pods: int) -> tuple[tuple[str, int], ...]:
    """The minimum of each task. Volcano ignores them all if their sum exceeds the minimum of the group.

    Source: volcano pkg/scheduler/api/job_info.go, CheckTaskReady. Raises: MalformedObject for an impossible one.
    """
    declared, meta = found.spec.min_task_member or {}, found.metadata
    if len(declared) > MOST_TASKS or any(not 0 <= each <= MOST_PODS for each in declared.values()):
        raise MalformedObject(meta.uid, f"PodGroup {meta.namespace}/{meta.name} has impossible minimums of tasks")
    if sum(declared.values()) > pods:
        return ()
    return tuple(sorted((task, least) for task, least in declared.items() if least and is_name(task)))


class DeclaredGroups(StatePart[Struct]):
    """The PodGroups of one API. They are listed again at each start.

    `declares` receives each change of what a group says, None if it says nothing any more, and `listed_all` that all
    groups of the API are known.
    """

    name = "declared_group"

    def __init__(
        self, kind: Kind, declares: Callable[[str, Declared | None, int], None], listed_all: Callable[[str, int], None]
    ) -> None:
        self.kinds = (kind,)
        self._api = GROUP_KINDS[kind]
        self._declares = declares
        self._listed_all = listed_all
        self._key_of: dict[str, str] = {}
        """By UID, of groups that say something."""
        self._uid_of: dict[str, str] = {}
        self._limit = NamespaceLimit(KEPT[kind], lambda _, uid: self.gone(uid, at_us=self._now_us))
        self._now_us = 0

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        declared, meta = declared_by(found, at_us=at_us), found.metadata
        self._now_us = at_us
        if declared is None:
            self.gone(meta.uid, at_us=at_us)
            return
        if not self._limit.put(meta.namespace, meta.uid):
            return
        key = group_key(meta.namespace, f"{self._api}/{meta.name}", "")
        self._key_of[meta.uid], self._uid_of[key] = key, meta.uid
        self._declares(key, declared, at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`; a group of the same name may have replaced it."""
        key = self._key_of.pop(uid, "")
        if not key:
            return
        self._limit.remove(key.split("/")[1], uid)
        if self._uid_of.get(key) == uid:
            del self._uid_of[key]
            self._declares(key, None, at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._key_of.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
        self._listed_all(self._api, at_us)
