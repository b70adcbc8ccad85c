"""What pods call the Workload of Kueue that they belong to."""

from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from gputally.accounting.base.state_part import StatePart
from gputally.frameworks.kubeflow import JOB_KINDS, TRAINING_JOB
from gputally.frameworks.kueue import WORKLOAD, workload_named
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Meta, Object, controller_of
from gputally.model.kube.pods import Pod
from gputally.model.pod_record import PodRecord

Name = tuple[str, str, str]
"""Namespace, kind and name."""


class WorkloadName(Struct, frozen=True, kw_only=True, gc=False):
    """A Workload, and the job that owns it; a group of pods has none."""

    uid: str
    namespace: str
    name: str
    owner_kind: str
    owner_name: str
    owner_uid: str

    @property
    def names(self) -> Iterator[Name]:
        """What pods may call it: the Workload, its owner by UID, or its owner by name."""
        yield self.namespace, WORKLOAD, self.name
        if self.owner_uid:
            yield self.namespace, "", self.owner_uid
            yield self.namespace, self.owner_kind, self.owner_name
        if self.owner_kind in JOB_KINDS:
            yield self.namespace, TRAINING_JOB, self.owner_name


def name_of(meta: Meta) -> dict[str, Any]:
    """The fields of `WorkloadName`."""
    owner = controller_of(meta.owner_references)
    return {
        "uid": meta.uid,
        "namespace": meta.namespace,
        "name": meta.name,
        "owner_kind": owner.kind if owner else "",
        "owner_name": owner.name if owner else "",
        "owner_uid": owner.uid if owner else "",
    }


class PodWorkloads(StatePart[Struct]):
    """The Workload that a pod names, by the UID of the pod."""

    name = "pod_workload"
    kinds = (Kind.PODS,)

    def __init__(self) -> None:
        self.workload_of: dict[str, str] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not isinstance(found, Pod):
            return
        if name := workload_named(found.metadata.labels, found.metadata.annotations):
            self.workload_of[found.metadata.uid] = name

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`; comes after its disruption was judged."""
        self.workload_of.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.workload_of.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def is_of(self, workload: WorkloadName, record: PodRecord) -> bool:
        """Whether the pod belongs to the Workload: it names it, or the job that owns it has created the pod."""
        if record.namespace != workload.namespace:
            return False
        if own := self.workload_of.get(record.uid):
            return own == workload.name
        owner = record.owner
        if owner and owner.kind == workload.owner_kind:
            return owner.uid == workload.owner_uid
        return record.full_job in workload.names
