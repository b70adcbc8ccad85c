"""How far each watch is complete, and where it resumes."""

from collections.abc import Mapping

from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint, RelistFinished

_DATED = (Kind.PODS, Kind.NODES)
"""Kinds whose objects have an end that the accounting needs."""


class Coverage:
    """The checkpoints of the watches, initially those of an earlier process."""

    def __init__(self, resumes: Mapping[Kind, Checkpoint], *, accounting_start_us: int) -> None:
        self.resumes = dict(resumes)
        self._accounting_start_us = accounting_start_us
        self.is_listing = False
        """Whether any list is in progress."""
        self._listing: dict[Kind, set[str]] = {}
        self._updated_resumes: dict[Kind, Checkpoint] = {}
        self._interruptions: dict[tuple[Kind, int], int] = {}

    def begin(self, kind: Kind) -> None:
        """A list of `kind` begins."""
        self._listing[kind] = set()
        self.is_listing = True

    def note(self, kind: Kind, uid: str) -> None:
        """Add an observed object to the list in progress, if there is one."""
        if kind in self._listing:
            self._listing[kind].add(uid)

    def complete_us(self, kind: Kind) -> int:
        """Up to when the watch of a kind was complete at its last bookmark, change or list; 0 if it never was."""
        resume = self.resumes.get(kind)
        return resume.at_us if resume else 0

    def complete(self, listed: RelistFinished) -> tuple[set[str], int]:
        """A list is complete: returns its UIDs, and up to when the watch was complete before."""
        since_us = self._complete_us(listed)
        if since_us < listed.at_us and listed.kind in _DATED:
            self._interruptions[listed.kind, since_us] = listed.at_us
        uids = self._listing.pop(listed.kind, set())
        self.is_listing = bool(self._listing)
        return uids, since_us

    def store_checkpoint(self, kind: Kind, resume: Checkpoint) -> bool:
        """Store a checkpoint; returns False during a list, whose items are not ordered by version."""
        if kind in self._listing:
            return False
        self.resumes[kind] = self._updated_resumes[kind] = resume
        return True

    def drain(self) -> tuple[dict[Kind, Checkpoint], dict[tuple[Kind, int], int]]:
        """Changes since the last call: checkpoints, and observation gaps as (kind, start) to end."""
        drained = self._updated_resumes, self._interruptions
        self._updated_resumes, self._interruptions = {}, {}
        return drained

    def _complete_us(self, listed: RelistFinished) -> int:
        """Up to when the watch was complete: by itself, or, when it is new, by the earlier process's checkpoint.

        Without a checkpoint, by the accounting start, since when everything should be known.
        """
        if listed.since_us is not None:
            return listed.since_us
        resume = self.resumes.get(listed.kind)
        return min(resume.at_us if resume else self._accounting_start_us, listed.at_us)
