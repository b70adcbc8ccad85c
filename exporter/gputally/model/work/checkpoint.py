"""The last checkpoint of a pod: up to when its work is saved."""

from enum import StrEnum

from msgspec import Struct


class CheckpointSource(StrEnum):
    """How the last checkpoint is known."""

    TERMINATION_MESSAGE = "termination-message"
    """A container's termination message states it."""
    ANNOTATION = "annotation"
    """An annotation of the pod states it."""
    SIGTERM = "sigterm"
    """The pod declares that it saves its work on SIGTERM."""
    INTERVAL = "interval"
    """Assumed from a declared interval."""
    START = "start"
    """Not known: all work since the start may be lost."""
    NO_WORK = "no-work"
    """The pod has no work to lose: it serves users, or is declared a placeholder."""


class WorkCheckpoint(Struct, frozen=True, kw_only=True, gc=False):
    """Work up to `at_us` (µs) is saved."""

    at_us: int
    source: CheckpointSource


class PodCheckpoint(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What one pod states about its checkpoints: the latest one, an interval, and whether it saves on SIGTERM.

    `is_placeholder` says that its images are declared to do no work.
    """

    uid: str
    stated: WorkCheckpoint | None = None
    interval_us: int | None = None
    saves_on_sigterm: bool = False
    is_placeholder: bool = False
