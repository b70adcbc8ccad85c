"""What is kept of a pod that asks for GPUs."""

from collections.abc import Sequence

from msgspec import Struct

from gputally.model.allocation import End, Ending, Gap, Segment, Terms
from gputally.model.kube import OwnerReference


class Clock(Struct, frozen=True, gc=False):
    """A node's clock that is off: it is ahead by something from `least_us` to `most_us`, negative for behind."""

    least_us: int
    most_us: int


class PodRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Everything known of one pod (one UID), merged over all observations.

    Times are µs. `units` are device counts by resource name. `labels` holds only what the rules and the
    job derivation look at. `terms` is the history of classification, the oldest first; `segments` is the
    allocation as last computed, by time and then resource. `revision` rises with each state of it that is handed
    to the ledger.

    `limited` replaces `units` where the pod asks for more than its node ever offered. `claimed_us` is the binding that
    the pod's creator wrote into it, which counts once the kubelet has `accepted` the pod.
    """

    uid: str
    namespace: str
    name: str
    units: tuple[tuple[str, int], ...]
    limited: tuple[tuple[str, int], ...] | None = None
    class_name: str = ""
    priority: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    owner: OwnerReference | None = None
    created_us: int
    node: str = ""
    node_uid: str = ""
    claimed_us: int | None = None
    accepted: bool = True
    clock: Clock | None = None
    """That of its node, if it is off by more than two seconds."""
    scheduled_us: int | None = None
    started_us: int | None = None
    deletion_us: int | None = None
    preempted_us: int | None = None
    """When DisruptionTarget was set with a preemption reason."""
    ending: Ending | None = None
    """What the pod's own forms tell of its end; the three below follow from it and from its node's."""
    end_us: int | None = None
    end_by: End | None = None
    gap: Gap | None = None
    left_us: int | None = None
    """When it was deleted, of a pod whose node is not known yet."""
    remembered_us: int | None = None
    """When it was deleted, of a pod that is remembered because news of it may still come."""
    job_kind: str = ""
    job: str = ""
    walking: bool = False
    """Whether the job is named by an owner below the top, because the next one is not known yet."""
    terms: Sequence[Terms] = ()
    segments: Sequence[Segment] = ()
    revision: int = 0
