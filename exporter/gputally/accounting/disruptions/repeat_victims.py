"""Jobs whose pods are preempted again and again, so that they hardly get on."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import STORED
from gputally.accounting.base.state_part import KeyedPart
from gputally.model.disruptions import OWN_JOB, Disruption
from gputally.model.units import US_PER_DAY

OFTEN: Final = 3
"""From so many preemption times within a day on, a job is a repeat victim."""
MOST: Final = STORED["preempted_job"].most
"""Limit of stored jobs; beyond it, the one that was preempted longest ago is dropped."""


class PreemptedJob(Struct, frozen=True, kw_only=True, gc=False):
    """The times of the last preemptions of a job (µs), at most `OFTEN`, the oldest first: see `JobPreemptions`."""

    key: str
    tier: str
    tenant: str
    times_us: tuple[int, ...]


class RepeatVictims(KeyedPart[PreemptedJob]):
    """Jobs with a preemption within a day, by namespace, kind and name. Pods without an owner are no jobs."""

    name = "preempted_job"
    kinds = ()

    def __init__(self, limit: Callable[[str, str], str]) -> None:
        super().__init__()
        self._limit = limit

    def preempted(self, first: Disruption) -> None:
        """A job was preempted, by a scheduler or a queue; `first` is the first pod of it that was observed."""
        if not first.job or first.job_kind == OWN_JOB:
            return
        key = f"{first.victim_namespace}/{first.job_kind}/{first.job}"
        tier, tenant = self._limit("tier", first.victim_tier), self._limit("tenant", first.victim_tenant)
        known = self.known.pop(key, PreemptedJob(key=key, tier=tier, tenant=tenant, times_us=()))
        times_us = tuple(sorted({*known.times_us, first.decided_us}))[-OFTEN:]
        self.known[key] = new = replace(known, tier=tier, tenant=tenant, times_us=times_us)
        if new != known:
            self._touched.add(key)
        if len(self.known) > MOST:
            self._remove(min(self.known, key=lambda each: self.known[each].times_us[-1]))

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        for key in [key for key, each in self.known.items() if each.times_us[-1] < now_us - US_PER_DAY]:
            self._remove(key)

    def counted(self, now_us: int) -> Counter[tuple[str, str]]:
        """The repeat victims of the last day, by exported tier and tenant; 0 for others that were preempted."""
        found = Counter[tuple[str, str]]()
        for each in self.known.values():
            is_repeated = len(each.times_us) >= OFTEN and each.times_us[0] >= now_us - US_PER_DAY
            found[each.tier, each.tenant] += is_repeated
        return found

    def restore(self, documents: Iterable[PreemptedJob], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            times_us = tuple(sorted({min(us, at_us) for us in each.times_us}))
            self.known[each.key] = replace(each, times_us=times_us)
