"""State derived from watched objects besides pods and nodes: one part per subject, with a common interface."""

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from gputally.model.kube import Kind, Object

Document = TypeVar("Document", bound=Struct)


class StatePart(Generic[Document]):
    """The state of one subject, updated by events of its `kinds`. Methods that a part does not override do nothing.

    Its state for a restart is a set of documents of one type, by key, which a ledger stores under the part's `name`.
    """

    name: ClassVar[str]
    kinds: ClassVar[Collection[Kind]]

    def seen(self, found: Object, *, at_us: int) -> None:
        """An object was added or modified. Raises: MalformedObject, without any change, if the object is invalid."""

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
