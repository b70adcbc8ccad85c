"""What a watch tells the accounting: objects seen and gone, and how far the watch has come.

`at_us` is when we learned it. `since_us` is the earliest moment it can have happened without our
seeing it: equal to `at_us` on a live stream; after an interruption, the last moment the stream was
known to be complete. Only facts without an API timestamp of their own depend on it.
"""

from msgspec import Struct

from gputally.model.kube import Kind, Object, OwnerReference
from gputally.model.measured.usage_report import UsageReport
from gputally.model.owner import Owner


class Upserted(Struct, frozen=True, kw_only=True, gc=False):
    """The object exists in this form (ADDED, MODIFIED, or an item of a listing)."""

    kind: Kind
    object: Object
    at_us: int
    since_us: int


class Deleted(Struct, frozen=True, kw_only=True, gc=False):
    """The object was deleted; `object` is its last form."""

    kind: Kind
    object: Object
    at_us: int
    since_us: int


class RelistStarted(Struct, frozen=True, kw_only=True, gc=False):
    """A listing begins: what is not seen before its `RelistFinished` has vanished."""

    kind: Kind
    at_us: int


class RelistFinished(Struct, frozen=True, kw_only=True, gc=False):
    """The listing is complete at `version`; whatever it lacks vanished in [since_us, at_us].

    `since_us` is None when nothing was ever seen of this kind (first start). All is known as it was at `as_of_us`.
    """

    kind: Kind
    version: str
    at_us: int
    since_us: int | None
    as_of_us: int


class Bookmark(Struct, frozen=True, kw_only=True, gc=False):
    """The watch has come to `version` without anything we keep: a bookmark, or objects that hold no GPU."""

    kind: Kind
    version: str
    at_us: int
    since_us: int


class Unavailable(Struct, frozen=True, kw_only=True, gc=False):
    """The server has no such resource, or does not let us watch it: nothing is told of it until that changes."""

    kind: Kind
    at_us: int


class OwnerResolved(Struct, frozen=True, kw_only=True, gc=False):
    """An owner looked up for the owner walk; `parent` is its controller, None at the top or when it is not known."""

    owner: Owner
    parent: OwnerReference | None
    at_us: int


class UsageReported(Struct, frozen=True, kw_only=True, gc=False):
    """The agent of a node answered at `at_us`: `report.now_us` by the node's own clock."""

    report: UsageReport
    at_us: int


Observation = (
    Upserted | Deleted | RelistStarted | RelistFinished | Bookmark | Unavailable | OwnerResolved | UsageReported
)


class Checkpoint(Struct, frozen=True, kw_only=True, gc=False):
    """Where a stored watch left off: its resourceVersion and when it was last known complete.

    `rules` is the digest of the rules by which objects were kept or passed over until then.
    """

    version: str
    at_us: int
    rules: str = ""
