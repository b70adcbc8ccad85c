"""The object store: current objects, a bounded history of changes, and listeners."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gputally_sim.api import refusals
from gputally_sim.documents import Doc, Key, key_of

DEFAULT_WINDOW = 100_000
"""Changes kept per resource; the real watch cache keeps at least 75 s."""

_encode = msgspec.json.Encoder().encode


class Verb(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Stored:
    """A state of an object and its JSON without kind and apiVersion, encoded once for all lists and watches."""

    __slots__ = ("body", "doc", "other_view")

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.body: bytes = _encode(doc)
        self.other_view: bytes | None = None
        """The JSON of the object's other API view, if any; set on first use."""


@dataclass(frozen=True, slots=True)
class Change:
    """A write; `now` is the new state, or a deleted object's last state with the version of its deletion."""

    verb: Verb
    plural: str
    version: int
    now: Stored
    before: Stored | None

    @property
    def key(self) -> Key:
        """Key of the changed object."""
        return key_of(self.now.doc)


Listener = Callable[[Change], None]


class Store:
    """All objects, with a common resource version. Listeners are called during the write, in subscription order."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.version = 0
        """Version of the latest write."""
        self.compacted = 0
        """The version of the last `compact`."""
        self.window = window
        self._objects: defaultdict[str, dict[Key, Stored]] = defaultdict(dict)
        self._history: defaultdict[str, deque[Change]] = defaultdict(deque)
        self._floor: defaultdict[str, int] = defaultdict(int)
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)
        self._latest: defaultdict[str, int] = defaultdict(int)

    def version_of(self, plural: str) -> int:
        """Version of the latest write to a resource; 0 before the first."""
        return self._latest[plural]

    def get(self, plural: str, key: Key) -> Stored | None:
        """The object's current state, or None."""
        return self._objects[plural].get(key)

    def docs(self, plural: str) -> list[Doc]:
        """The documents of all objects of a resource, in creation order."""
        return [stored.doc for stored in self._objects[plural].values()]

    def snapshot(self, plural: str) -> list[tuple[Key, Stored]]:
        """All objects of a resource, in list order."""
        return sorted(self._objects[plural].items(), key=lambda item: item[0])

    def put(self, plural: str, doc: Doc) -> Stored:
        """Create or replace the object."""
        key = key_of(doc)
        before = self._objects[plural].get(key)
        now = self._next(doc)
        self._objects[plural][key] = now
        self._publish(Change(Verb.MODIFIED if before else Verb.ADDED, plural, self.version, now, before))
        return now

    def remove(self, plural: str, key: Key) -> Stored:
        """Remove the object; KeyError if it does not exist."""
        before = self._objects[plural].pop(key)
        now = self._next(before.doc)
        self._publish(Change(Verb.DELETED, plural, self.version, now, before))
        return now

    def subscribe(self, plural: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` on every change from now on; returns a function to unsubscribe."""
        self._listeners[plural].append(listener)
        return lambda: self._listeners[plural].remove(listener)

    def since(self, plural: str, version: int) -> list[Change]:
        """Changes after `version`, oldest first. Raises: StatusError 410 if some of them have expired."""
        if version < self._floor[plural]:
            raise refusals.expired(f"too old resource version: {version} ({self._floor[plural]})")
        found: list[Change] = []
        for change in reversed(self._history[plural]):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def compact(self) -> None:
        """Discard all history, as a server does after its window."""
        self.compacted = self.version
        for plural in list(self._objects):
            self._history[plural].clear()
            self._floor[plural] = self.version

    def _next(self, doc: Doc) -> Stored:
        self.version += 1
        return Stored({**doc, "metadata": {**doc["metadata"], "resourceVersion": str(self.version)}})

    def _publish(self, change: Change) -> None:
        self._latest[change.plural] = change.version
        history = self._history[change.plural]
        history.append(change)
        while len(history) > self.window:
            self._floor[change.plural] = history.popleft().version
        for listener in tuple(self._listeners[change.plural]):
            listener(change)
