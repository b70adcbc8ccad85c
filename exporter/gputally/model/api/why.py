"""The response of `/api/v1/why`: why one pod waits, or when and why it waited."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from gputally.model.api.pending import GangEntry, PendingPod, PendingWorkload

WHY_VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""

NOT_FOUND_HEADER: Final = "X-Gputally-Not-Found"
"""Distinguishes an answer about something that does not exist from that of another server."""


class NeededResources(Struct, frozen=True, kw_only=True, gc=False):
    """What one pod requests, and what restricts its nodes. `devices` are counts by resource name.

    `node_affinity` is the required one in words, as `kubectl` writes selectors; "" for none.
    """

    devices: dict[str, int]
    cpu_cores: float
    memory_bytes: int
    ephemeral_storage_bytes: int
    node_selector: dict[str, str]
    node_affinity: str = ""
    tolerations: list[str]
    scheduler: str


class ObstacleText(Struct, frozen=True, kw_only=True, gc=False):
    """One obstacle in words; without all of them, the pod would be bound. `node` is None for a restricted user."""

    kind: str
    text: str
    node: str | None


class OccupantPod(Struct, frozen=True, kw_only=True, gc=False):
    """A pod, or `pods` pods, that hold what the pod waits for.

    `may_be_preempted` says whether the pod may preempt it, and `why_not` why it may not. Of other tenants' pods, a user
    who is restricted to tenants sees only the tier, the GPUs and whether the pod may preempt them: all else is None.
    `cost_per_hour` and `lost_cost` are decimals, None if a price is missing. `lost_gpu_hours` is the work that its
    preemption would destroy now; None if unknown, and for a pod that `serves_users`, which saves no work. It is an
    upper bound (`is_lost_upper_bound`) if no checkpoint of the pod is known: all that it has done counts. `budget` is
    the PodDisruptionBudget that does not allow its preemption, as far as known, with its namespace.
    """

    tier: str
    gpus: float
    pods: int | None = 1
    tenant: str | None = None
    namespace: str | None = None
    pod: str | None = None
    uid: str | None = None
    node: str | None = None
    state: str | None = None
    priority: int | None = None
    cost_per_hour: str | None = None
    may_be_preempted: bool
    why_not: str = ""
    lost_gpu_hours: float | None = None
    lost_cost: str | None = None
    is_lost_upper_bound: bool = False
    serves_users: bool = False
    budget: str = ""


class PastWait(Struct, frozen=True, kw_only=True, gc=False):
    """What the pod waited for from `start` to `end`, None while it waits."""

    reason: str
    text: str
    start: datetime
    end: datetime | None
    seconds: float


class SimilarWaits(Struct, frozen=True, kw_only=True, gc=False):
    """How long the last `pods` pods of the same tier and request waited that were bound since `since`."""

    tier: str
    gpus: float
    pods: int
    median_seconds: float
    p90_seconds: float
    since: datetime


class Help(Struct, frozen=True, kw_only=True, gc=False):
    """A change after which the pod would be bound, checked by the model.

    It then fits, or if there are `victims`, it would preempt them on `node`, None for a restricted user. Of `pods` that
    wait alike, so many would be `bound`.

    `by` says who can make the change: `owner` of the pod, `admin` of the cluster, `gate_owner`, who set the scheduling
    gate, or `nobody` where waiting suffices; several if several changes are needed. With `changes_job`, the job gets
    less than it asked for, or other nodes; without, and without `victims`, the change costs its users and others
    nothing but time, or with `adds_node` another node.
    """

    text: str
    by: list[str] = []
    changes_job: bool = False
    adds_node: bool = False
    node: str | None = None
    victims: list[OccupantPod] = []
    pods: int = 1
    bound: int = 1


class PriorityNote(Struct, frozen=True, kw_only=True, gc=False):
    """Pods that hold `gpus` GPUs where the pod could run, and that should not precede it.

    `kind` is `outranked` or `starvation` for pods of lower priority that it cannot preempt, of which the latter were
    bound after it began to wait; or `inversion` for pods that do not serve users, while it does.
    """

    kind: str
    text: str
    gpus: int


class PreemptedBy(Struct, frozen=True, kw_only=True, gc=False):
    """The preemption of the pod; the preemptor's names are None for a user who may not know them, or if unknown.

    A queue (`is_by_queue`) did so for a workload: `job_kind` and `job` are its job, and `pod` is None.
    """

    at: datetime
    tier: str
    namespace: str | None
    pod: str | None
    is_inferred: bool
    is_by_queue: bool = False
    job_kind: str | None = None
    job: str | None = None


class PreemptedPod(Struct, frozen=True, kw_only=True, gc=False):
    """A pod of the job that was preempted, with the `gpus` that it lost."""

    namespace: str
    pod: str
    uid: str
    gpus: float
    by: PreemptedBy


class WhyAnswer(Struct, frozen=True, kw_only=True):
    """Why `pods` equal pods of a job wait, of which `pod` is the oldest.

    `state` is `pending`, the state of a pod that has its GPUs, `ended`, or `gone` if it was deleted. Unless it is
    pending, `reason` and `text` of the pod are empty, and `waits` says what it had waited for. `waited_cost` is what
    the GPUs of all these pods would have cost while they waited, at least; None if any part has no price;
    `highest_waited_cost` at most, None if that is the same. `more_nodes_help` says
    whether the pod would be bound if another empty node like the closest one joined; None if that is not known.
    `others_waiting` pods of the same or a higher priority, as far as the user may know, wait for such GPUs on the same
    nodes. `gang` is that of the pod while only some of its pods hold GPUs.
    """

    state: str
    pod: PendingPod
    pods: int = 1
    node: str | None = None
    needs: NeededResources | None = None
    obstacles: list[ObstacleText] = []
    nodes: dict[str, int] = {}
    occupants: list[OccupantPod] = []
    more_occupants: int = 0
    priorities: list[PriorityNote] = []
    waits: list[PastWait] = []
    waited_seconds: float
    waited_cost: str | None = None
    highest_waited_cost: str | None = None
    similar: SimilarWaits | None = None
    others_waiting: int = 0
    helps: list[Help] = []
    more_nodes_help: bool | None = None
    scheduler_message: str = ""
    preempted: PreemptedBy | None = None
    gang: GangEntry | None = None


class UnaccountedNote(Struct, frozen=True, kw_only=True, gc=False):
    """A bound pod that asks for GPUs which are not accounted, for one reason, with the `resources` concerned.

    `gpus` is None if they are not known, and `node` for a user who may not know it.
    """

    namespace: str
    pod: str
    node: str | None
    reason: str
    text: str
    resources: list[str]
    gpus: float | None


class WhyDocument(Struct, frozen=True, kw_only=True):
    """The answers about a pod, or about the pods of a job: one for each verdict and request.

    `bound` pods of the job have their GPUs. If these have equal requests, they occupy `nodes_used` nodes, of which
    `nodes_needed` would hold them if they were empty. `workloads` lack pods of the job. `unaccounted` pods ask for
    GPUs that are not accounted: the pod that was asked about, which has no answer if none of its GPUs are accounted, or
    pods of the job. `currency` is empty without a price book.

    `preempted` are the pods of the job that were preempted since `preempted_from`, whether they still exist or not: the
    last ones first, of `preempted_count`. `preempted_from` is None for a pod, and if that is not known. The ledger has
    records of pods from `records_from` on, None if that is not known.
    """

    version: int = WHY_VERSION
    at: datetime
    currency: str
    answers: list[WhyAnswer]
    bound: int = 0
    nodes_used: int | None = None
    nodes_needed: int | None = None
    workloads: list[PendingWorkload] = []
    unaccounted: list[UnaccountedNote] = []
    preempted: list[PreemptedPod] = []
    preempted_count: int = 0
    preempted_from: datetime | None = None
    records_from: datetime | None = None
