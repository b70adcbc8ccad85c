"""What one watch observes, and where."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from gputally.model.kube.meta import Kind, Object
from gputally.model.observation import Observation

IDLE_SECONDS: Final = 150.0
"""The server sends a bookmark about every minute: allows for two missing ones."""


def everything(_: object) -> bool:
    """Keep every object."""
    return True


class Resource(Struct, frozen=True, kw_only=True):
    """What to watch: `path` such as /api/v1/pods, decoded as `type`.

    Where the server lacks `path`, the `older` ones are tried: other versions of the API, of which it serves some.

    `keep` filters objects. It must never raise, and depend only on immutable fields, or on fields whose loss need not
    be reported. A connection ends after `idle_seconds` without data: use more than 600 for a resource without
    bookmarks (core events on most servers).

    `brief` says of an object that `keep` rejects what matters nevertheless, given the times of its observation.

    `without` says what stays unknown while the resource is missing or forbidden, "" if it is required. `is_first`
    resources classify pods and are accounted before them. The watch of a resource that `resumes` continues from the
    earlier process's checkpoint, because a list does not report when objects ended.

    A resource that `reads_ahead` is read while others are accounted. Any other one is listed after the first ones, and
    read only as fast as it is accounted, as its objects may be large.
    """

    kind: Kind
    path: str
    type: type[Object]
    older: tuple[str, ...] = ()
    field_selector: str = ""
    keep: Callable[[Any], bool] = everything
    brief: Callable[[Any, int, int], Observation | None] | None = None
    idle_seconds: float = IDLE_SECONDS
    without: str = ""
    is_first: bool = False
    reads_ahead: bool = False
    resumes: bool = False


class Paths:
    """The paths of a resource in the versions of its API: `now` is the one in use."""

    def __init__(self, resource: Resource) -> None:
        self._all = (resource.path, *resource.older)
        self._turn = 0

    @property
    def now(self) -> str:
        """The path in use."""
        return self._all[self._turn]

    @property
    def were_all_tried(self) -> bool:
        """Whether it is the turn of the first one again."""
        return self._turn == 0

    def turn(self) -> bool:
        """Turn to the next path; returns whether there is more than one."""
        self._turn = (self._turn + 1) % len(self._all)
        return len(self._all) > 1
