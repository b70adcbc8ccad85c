"""Verdicts by class: pending pods with equal needs in the same situation have the same one."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Reason, Verdict
from gputally.placement.candidates import candidates_for
from gputally.placement.room import Room
from gputally.placement.scheduler_text import unmodelled

MOST_CLASSES: Final = 400
"""Classes that are judged at once; each takes some 0.1 to 0.5 ms."""
_UNKNOWN: Final = Verdict(reason=Reason.UNKNOWN)
_BY_TEXT: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING)
"""The scheduler's message matters only for pods that seem to fit."""
Key = tuple[Needs, Situation]
Judge = Callable[[Needs, Room, Situation], Verdict]


class WaitClass(Struct):
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
        self.of: dict[str, WaitClass] = {}
        self.classes: dict[Key, WaitClass] = {}
        self._room = room
        self._judge = judge
        self._due: dict[Key, None] = {}
        """Classes to judge, in order."""

    @property
    def is_behind(self) -> bool:
        """Whether classes are still to be judged."""
        return bool(self._due)

    def put(self, uid: str, needs: Needs, situation: Situation) -> None:
        """A pod waits in this situation."""
        needs, text, bare = _impersonal(needs), situation.text, replace(situation, text="")
        known = self.of.get(uid)
        if known and known.needs == needs and known.situation == bare:
            known.members[uid] = text
            return
        self.drop(uid)
        key = (needs, bare)
        found = self.classes.get(key)
        if found is None:
            found = self.classes[key] = WaitClass(needs, bare, {})
            self._due[key] = None
        found.members[uid] = text
        self.of[uid] = found

    def drop(self, uid: str) -> None:
        """A pod waits no longer, or nothing is known about it."""
        if found := self.of.pop(uid, None):
            del found.members[uid]
            if not found.members:
                key = (found.needs, found.situation)
                del self.classes[key]
                self._due.pop(key, None)

    def renew(self, changed: Collection[str] | None) -> Iterator[str]:
        """Judge classes that are new, or for which one of the `changed` nodes matters; None if all may.

        Anyone may create pods that are all different, so each call judges some of them, and the next ones the rest.
        Yields the pods that may have another verdict.
        """
        self._due.update(dict.fromkeys(self._affected(changed)))
        for key in tuple(islice(self._due, MOST_CLASSES)):
            del self._due[key]
            found = self.classes[key]
            before, found.verdict = found.verdict, self._judge(found.needs, self._room, found.situation)
            had_texts = bool(found.texts)
            found.texts.clear()
            if had_texts or before != found.verdict:
                yield from found.members

    def _affected(self, changed: Collection[str] | None) -> Iterable[Key]:
        if changed is None:
            return self.classes
        return [key for key in self.classes if self._matters(key[0], changed)] if changed else ()

    def _matters(self, needs: Needs, changed: Collection[str]) -> bool:
        """Whether the pods may run on one of these nodes."""
        groups = candidates_for(needs, self._room).accepting
        return any(name in group.nodes for group in groups for name in changed)

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


@lru_cache(maxsize=8192)
def _impersonal(needs: Needs) -> Needs:
    """Without the names that decide nothing about nodes, so that pods of all namespaces and classes share a verdict."""
    return replace(needs, namespace="", class_name="")
