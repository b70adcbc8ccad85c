"""A partial gang in a response of the API."""

from datetime import datetime

from msgspec import Struct

from gputally.model.placement.partial_gang import TaskShort


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
