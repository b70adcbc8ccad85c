"""Up to when all is known of each kind, and what is to be told next."""

from collections.abc import Mapping

from gputally.model.kube import Kind
from gputally.model.observation import Checkpoint, RelistFinished

_DATED = (Kind.PODS, Kind.NODES)
"""Kinds of which it counts when something ended."""


class Coverage:
    """Where the watches have come to, those of an earlier process at first."""

    def __init__(self, resumes: Mapping[Kind, Checkpoint], *, accounting_start_us: int) -> None:
        self.resumes = dict(resumes)
        self._accounting_start_us = accounting_start_us
        self.is_listing = False
        """Whether any listing has begun and is not complete."""
        self._listing: dict[Kind, set[str]] = {}
        self._resumed: dict[Kind, Checkpoint] = {}
        self._interruptions: dict[tuple[Kind, int], int] = {}

    def begin(self, kind: Kind) -> None:
        """A listing begins."""
        self._listing[kind] = set()
        self.is_listing = True

    def note(self, kind: Kind, uid: str) -> None:
        """An object is there: it belongs to the listing under way, if there is one."""
        if kind in self._listing:
            self._listing[kind].add(uid)

    def complete(self, listed: RelistFinished) -> tuple[set[str], int]:
        """A listing is complete: the UIDs it has, and up to when all was known before."""
        since_us = self._complete_us(listed)
        if since_us < listed.at_us and listed.kind in _DATED:
            self._interruptions[listed.kind, since_us] = listed.at_us
        found = self._listing.pop(listed.kind, set())
        self.is_listing = bool(self._listing)
        return found, since_us

    def came_to(self, kind: Kind, resume: Checkpoint) -> bool:
        """All before that is known; False during a listing, whose items do not come in the order of their versions."""
        if kind in self._listing:
            return False
        self.resumes[kind] = self._resumed[kind] = resume
        return True

    def drain(self) -> tuple[dict[Kind, Checkpoint], dict[tuple[Kind, int], int]]:
        """What changed since the last call: where watches came to, and times nobody watched, as (kind, from) to end."""
        drained = self._resumed, self._interruptions
        self._resumed, self._interruptions = {}, {}
        return drained

    def _complete_us(self, listed: RelistFinished) -> int:
        """By the watch, or, when it is new, by what the process before had come to.

        One that came to nothing at least opened the books, since when everything should be known.
        """
        if listed.since_us is not None:
            return listed.since_us
        resume = self.resumes.get(listed.kind)
        return min(resume.at_us if resume else self._accounting_start_us, listed.at_us)
