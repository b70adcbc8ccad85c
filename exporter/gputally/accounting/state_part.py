"""What follows from watched objects besides pods and nodes themselves: one part for each subject, all of one shape."""

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from gputally.model.kube import Kind, Object

Document = TypeVar("Document", bound=Struct)


class StatePart(Generic[Document]):
    """The state of one subject, changed by what is told of objects of its `kinds`. What a part does not say is nothing.

    What it needs again after a restart are documents of one type, each by a key, which any ledger keeps under the
    part's `name`: see `documents`.
    """

    name: ClassVar[str]
    kinds: ClassVar[Collection[Kind]]

    def seen(self, found: Object, *, at_us: int) -> None:
        """An object is there, in this form. Raises: MalformedObject if it cannot be; nothing has changed then."""

    def gone(self, uid: str, *, at_us: int) -> None:
        """An object of this UID is not there any more."""

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """These objects of a kind are there, which were all seen, and no others."""

    def advance(self, now_us: int) -> None:
        """Time has come to `now_us`."""

    def drain(self) -> Mapping[str, Document | None]:
        """What changed since the last call, by key; None for what is no longer kept."""
        return {}

    def touch_all(self) -> None:
        """Let `drain` tell of everything."""

    def restore(self, documents: Iterable[Document], *, at_us: int) -> None:
        """Take up what an earlier process drained last; nothing of it was later than `at_us`."""
