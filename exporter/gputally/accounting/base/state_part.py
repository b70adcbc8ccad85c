"""State derived from watched objects besides pods and nodes: one part per subject, with a common interface."""

from collections.abc import Collection, Container, Iterable, Mapping
from typing import ClassVar, Final, Generic, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow
from gputally.model.kube.kinds import NO_LIMIT, Kind, Limit
from gputally.model.kube.meta import Object

Document = TypeVar("Document", bound=Struct)
DOCUMENTS: Final[dict[str, type[Struct]]] = {}
"""The type of the documents of each part that has any, by its name; `Fleet` imports all parts."""


class StatePart(Generic[Document]):
    """The state of one subject, updated by events of its `kinds`. Methods that a part does not override do nothing.

    Its state for a restart is a set of documents of one type, by key, which a ledger stores under the part's `name`;
    `StatePart[Struct]` has none. `document_limit` says how many are kept.
    """

    name: ClassVar[str]
    document_limit: ClassVar[Limit] = NO_LIMIT
    kinds: Collection[Kind]
    known_pods: Container[str] | None = None
    """UIDs of the pods of which it knows something, if it reads only what few pods say; None if it reads all pods.

    It is the same object for life: `Readers` looks it up once.
    """

    def __init_subclass__(cls) -> None:
        """Register the type of the documents, which is the argument of the base class."""
        super().__init_subclass__()
        if "name" in vars(cls):
            [document] = get_args(vars(cls)["__orig_bases__"][0])
            if document is not Struct:
                DOCUMENTS[cls.name] = document

    @property
    def limit_overflow(self) -> LimitOverflow:
        """How often an object was not kept because of a limit."""
        return LimitOverflow()

    def seen(self, found: Object, *, at_us: int) -> None:
        """An object was added or modified. Raises: MalformedObject, without any change, if the object is invalid."""

    def last_seen(self, found: Object, *, at_us: int) -> None:
        """A pod was deleted; this is its last state. Its record is still there, as it was before."""

    def gone(self, uid: str, *, at_us: int) -> None:
        """The object with this UID was deleted."""

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """A list is complete: exactly these objects of a kind exist, and `seen` was called for each."""

    def advance(self, now_us: int) -> None:
        """Advance the time to `now_us`."""

    def drain(self) -> Mapping[str, Document | None]:
        """Documents changed since the last call, by key; None for removed ones."""
        return {}

    def touch_all(self) -> None:
        """Make the next `drain` return everything."""

    def restore(self, documents: Iterable[Document], *, at_us: int) -> None:
        """Restore the last drained documents of an earlier process, all from `at_us` or before."""


class KeyedDocuments(Generic[Document]):
    """Documents by key, and which of them changed."""

    def __init__(self) -> None:
        self.known: dict[str, Document] = {}
        self._touched: set[str] = set()

    def drain(self) -> dict[str, Document | None]:
        """Documents changed since the last call, by key; None for removed ones."""
        changed = {key: self.known.get(key) for key in self._touched}
        self._touched.clear()
        return changed

    def touch_all(self) -> None:
        """Make the next `drain` return everything."""
        self._touched.update(self.known)

    def _store(self, key: str, document: Document) -> None:
        """Store a new or changed document."""
        self.known[key] = document
        self._touched.add(key)

    def _remove(self, key: str) -> Document | None:
        """Remove a document; returns it, None if there is none."""
        document = self.known.pop(key, None)
        if document is not None:
            self._touched.add(key)
        return document


class KeyedPart(KeyedDocuments[Document], StatePart[Document]):
    """A part whose state is its documents."""


def no_later(document: Document, at_us: int, *names: str) -> Document:
    """The document with these times at `at_us` at the latest, as those after it were by a wrong clock."""
    times = {name: us for name in names if (us := getattr(document, name)) is not None and us > at_us}
    return replace(document, **dict.fromkeys(times, at_us)) if times else document
