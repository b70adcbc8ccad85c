"""The job of a pod: from its framework's label, otherwise from its chain of controllers, which are looked up."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from gputally.frameworks.all import JOB_LABELS
from gputally.model.kube.meta import Owner
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord

TEMPLATE_HASH: Final = "pod-template-hash"
_RANKS: Final = {each.key: rank for rank, each in enumerate(JOB_LABELS)}
"""The place of a label among those that name jobs: the outermost framework comes first."""
_TOP = (("batch", "Job"), ("", "Job"))
"""Groups and kinds at which the walk stops: each run of a CronJob is a separate job. Imported owners have no group."""
_MOST_STEPS = 10
"""Limit of owners in a chain. Real ones have up to five; a tenant can create any number."""

Owners = Mapping[Owner, OwnerResolved]
_SPARE = 1000
"""Owners stored in addition to one per pod, before unused ones are dropped."""


def job_of(name: str, labels: Mapping[str, str], owner: Owner | None, owners: Owners) -> tuple[str, str]:
    """(kind, name) of the job: the last known owner; the pod itself without owners."""
    if labelled := _labelled(labels):
        return labelled
    if owner is None:
        return "Pod", name
    reference = owner.reference
    if reference.kind == "ReplicaSet" and labels.get(TEMPLATE_HASH):
        return "Deployment", reference.name.removesuffix(f"-{labels[TEMPLATE_HASH]}")
    top = list(chain(owner, owners))[-1].reference
    return top.kind, top.name


def unknown_owner(labels: Mapping[str, str], owner: Owner | None, owners: Owners) -> Owner | None:
    """The next owner to look up; None if the walk is complete or not needed."""
    if owner is None or _labelled(labels):
        return None
    if owner.reference.kind == "ReplicaSet" and labels.get(TEMPLATE_HASH):
        return None
    steps = list(chain(owner, owners))
    last = steps[-1]
    ended = _is_top(last) or last in owners or len(steps) == _MOST_STEPS
    return None if ended else last


def _labelled(labels: Mapping[str, str]) -> tuple[str, str] | None:
    if _RANKS.keys().isdisjoint(labels):
        return None
    for rank in sorted([_RANKS[key] for key in labels if key in _RANKS]):
        label = JOB_LABELS[rank]
        if name := labels[label.key]:
            return label.kind, name
    return None


def chain(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """`owner` and its controllers, up to the top, the first unknown one, or the limit."""
    return islice(_steps(owner, owners), _MOST_STEPS)


def _steps(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """All of them; ends at a cycle."""
    step: Owner | None = owner
    passed: set[Owner] = set()
    while step and step not in passed:
        yield step
        passed.add(step)
        step = _parent(owners[step]) if step in owners and not _is_top(step) else None


def _is_top(owner: Owner) -> bool:
    return (owner.reference.api_version.rpartition("/")[0], owner.reference.kind) in _TOP


def _parent(seen: OwnerResolved) -> Owner | None:
    return Owner(seen.owner.namespace, seen.parent) if seen.parent else None


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
        if not walked and (labelled := _labelled(labels)):
            return *labelled, record.uid in self._waits
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
