"""Objects of a kind PodGroup: where a scheduler has them, how pods name them, and how many pods they need at once."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gputally.errors import MalformedObject
from gputally.frameworks.stated import MOST_PODS, NO_GANG
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.units import dated_us


class Declared(Struct, frozen=True, gc=False):
    """How many `pods` a PodGroup needs at once, since `created_us`; with `tasks`, at least so many of each of these."""

    pods: int
    created_us: int
    tasks: tuple[tuple[str, int], ...] = ()


class PodGroupKind(Struct, frozen=True, kw_only=True):
    """PodGroups of a `scheduler` in the group `api`, watched as `kind` in the best of `versions`, decoded as `type`.

    `declared` maps an object, observed at a time (µs), to what it says. A pod names its group in the first of these
    `annotations`, or `labels`, and may state the minimum in `size_annotation` or `size_label`. `reported` are patterns
    of the minimum in messages of the scheduler. People know the object as `title`.
    """

    kind: Kind
    scheduler: str
    api: str
    versions: tuple[str, ...]
    type: type[Object]
    declared: Callable[[Any, int], Declared | None]
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    size_annotation: str = ""
    size_label: str = ""
    reported: tuple[str, ...] = ()
    title: str = "PodGroup"


def declared_of(found: Object, pods: int | None, at_us: int) -> Declared | None:
    """What a PodGroup says that needs so many `pods`, None for one that says nothing.

    A group without a gang is one whose pods are bound one by one. Raises: MalformedObject for an impossible number.
    """
    if pods is None:
        return None
    meta = found.metadata
    if not 0 <= pods <= MOST_PODS:
        raise MalformedObject(meta.uid, f"PodGroup {meta.namespace}/{meta.name} needs {pods} pods")
    return Declared(max(pods, NO_GANG), dated_us(meta.creation_timestamp, at_us))
