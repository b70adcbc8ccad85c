"""The owner walks of all pods: which owners are known, which are wanted, and which pods wait for them."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from gputally.accounting.job import chain, job_of, unknown_owner
from gputally.model.observation import OwnerSeen
from gputally.model.pod import PodRecord

if TYPE_CHECKING:
    from gputally.model.kube import OwnerReference

_SPARE = 1000
"""Owners remembered beyond one for each pod, before those of no pod are forgotten."""


class OwnerWalks:
    """`wanted` are the owners to fetch, with the namespace they are in, by UID."""

    def __init__(self) -> None:
        self.wanted: dict[str, tuple[OwnerReference, str]] = {}
        self._known: dict[str, OwnerSeen] = {}
        self._waiting: dict[str, set[str]] = {}

    def job(self, record: PodRecord) -> tuple[str, str]:
        """(kind, name) of the pod's job as far as the walk has come; what it needs to go on is wanted from now on."""
        if record.job and record.owner and record.owner.uid not in self._known:
            return record.job_kind, record.job  # an earlier process walked already; the owner may be gone by now
        labels = dict(record.labels)
        owner = unknown_owner(labels, record.owner, self._known)
        if owner:
            self.wanted[owner.uid] = (owner, record.namespace)
            self._waiting.setdefault(owner.uid, set()).add(record.uid)
        return job_of(record.name, labels, record.owner, self._known)

    def learn(self, owner: OwnerSeen) -> set[str]:
        """Remember an owner; returns the UIDs of the pods whose walks waited for it."""
        self._known[owner.uid] = owner
        self.wanted.pop(owner.uid, None)
        return self._waiting.pop(owner.uid, set())

    def forget(self, records: Collection[PodRecord]) -> None:
        """Forget the owners of none of these pods, once they are many."""
        if len(self._known) > len(records) + _SPARE:
            used = {uid for record in records for uid in chain(record.owner, self._known)}
            self._known = {uid: owner for uid, owner in self._known.items() if uid in used}
