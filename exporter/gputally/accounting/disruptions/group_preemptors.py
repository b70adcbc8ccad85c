"""Groups of pods that wait: the scheduler may preempt pods for a whole group, and names its PodGroup."""

from typing import Final

from msgspec.structs import replace

from gputally.model.disruptions import Preemptor
from gputally.model.kube.pods import NO_ANNOTATIONS, Pod
from gputally.model.pod_record import PodRecord

POD_GROUP: Final = "PodGroup"
"""The kind of a preemptor that is a group, of scheduling.k8s.io or of KAI."""
KAI_GROUP: Final = "pod-group-name"
"""The annotation with which KAI-Scheduler names the PodGroup of a pod.

Source: kai-scheduler/KAI-Scheduler pkg/common/constants/constants.go, PodGroupAnnotationForPod.
"""
MOST: Final = 10_000
"""Limit of stored groups, of some 0.3 kB each."""
_LONGEST_NAME: Final = 253


class GroupPreemptors:
    """The pod of each group that was last observed before it was bound, by namespace and name of the PodGroup.

    Groups whose pods are all bound stay, since their victims may be observed later. Beyond the limit, the namespace
    with most groups loses the one whose pods were not observed for longest.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Preemptor]] = {}
        self._count = 0

    def seen(self, namespace: str, name: str, pod: Preemptor) -> None:
        """A pod of a group was observed that is not bound."""
        groups = self._pods.setdefault(namespace, {})
        self._count += groups.pop(name, None) is None
        groups[name] = pod
        if self._count > MOST:
            self._drop_one()

    def _drop_one(self) -> None:
        fullest = max(self._pods, key=lambda each: len(self._pods[each]))
        groups = self._pods[fullest]
        del groups[next(iter(groups))]
        self._count -= 1
        if not groups:
            del self._pods[fullest]

    def get(self, by: Preemptor) -> Preemptor:
        """The group `by` with tier and tenant, if a pod of it is known; a group may have a priority of its own."""
        pod = self._pods.get(by.namespace, {}).get(by.name)
        if pod is None:
            return by
        return replace(by, tier=pod.tier, tenant=pod.tenant, class_name=pod.class_name)

    def has_created(self, by: Preemptor, record: PodRecord) -> bool:
        """Whether a pod is one of the group, as far as its spec says so."""
        return bool(by.name) and (record.namespace, record.scheduling_group) == (by.namespace, by.name)


def group_named(pod: Pod) -> str:
    """The name of the PodGroup of a pod, "" for none."""
    if group := pod.spec.scheduling_group:
        return group.pod_group_name
    name = (pod.metadata.annotations or NO_ANNOTATIONS).get(KAI_GROUP) or ""
    return name if len(name) <= _LONGEST_NAME else ""


def as_group(*, namespace: str, name: str, uid: str = "") -> Preemptor:
    """A PodGroup as a preemptor of which nothing else is known."""
    return Preemptor(uid=uid, namespace=namespace, name=name, kind=POD_GROUP, quantity=None)
