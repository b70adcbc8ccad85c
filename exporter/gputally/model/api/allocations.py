"""The response of `/api/v1/allocations`: who holds or wants which GPUs now, and what that costs per hour."""

from datetime import datetime
from typing import Final

from msgspec import Struct

VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


class PodAllocation(Struct, frozen=True, kw_only=True, gc=False):
    """A pod that holds `gpus` GPUs, or waits for them in state `pending`.

    `since` is the start of the state, for a pending pod its creation. `cost_per_hour` is a decimal in the document's
    currency; None if a price is missing or the pod is pending. `node` and `pool` are empty while it is pending;
    `gpu_model` is then the model that it requires, `any` for none.
    """

    namespace: str
    pod: str
    uid: str
    tier: str
    tenant: str
    job_kind: str
    job: str
    node: str
    pool: str
    gpu_model: str
    state: str
    gpus: float
    since: datetime
    cost_per_hour: str | None


class NodeCapacity(Struct, frozen=True, kw_only=True, gc=False):
    """A node with its GPUs by state, such as `{"allocated": 6, "free": 2}`."""

    node: str
    gpu_model: str
    pool: str
    gpus: dict[str, float]


class JobPlacement(Struct, frozen=True, kw_only=True, gc=False):
    """The `nodes` that the bound pods of a job occupy, if these have equal requests and are on nodes of one GPU model.

    `nodes_needed` such nodes would hold them, if the nodes were empty.
    """

    namespace: str
    job_kind: str
    job: str
    nodes: int
    nodes_needed: int


class UnaccountedCount(Struct, frozen=True, kw_only=True, gc=False):
    """The `pods` that ask for GPUs which are not accounted, for one reason; `gpus` is None if they are not known."""

    reason: str
    text: str
    pods: int
    gpus: float | None


class AllocationsDocument(Struct, frozen=True, kw_only=True):
    """The state at one instant. `currency` is empty without a price book.

    `nodes` is None for a user who is restricted to tenants. `jobs` are those of `pods` with several bound pods.
    `unaccounted` are the reasons for which any pods of the cluster are not accounted, which are not among `pods`; None
    for a user who is restricted to tenants. If no pod matches, `unknown` names the values of the request that no pod
    has: `tenant nobody`.
    """

    version: int = VERSION
    at: datetime
    currency: str
    pods: list[PodAllocation]
    nodes: list[NodeCapacity] | None
    jobs: list[JobPlacement] = []
    unaccounted: list[UnaccountedCount] | None = None
    unknown: list[str] = []
