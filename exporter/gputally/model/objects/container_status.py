"""The runs of a container.

Shapes: k8s.io/api core/v1.
"""

from datetime import datetime

from gputally.model.objects.camel import Camel


class Running(Camel, frozen=True):
    """A running container."""

    started_at: datetime | None = None


class Terminated(Camel, frozen=True):
    """A container that has terminated, or failed to start. `message` is what it wrote as its termination message."""

    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None


class ContainerState(Camel, frozen=True):
    """At most one of the two is set; neither while the container waits."""

    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Camel, frozen=True):
    """The current and the previous run of a container."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
