"""Observations for the accounting: upserted and deleted objects, and the progress of watches.

`at_us` is the time of the observation. `since_us` is the earliest time of the change itself: equal to `at_us`
on a live stream; after an interruption, the last time at which the stream was known to be complete. Only
facts without an API timestamp depend on it.
"""

from msgspec import Struct

from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object, Owner, OwnerReference
from gputally.model.kube.workloads import Workload
from gputally.model.needs import Taken
from gputally.model.usage import UsageReport


class Upserted(Struct, frozen=True, kw_only=True, gc=False):
    """The object exists in this form (ADDED, MODIFIED, or an item of a list)."""

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
    """A list begins: objects that are not observed before its `RelistFinished` no longer exist."""

    kind: Kind
    at_us: int


class RelistFinished(Struct, frozen=True, kw_only=True, gc=False):
    """The list is complete at `version`; objects that it lacks were deleted in [since_us, at_us].

    `since_us` is None if this kind was never observed (first start). The list shows the state at `as_of_us`.
    """

    kind: Kind
    version: str
    at_us: int
    since_us: int | None
    as_of_us: int


class Bookmark(Struct, frozen=True, kw_only=True, gc=False):
    """The watch has reached `version` without relevant objects: a bookmark, or objects without GPUs."""

    kind: Kind
    version: str
    at_us: int
    since_us: int


class OtherPod(Struct, frozen=True, kw_only=True, gc=False):
    """A bound pod without GPUs, in brief: `taken` is what it takes from `node`, None once it has ended."""

    uid: str
    node: str
    taken: Taken | None
    version: str
    at_us: int
    since_us: int


class ListedSeparately(Struct, frozen=True, kw_only=True):
    """Objects of a list that was requested beside the watches, which precede it: what they report meanwhile counts.

    `begins` is set for the first part, and `ends` for the last one. It has the pods of `nodes`, empty for all nodes and
    all pods.
    """

    at_us: int
    objects: tuple[Object, ...] = ()
    nodes: tuple[str, ...] = ()
    begins: bool = False
    ends: bool = False


class Unavailable(Struct, frozen=True, kw_only=True, gc=False):
    """The server lacks the resource, or forbids watching it: there are no observations of it until that changes."""

    kind: Kind
    at_us: int


class OwnerResolved(Struct, frozen=True, kw_only=True, gc=False):
    """The result of an owner lookup; `parent` is the owner's controller, None at the top or if it is unknown."""

    owner: Owner
    parent: OwnerReference | None
    at_us: int


class WorkloadResolved(Struct, frozen=True, kw_only=True, gc=False):
    """A workload that an Event names, as it is now: None if it is gone.

    Without the right to read its kind, `is_known` is False.
    """

    owner: Owner
    found: Workload | None
    at_us: int
    is_known: bool = True


class UsageReported(Struct, frozen=True, kw_only=True, gc=False):
    """A response of a node's agent at `at_us`, which is `report.now_us` by the node's own clock."""

    report: UsageReport
    at_us: int


Observation = (
    Upserted
    | Deleted
    | RelistStarted
    | RelistFinished
    | Bookmark
    | OtherPod
    | ListedSeparately
    | Unavailable
    | OwnerResolved
    | WorkloadResolved
    | UsageReported
)


class Checkpoint(Struct, frozen=True, kw_only=True, gc=False):
    """The saved position of a watch: its resourceVersion and when it was last known to be complete.

    `rules` is the digest of the rules that selected relevant objects until then.
    """

    version: str
    at_us: int
    rules: str = ""
