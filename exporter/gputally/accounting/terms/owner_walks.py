"""The owner lookups of all pods: known owners, requested ones, and the pods that wait for them."""

from collections.abc import Collection

from gputally.accounting.terms.job import chain, job_of, unknown_owner
from gputally.model.kube.meta import Owner
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord

_SPARE = 1000
"""Owners stored in addition to one per pod, before unused ones are dropped."""


class OwnerWalks:
    """`wanted` are the owners to look up, each with the UIDs of the waiting pods."""

    def __init__(self) -> None:
        self.wanted: dict[Owner, set[str]] = {}
        self._fresh: list[Owner] = []
        self._known: dict[Owner, OwnerResolved] = {}
        self._waits: dict[str, Owner] = {}

    def job(self, record: PodRecord) -> tuple[str, str, bool]:
        """(kind, name) of the pod's job from the known owners, and whether it waits for another owner.

        That owner is requested from now on.
        """
        owner = Owner(record.namespace, record.owner) if record.owner else None
        # An earlier process may have looked it up; the owner may be deleted by now.
        walked = record.job and owner and owner not in self._known
        if walked and not record.walking:
            return record.job_kind, record.job, record.uid in self._waits
        labels = dict(record.labels)
        if owner and (unknown := unknown_owner(labels, owner, self._known)):
            self._want(unknown, record.uid)
        kind, name = (record.job_kind, record.job) if walked else job_of(record.name, labels, owner, self._known)
        return kind, name, record.uid in self._waits

    def drain(self) -> list[Owner]:
        """The owners requested since the last call."""
        fresh, self._fresh = self._fresh, []
        return [owner for owner in fresh if owner in self.wanted]

    def learn(self, seen: OwnerResolved) -> set[str]:
        """Store a requested owner; returns the UIDs of the pods that waited for it."""
        waiting = self.wanted.pop(seen.owner, set())
        if waiting:
            self._known[seen.owner] = seen
        for uid in waiting:
            del self._waits[uid]
        return waiting

    def leave(self, uid: str) -> None:
        """A pod no longer waits; cancels the request if no other pod waits for that owner."""
        owner = self._waits.pop(uid, None)
        if owner:
            self.wanted[owner].discard(uid)
            if not self.wanted[owner]:
                del self.wanted[owner]

    def forget(self, records: Collection[PodRecord]) -> None:
        """Drop owners that none of these pods has, if there are many."""
        if len(self._known) > len(records) + _SPARE:
            starts = (Owner(record.namespace, record.owner) for record in records if record.owner)
            used = {owner for start in starts for owner in chain(start, self._known)}
            self._known = {owner: seen for owner, seen in self._known.items() if owner in used}

    def _want(self, owner: Owner, uid: str) -> None:
        if self._waits.get(uid) == owner:
            return
        self.leave(uid)
        if owner not in self.wanted:
            self._fresh.append(owner)
        self.wanted.setdefault(owner, set()).add(uid)
        self._waits[uid] = owner
