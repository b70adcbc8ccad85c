"""Verdicts by class: pending pods with equal needs in the same situation have the same one."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.needs import Needs, Situation
from gputally.model.verdicts import Reason, Verdict
from gputally.placement.candidates import accepts
from gputally.placement.needs import impersonal
from gputally.placement.room import Room
from gputally.placement.scheduler_text import unmodelled

MOST_CLASSES: Final = 400
"""Classes that are judged in one call at most."""
MOST_NODE_CHECKS: Final = 10_000
"""Nodes, or groups of them, after which the rest is left for the next call; each takes some microseconds."""
_MOST_CHANGED: Final = 100
"""Changed nodes for which it is worth to find out whom they matter to."""
_UNKNOWN: Final = Verdict(reason=Reason.UNKNOWN)
_BY_TEXT: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING)
"""The scheduler's message matters only for pods that seem to fit."""
Key = tuple[Needs, Situation]
Judge = Callable[[Needs, Room, Situation], Verdict]


class EquivalenceClass(Struct, eq=False):
    """Pods with equal needs in the same situation, without the scheduler's message.

    `priority` is that of the pods. `texts` has the verdicts by message, for those that depend on it.
    """

    needs: Needs
    situation: Situation
    members: dict[str, str]
    """The scheduler's message by UID."""
    verdict: Verdict = _UNKNOWN
    texts: dict[str, Verdict] = {}


class Verdicts:
    """The classes of pending pods; `of` has the class of each pod by UID."""

    def __init__(self, room: Room, judge: Judge) -> None:
        self.of: dict[str, EquivalenceClass] = {}
        self.classes: dict[Key, EquivalenceClass] = {}
        self._room = room
        self._judge = judge
        self._due: dict[EquivalenceClass, None] = {}
        """Classes to judge, in order."""
        self._unasked: dict[EquivalenceClass, None] = {}
        """Classes to which the nodes `_changed` may matter, in order."""
        self._changed: set[str] = set()

    @property
    def is_behind(self) -> bool:
        """Whether classes are still to be judged."""
        return bool(self._due or self._unasked)

    def put(self, uid: str, needs: Needs, situation: Situation) -> None:
        """A pod waits in this situation."""
        needs, text, bare = impersonal(needs), situation.text, replace(situation, text="")
        known = self.of.get(uid)
        if known and known.needs == needs and known.situation == bare:
            known.members[uid] = text
            return
        self.drop(uid)
        key = (needs, bare)
        found = self.classes.get(key)
        if found is None:
            found = self.classes[key] = EquivalenceClass(needs, bare, {})
            self._due[found] = None
        found.members[uid] = text
        self.of[uid] = found

    def drop(self, uid: str) -> None:
        """A pod waits no longer, or nothing is known about it."""
        if found := self.of.pop(uid, None):
            del found.members[uid]
            if not found.members:
                del self.classes[found.needs, found.situation]
                self._due.pop(found, None)
                self._unasked.pop(found, None)

    def renew(self, changed: Collection[str] | None) -> Iterator[str]:
        """Judge classes that are new, or for which one of the `changed` nodes matters; None if all may.

        Anyone may create pods that are all different, and that look at many nodes: each call looks at some MOST_LOOKS
        of them, and the next ones do the rest in turn. Until then, a pod keeps its last verdict.
        Yields the pods that may have another verdict.
        """
        end = self._room.answers.looked_at + MOST_NODE_CHECKS
        self._invalidate(changed)
        self._ask(end - MOST_NODE_CHECKS // 2)
        for _ in range(min(MOST_CLASSES, len(self._due))):
            del self._due[found := next(iter(self._due))]
            yield from self._renew(found)
            if self._room.answers.looked_at >= end:
                return

    def _invalidate(self, changed: Collection[str] | None) -> None:
        """Every class is asked about the changes, in turn: those that wait for that are asked about more."""
        if changed:
            self._changed.update(changed)
            self._unasked.update(dict.fromkeys(self.classes.values()))
        if changed is None or len(self._changed) > _MOST_CHANGED:
            self._due.update(dict.fromkeys(self.classes.values()))
            self._unasked.clear()

    def _ask(self, end: int) -> None:
        """Find out to which classes the changed nodes matter."""
        while self._unasked and self._room.answers.looked_at < end:
            found = next(iter(self._unasked))
            del self._unasked[found]
            self._room.answers.looked_at += 1
            if found not in self._due and any(accepts(found.needs, self._room, name) for name in self._changed):
                self._due[found] = None
        if not self._unasked:
            self._changed.clear()

    def _renew(self, found: EquivalenceClass) -> Collection[str]:
        before, found.verdict = found.verdict, self._judge(found.needs, self._room, found.situation)
        had_texts = bool(found.texts)
        found.texts.clear()
        return tuple(found.members) if had_texts or before != found.verdict else ()

    def verdict(self, uid: str) -> Verdict:
        """The verdict on a pod as of the last `renew`."""
        if (found := self.of.get(uid)) is None:
            return _UNKNOWN
        text = found.members[uid]
        if not unmodelled(text) or found.verdict.reason not in _BY_TEXT:
            return found.verdict
        if (known := found.texts.get(text)) is None:
            situation = replace(found.situation, text=text)
            known = found.texts[text] = self._judge(found.needs, self._room, situation)
        return known
