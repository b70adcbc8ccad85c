"""The response of `/api/v1/what-if`: what the scheduler would do with pods that do not exist yet."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from gputally.model.api.pending import QuotaRefusal
from gputally.model.api.why import Help, NeededResources, ObstacleText, OccupantPod

BODY_BYTES: Final = 256 * 1024
"""The largest manifest that may be sent to that path, after the values that decide nothing were left out."""
WHAT_IF_VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


class AfterWaiting(Struct, frozen=True, kw_only=True, gc=False):
    """What happens to the pods if those that wait with the same or a higher priority have their places first.

    Of those that wait, `placed` fit or preempt; the others leave everything as it is. Then `bound` of the pods are
    bound of those that are bound now, and the next one waits for `reason`. Without `is_complete`, there were too many
    to evaluate.
    """

    placed: int
    bound: int
    reason: str = ""
    is_complete: bool = True


class PodForecast(Struct, frozen=True, kw_only=True):
    """What would happen to `pods` equal pods, named by `name`, if they were created now.

    `bound` of them would be bound to `nodes`, None for a user restricted to tenants, by preemption of `victims` if
    there are any; `refused` could not be created because of `quota`; the others would wait for `reason`, except
    `not_evaluated` pods beyond what one request evaluates. `priority` is None for a class whose value a user
    restricted to tenants does not know from pods of these tenants. `others_waiting` as in `WhyAnswer`; `after_waiting`
    is None if there are none in the whole request.
    """

    name: str
    pods: int
    gpus: float
    tier: str
    class_name: str
    priority: int | None
    may_preempt: bool
    needs: NeededResources
    bound: int
    refused: int = 0
    quota: QuotaRefusal | None = None
    not_evaluated: int = 0
    others_waiting: int = 0
    after_waiting: AfterWaiting | None = None
    nodes: list[str] | None
    victims: list[OccupantPod] = []
    reason: str = ""
    text: str = ""
    obstacles: list[ObstacleText] = []
    occupants: list[OccupantPod] = []
    helps: list[Help] = []


class WhatIfDocument(Struct, frozen=True, kw_only=True):
    """The forecasts, one for each kind of pod, each after those before it. `currency` is empty without a price book.

    `lost_gpu_hours` and `lost_cost` are the work that all victims would lose now; None if it is not known. For
    `is_lost_upper_bound`, see `OccupantPod`. `not_considered` says which resources of the cluster, such as
    `resourcequotas`, were not considered, and why. `not_modelled` are the objects of the manifest whose pods request
    GPUs, or may do so, but of which it is not known how many pods they create: `DaemonSet ml/agent`.
    """

    version: int = WHAT_IF_VERSION
    at: datetime
    currency: str
    forecasts: list[PodForecast]
    lost_gpu_hours: float | None
    lost_cost: str | None
    is_lost_upper_bound: bool = False
    not_considered: dict[str, str] = {}
    not_modelled: list[str] = []
