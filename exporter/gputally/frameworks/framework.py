"""What a framework declares: the labels of its pods, their groups, which of these are gangs, and what it states."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.frameworks.manifest import PodKind, ReadRoles
from gputally.frameworks.pod_group_kind import PodGroupKind
from gputally.model.kube.meta import Labels
from gputally.model.kube.pods import Texts

StatedGang = tuple[str, int]
"""The gang that a scheduler binds at once, "" for none, and the size of any gang, 0 if it is unknown."""
StatesGang = Callable[[Labels, Texts | None], StatedGang | None]
"""Maps labels and annotations of a pod to the gang that they state; None if they are not those of the framework."""
NO_STATED_GANG: Final[StatedGang] = ("", 0)


class OnLoss(StrEnum):
    """What a group does by default when it loses a pod; what is observed overrides it."""

    RESTART = "restart"
    """All pods are recreated."""
    WAIT = "wait"
    """The pod is replaced, and the others wait for it."""
    CONTINUE = "continue"
    """The pod is replaced, and the others go on."""


class GroupLabels(Struct, frozen=True):
    """Pods with all of the labels `keys` are a group of `kind`, named by their values; `more` keys may lack.

    The pods of a gang work only together.
    """

    kind: str
    on_loss: OnLoss
    keys: tuple[str, ...]
    more: tuple[str, ...] = ()
    is_gang: bool = True


class JobLabel(Struct, frozen=True):
    """A label that names the job of a pod, of this kind."""

    kind: str
    key: str


class Framework(Struct, frozen=True, kw_only=True):
    """A job framework, queue or gang scheduler; most have some of this only.

    `jobs` and `queues` are labels of pods, the better ones first, and `labels` are others that are kept.
    The value of `attempts` counts how often all pods of a group were recreated.
    `states_gang` runs for each new pod that has annotations, or a label that names a PodGroup.
    `pod_groups` are objects of its own that declare gangs. `manifests` read the objects that create pods.
    """

    jobs: tuple[JobLabel, ...] = ()
    groups: tuple[GroupLabels, ...] = ()
    queues: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    attempts: str = ""
    states_gang: StatesGang | None = None
    pod_groups: PodGroupKind | None = None
    manifests: Mapping[PodKind, ReadRoles] = {}
