"""Records of pods that request GPUs."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gputally.model.allocation import End, Ending, Gap, Outcome, Result, Segment, Terms
from gputally.model.disruptions import Disrupted
from gputally.model.kube.meta import OwnerReference

INCOMPLETE: Final = 1 << 62
"""A time after all others, as long as a gang is incomplete."""


class Clock(Struct, frozen=True, gc=False):
    """The skew of a node's clock: it is ahead by `least_us` to `most_us`, negative for behind."""

    least_us: int
    most_us: int


class PodRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Everything known about one pod (one UID), merged from all observations.

    Times are µs. `units` are device counts by resource name. `labels` contains only the labels that the rules and the
    job derivation use. `terms` is the history of classification, the oldest first; `segments` is the last computed
    allocation, by time and then resource. `revision` increases with each state of it that is passed to the ledger.

    `limited` replaces `units` if the pod requests more than its node ever offered. `claimed_us` is the binding time
    that the pod's creator set, which counts once the kubelet has `accepted` the pod.
    """

    uid: str
    namespace: str
    name: str
    units: tuple[tuple[str, int], ...]
    limited: tuple[tuple[str, int], ...] | None = None
    class_name: str = ""
    priority: int | None = None
    may_preempt: bool = True
    """Whether its preemptionPolicy is not Never."""
    labels: tuple[tuple[str, str], ...] = ()
    owner: OwnerReference | None = None
    created_us: int
    scheduling_group: str = ""
    """The name of its PodGroup of scheduling.k8s.io."""
    gang: str = ""
    """The gang that its scheduler binds at once, where a label or an annotation names it."""
    gang_size: int = 0
    """How many pods its gang has, where a label or an annotation says so."""
    pod_group: str = ""
    """API group and name of the PodGroup object that a label or an annotation names."""
    gang_until_us: int | None = None
    """When all of its gang ran for the first time, `INCOMPLETE` before; None without a gang."""
    restarts: int = 0
    """How often its controller had restarted its group, where an annotation says so."""
    node: str = ""
    node_uid: str = ""
    claimed_us: int | None = None
    accepted: bool = True
    selected_model: str = ""
    """The GPU model that its node selector or affinity requires."""
    clock: Clock | None = None
    """The clock skew of its node, if it exceeds two seconds."""
    scheduled_us: int | None = None
    started_us: int | None = None
    deletion_us: int | None = None
    preempted_us: int | None = None
    """When DisruptionTarget was set with a preemption reason."""
    disruption: Disrupted | None = None
    """Any other disruption that its object reports."""
    grace_us: int | None = None
    """The grace period of the first deletion request."""
    ending: Ending | None = None
    """The end by the pod's own object; the next three fields derive from it and from the end of its node."""
    end_us: int | None = None
    end_by: End | None = None
    gap: Gap | None = None
    result: Result | None = None
    """What its containers made of it, once its phase is terminal."""
    counted: Outcome | None = None
    """The outcome under which its GPU-time is in the counter of jobs, if it counts as a job of its own."""
    left_us: int | None = None
    """Time of deletion, if the pod's node is not known yet."""
    remembered_us: int | None = None
    """Time of deletion, if the pod is retained because updates may still arrive."""
    job_kind: str = ""
    job: str = ""
    walking: bool = False
    """Whether the job is preliminary: the owner walk has not reached the top owner yet."""
    terms: Sequence[Terms] = ()
    segments: Sequence[Segment] = ()
    revision: int = 0

    @property
    def full_job(self) -> tuple[str, str, str]:
        """Namespace, kind and name of its job: jobs of two namespaces may have the same name."""
        return self.namespace, self.job_kind, self.job
