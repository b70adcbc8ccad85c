"""The group that a pod belongs to, whether it is a gang, and what its labels and annotations say about it.

A gang is a group whose pods only work together: its framework, its scheduler or its Job says so. Deployments,
work queues and Ray clusters are none.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.frameworks.all import ATTEMPTS, GANG_KINDS, GROUPS, POD_GROUPS, POD_GROUPS_BY_TYPE, STATING
from gputally.frameworks.batch import JOB
from gputally.frameworks.core_pod_groups import API
from gputally.frameworks.framework import NO_STATED_GANG, GroupLabels, OnLoss, StatedGang
from gputally.frameworks.pod_group_kind import Declared
from gputally.frameworks.stated import count_of, first_of
from gputally.frameworks.volcano import is_for_one_owner, restarts_of
from gputally.model.kube.meta import Labels, Object
from gputally.model.kube.pods import NO_ANNOTATIONS, Texts
from gputally.model.pod_record import PodRecord

POD_GROUP: Final = "PodGroup"
"""The kind of a group that only its scheduler knows, and of its object."""
_FIRST_KEYS: Final = frozenset(each.keys[0] for each in GROUPS)
_IN_ANNOTATIONS: Final = tuple((each.api, each.annotations) for each in POD_GROUPS if each.annotations)
_IN_LABELS: Final = tuple((each.api, each.labels) for each in POD_GROUPS if each.labels)
_GROUP_NAMES: Final = frozenset(key for each in POD_GROUPS for key in each.labels)


class PodGroup(Struct, frozen=True, gc=False, cache_hash=True):
    """A group by its kind, namespace and name; `name` tells groups and their incarnations of one namespace apart."""

    kind: str
    namespace: str
    name: str
    on_loss: OnLoss


def group_of(record: PodRecord) -> PodGroup | None:
    """The group of a pod; None for a pod on its own."""
    if record.labels and (group := _labelled_group(record.namespace, record.labels)):
        return group
    if record.scheduling_group:
        return PodGroup(POD_GROUP, record.namespace, record.scheduling_group, OnLoss.WAIT)
    return None


@lru_cache(maxsize=4096)
def _labelled_group(namespace: str, kept: tuple[tuple[str, str], ...]) -> PodGroup | None:
    """The group that these kept labels name: one object for the pods of a job, which are asked about often."""
    labels = dict(kept)
    if not _FIRST_KEYS.isdisjoint(labels):
        for each in GROUPS:
            if each.keys[0] in labels and all(map(labels.get, each.keys)):
                return _group(each, namespace, labels)
    return None


def _group(found: GroupLabels, namespace: str, labels: Labels) -> PodGroup:
    name = "/".join([labels.get(key, "") for key in (*found.keys, *found.more)])
    return PodGroup(found.kind, namespace, name, found.on_loss)


def attempt_of(record: PodRecord) -> int:
    """How often its controller had restarted the whole group when it created the pod; 0 if that is not counted."""
    if record.restarts:
        return record.restarts
    for key, value in record.labels:
        if key in ATTEMPTS:
            return count_of(value)
    return 0


def job_uid_of(group: PodGroup) -> str:
    """The UID of the Job that controls the group; "" for other kinds."""
    return group.name.rpartition("/")[2] if group.kind == JOB else ""


def gang_of(record: PodRecord, *, reads_objects: bool = False) -> PodGroup | None:
    """The gang that the pod is in; the Job of a pod if that decides; None for a pod that works alone.

    A gang that its controller recreates as a whole is another one afterwards. Of a Volcano group without a stated size,
    only its object says whether it is a gang.
    """
    group = group_of(record)
    if group and group.kind in GANG_KINDS:
        attempt = attempt_of(record)
        return replace(group, name=f"{group.name}/{attempt}") if attempt else group
    if record.gang:
        return PodGroup(POD_GROUP, record.namespace, record.gang, OnLoss.WAIT)
    if record.pod_group and reads_objects:
        return PodGroup(POD_GROUP, record.namespace, record.pod_group.partition("/")[2], OnLoss.WAIT)
    if group and group.kind == JOB:
        return group
    return (
        PodGroup(POD_GROUP, record.namespace, record.scheduling_group, OnLoss.WAIT) if record.scheduling_group else None
    )


def key_of(group: PodGroup) -> str:
    """Identifies a gang among all; no name contains a slash."""
    return f"{group.kind}/{group.namespace}/{group.name}"


class StatedGroup(NamedTuple):
    """What a pod states about its group: see the fields of the same name of `PodRecord`."""

    gang: str = ""
    gang_size: int = 0
    pod_group: str = ""
    restarts: int = 0


_NOTHING_STATED: Final = StatedGroup()


def stated_group(labels: Labels, annotations: Texts | None) -> StatedGroup:
    """What labels and annotations of a pod state about its group: nothing, if none of them names one."""
    if annotations is None and _GROUP_NAMES.isdisjoint(labels):
        return _NOTHING_STATED
    gang, size = stated_gang(labels, annotations)
    return StatedGroup(gang, size, declaring_group(labels, annotations), restarts_of(annotations))


def stated_gang(labels: Labels, annotations: Texts | None) -> StatedGang:
    """The gang that the scheduler of such a pod binds at once, "" for none, and the stated size of any gang.

    The size is 0 if it is unknown.
    """
    if annotations is None and _GROUP_NAMES.isdisjoint(labels):
        return NO_STATED_GANG
    for states in STATING:
        if found := states(labels, annotations):
            return found
    return NO_STATED_GANG


def named_group(labels: Labels | None, annotations: Texts | None) -> str:
    """API group and name of the PodGroup that an annotation or a label of a pod names; "" for none."""
    if annotations and annotations != NO_ANNOTATIONS:
        for api, keys in _IN_ANNOTATIONS:
            if name := first_of(annotations, keys):
                return f"{api}/{name}"
    if labels and not _GROUP_NAMES.isdisjoint(labels):
        for api, keys in _IN_LABELS:
            if name := first_of(labels, keys):
                return f"{api}/{name}"
    return ""


def declaring_group(labels: Labels | None, annotations: Texts | None) -> str:
    """The group that the pod names, without those that say nothing: Volcano creates them for a single owner."""
    named = named_group(labels, annotations)
    if not named or annotations is None:
        return named
    return "" if is_for_one_owner(named, annotations) else named


def group_key(namespace: str, named: str, scheduling_group: str) -> str:
    """Identifies the PodGroup object that a pod names in either way, "" for none; no namespace contains a slash."""
    if named:
        api, _, name = named.partition("/")
        return f"{api}/{namespace}/{name}"
    return f"{API}/{namespace}/{scheduling_group}" if scheduling_group else ""


def key_for(record: PodRecord) -> str:
    """Identifies the PodGroup object that the record of a pod names, "" for none."""
    return group_key(record.namespace, record.pod_group, record.scheduling_group)


def declared_by(found: Object, *, at_us: int) -> Declared | None:
    """What a PodGroup says; None if it says nothing. Raises: MalformedObject for an impossible number of pods."""
    kind = POD_GROUPS_BY_TYPE.get(type(found))
    return kind.declared(found, at_us) if kind else None
