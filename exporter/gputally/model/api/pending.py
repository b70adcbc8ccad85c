"""The response of `/api/v1/pending`: which pods wait for GPUs, and which workloads and gangs lack pods."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from gputally.model.partial_gangs import TaskShort

PENDING_VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


class GangEntry(Struct, frozen=True, kw_only=True, gc=False):
    """A gang of which `bound` of `needed` pods hold `gpus` GPUs since `since`, and wait for the others.

    So far, they held `gpu_hours`, for `cost`; `cost` and `cost_per_hour` are decimals, None if a price is missing.
    `deadlocked_with` names the gangs that wait for this one while it waits for them; of gangs of other tenants, a user
    who is restricted to tenants sees only the tier. `not_compared` says why these are not known: `unknown` or `limit`,
    "" if they are. `tasks` are those of Volcano with a minimum of their own that lack pods.
    """

    kind: str
    namespace: str
    name: str
    tier: str
    tenant: str
    bound: int
    needed: int
    gpus: float
    since: datetime
    gpu_hours: float
    cost: str | None
    cost_per_hour: str | None
    deadlocked_with: list[str] = []
    not_compared: str = ""
    tasks: list[TaskShort] = []


class CostRange(Struct, frozen=True, kw_only=True, gc=False):
    """What the GPUs of a pod would cost per hour on the nodes that are large enough and accept it, whatever runs there.

    `gpu_models` are those of these nodes with a price, and `unpriced_models` the others, which may cost anything.
    """

    lowest: str
    highest: str
    gpu_models: list[str]
    unpriced_models: list[str] = []


class PendingPod(Struct, frozen=True, kw_only=True, gc=False):
    """A pod that waits for `gpus` GPUs of `gpu_model`, `any` for none in particular.

    `reason` is its verdict, which `text` says in one sentence; it has held since `since`. `cost_per_hour` is what its
    GPUs would cost on the nodes that it selects, at least, a decimal in the document's currency; `highest_per_hour` is
    what they would cost at most, None if that is the same. Without a price, both are None, and `unpriced` says why.
    `cost_range`, which only `/api/v1/why` has, names the models of which the prices are. `helps` is the first change
    that would help without a change of the job, and `job_changes` the first one that changes the job; "" if none is
    known or it was not asked for. `findings` has the GPUs of pods that should not precede this one, by the kind (see
    `PriorityNote`).

    A pod that waits no longer has no reason and no cost. The class, the priority and the policy of one that is gone are
    not known any more.
    """

    namespace: str
    pod: str
    uid: str
    tier: str
    tenant: str
    job_kind: str
    job: str
    class_name: str | None
    priority: int | None
    may_preempt: bool | None
    gpus: float
    gpu_model: str
    created: datetime
    reason: str = ""
    text: str = ""
    since: datetime
    cost_per_hour: str | None = None
    highest_per_hour: str | None = None
    unpriced: str = ""
    cost_range: CostRange | None = None
    helps: str = ""
    job_changes: str = ""
    findings: dict[str, int] = {}


class PendingReason(Struct, frozen=True, kw_only=True, gc=False):
    """All pods with one verdict. `cost_per_hour` is the lowest sum, None if none of their GPUs has a price.

    `highest_per_hour` is the highest one, None if it is the same. The wait of `uncharged_pods` is not charged, and
    their GPUs are in none of the sums, as anyone may ask for any number.
    """

    reason: str
    meaning: str
    pods: int
    gpus: float
    cost_per_hour: str | None
    unpriced_gpus: float
    oldest: datetime
    highest_per_hour: str | None = None
    uncharged_pods: int = 0


class PendingFinding(Struct, frozen=True, kw_only=True, gc=False):
    """All pods that others should not precede, for one reason: `inversion`, `starvation` or `outranked`.

    `names` are those that wait for the longest time, the oldest first, as NAMESPACE/POD.
    """

    finding: str
    meaning: str
    pods: int
    gpus: float
    oldest: datetime
    names: list[str]


class QuotaRefusal(Struct, frozen=True, kw_only=True, gc=False):
    """The ResourceQuota `name` refuses a pod: it requests so much of `resource`, of which `used` of `hard` are used.

    `resource` is the quota's key, such as `requests.cpu`; CPU is in cores, memory and storage in bytes.
    """

    name: str
    resource: str
    hard: float
    used: float
    requested: float


class PendingWorkload(Struct, frozen=True, kw_only=True, gc=False):
    """A workload that lacks `pods` pods, each of `gpus_per_pod` GPUs of `gpu_model`: they do not exist.

    `kind` and `name` are those of the object that would create them, for the job of `job_kind` and `job`. `reason`, in
    words `text`, has held since `since`. `message` is what the API server answered, shortened. `cost_per_hour` is that
    of all these GPUs, at least, None without a price; `highest_per_hour` at most, None if that is the same. With
    `is_at_least`, only an Event is known: it may lack more pods, its class is None, and the GPUs are None if nothing
    says how many its pods request, if any. `helps` says what would help, `job_changes` what would if the workload
    changed; "" if nothing is known.
    """

    namespace: str
    kind: str
    name: str
    uid: str
    tier: str
    tenant: str
    job_kind: str
    job: str
    class_name: str | None
    pods: int
    is_at_least: bool
    gpus: float | None
    gpus_per_pod: float | None
    gpu_model: str
    since: datetime
    reason: str
    text: str
    quota: QuotaRefusal | None
    message: str
    cost_per_hour: str | None
    highest_per_hour: str | None = None
    helps: str = ""
    job_changes: str = ""


class PendingTenant(Struct, frozen=True, kw_only=True, gc=False):
    """All waiting pods of one tenant. `reason` is the verdict of most of their GPUs; for costs see `PendingReason`."""

    tenant: str
    reason: str
    pods: int
    gpus: float
    cost_per_hour: str | None
    unpriced_gpus: float
    oldest: datetime
    highest_per_hour: str | None = None
    uncharged_pods: int = 0


class PendingDocument(Struct, frozen=True, kw_only=True):
    """The state at one instant.

    `reasons` and `tenants` are of all pods of all pages, the most GPUs first, and `pods` those of this page, the oldest
    first. `currency` is empty without a price book. `next` is the address of the next page. If nothing matches,
    `unknown` names the values of the request that nothing with GPUs has: `tenant nobody`.

    `findings` are those about the order of priorities, of the pods of all pages, as of some seconds ago.

    `workloads` lack pods, which are not among `pods`; `workload_reasons` are the sums of these missing pods, without
    the workloads of which nothing says how many GPUs their pods request: `unmeasured_count` of `workload_count`.
    `gangs` are the partial ones that match the filters.
    """

    version: int = PENDING_VERSION
    at: datetime
    currency: str
    reasons: list[PendingReason]
    tenants: list[PendingTenant] = []
    pods: list[PendingPod]
    pod_count: int
    next: str | None = None
    unknown: list[str] = []
    workloads: list[PendingWorkload] = []
    workload_reasons: list[PendingReason] = []
    workload_count: int = 0
    unmeasured_count: int = 0
    gangs: list[GangEntry] = []
    findings: list[PendingFinding] = []
