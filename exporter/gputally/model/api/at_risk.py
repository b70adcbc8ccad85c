"""The response of `/api/v1/at-risk`: the work that a preemption would destroy now, by job and by node."""

from datetime import datetime
from typing import Final

from msgspec import Struct

VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


class Risk(Struct, frozen=True, kw_only=True, gc=False):
    """Work of running pods since their last checkpoints, as GPU-hours and as exact costs by currency.

    `unpriced_gpu_hours` are those of `gpu_hours` that have no price. The `overdue_pods` declare an interval, and have
    stated no checkpoint for 1.5 times as long. `oldest_checkpoint` is the earliest of the last checkpoints, and
    `checkpoint_age_seconds` its age. `is_upper_bound` if of any of the pods no checkpoint is known: its work counts
    since its start.
    """

    pods: int
    gpus: float
    gpu_hours: float
    costs: dict[str, str]
    unpriced_gpu_hours: float
    oldest_checkpoint: datetime
    checkpoint_age_seconds: float
    is_upper_bound: bool
    overdue_pods: int


class JobAtRisk(Struct, frozen=True, kw_only=True, gc=False):
    """What the preemption of all pods of one job would destroy."""

    namespace: str
    job_kind: str
    job: str
    tier: str
    tenant: str
    risk: Risk


class NodeAtRisk(Struct, frozen=True, kw_only=True, gc=False):
    """What the preemption of all pods on one node would destroy on it.

    `with_groups` includes the pods on other nodes that restart with them, because their group restarts as a whole.
    """

    node: str
    pool: str
    gpu_model: str
    risk: Risk
    with_groups: Risk


class NotAtRisk(Struct, frozen=True, kw_only=True, gc=False):
    """How many `pods` of the request would lose no work, for one reason."""

    reason: str
    text: str
    pods: int


class AtRiskDocument(Struct, frozen=True, kw_only=True):
    """The state at one instant, the most GPU-hours first; `total` is None if no pod would lose work.

    `not_at_risk` are the pods that match the request and would lose none. If no pod matches, `unknown` names the values
    of the request that no pod has: `tenant nobody`.
    """

    version: int = VERSION
    at: datetime
    total: Risk | None
    jobs: list[JobAtRisk]
    nodes: list[NodeAtRisk]
    not_at_risk: list[NotAtRisk] = []
    unknown: list[str] = []
