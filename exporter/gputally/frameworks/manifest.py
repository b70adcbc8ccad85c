"""The pod templates in the manifest of an object that creates pods."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import field

from gputally.model.kube.meta import Camel
from gputally.model.kube.placeable_pods import PlaceableSpec
from gputally.model.kube.pods import PodMeta


class PodKind(NamedTuple):
    """A kind of object that creates pods, in its API group; "" is the core group.

    `job_kind` is its name among those of jobs, where that is another one: `VolcanoJob` for the Job of Volcano.
    """

    group: str
    kind: str
    job_kind: str = ""

    @property
    def name(self) -> str:
        """The name as in those of jobs."""
        return self.job_kind or self.kind


class PlannedTemplate(Camel, frozen=True):
    """A pod template."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: PlaceableSpec = field(default_factory=PlaceableSpec)


class Copies(Camel, frozen=True):
    """`parallelism` of Jobs, `replicas` of others; without a number, one."""

    template: PlannedTemplate = field(default_factory=PlannedTemplate)
    replicas: int | None = None
    parallelism: int | None = None


class Copied(Camel, frozen=True):
    """An object of which the spec has a template."""

    spec: Copies = field(default_factory=Copies)


Roles = Iterator[tuple[str, PlannedTemplate, int]]
"""The role of the pods, "" for the only one, their template, and how many there are."""
ReadRoles = Callable[[bytes], Roles]
"""Reads a manifest as JSON. Raises: msgspec.ValidationError."""


def number_of(given: int | None) -> int:
    """The number of copies: one unless it is given."""
    return 1 if given is None else given
