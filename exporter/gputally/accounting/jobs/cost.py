"""The cost of each job so far, in USD: what its existing pods cost, and those that are gone.

A job is what reports call one: by namespace, kind and name. This is opt-in, for the metric `training_job_cost_usd`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.accounting.base.state_part import StatePart
from gputally.model.kube.kinds import Limit
from gputally.model.pod_record import PodRecord
from gputally.model.price import JOB_COST_CURRENCY
from gputally.model.units import US_PER_HOUR

KEPT_US: Final = 24 * US_PER_HOUR
"""How long the cost of a job without pods is kept after its last one ended."""
"""Limit of jobs with pods that are gone. Above it, the one that lost a pod first is forgotten."""
OTHER: Final = "other"
_ROUND_US: Final = US_PER_HOUR

Job = tuple[str, str, str]
"""Namespace, kind and name."""
Costs = dict[tuple[str, str], int]
"""Cost (see `COST_UNIT`) by exported tenant and GPU model."""
Labels = tuple[str, str, str, str]
"""Job name, tenant, GPU model and namespace."""


class JobCostRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The cost of the pods of one job that are gone, by tenant and GPU model; the last one left at `at_us`."""

    namespace: str
    job_kind: str
    job: str
    costs: tuple[tuple[str, str, int], ...]
    at_us: int


class JobCostsNow(Struct, frozen=True, kw_only=True):
    """All pods and all kept costs at `now_us`, immutable: another thread may derive the costs."""

    pods: tuple[PodRecord, ...]
    gone: tuple[JobCostRecord, ...]
    accounting_start_us: int
    now_us: int

    def top(self, limit: int) -> Mapping[Labels, int]:
        """The highest costs of jobs that run or ended within `KEPT_US`; others are added up with job name `other`."""
        recent = recent_jobs(self.pods, self.gone, now_us=self.now_us)
        found: dict[Labels, int] = {}
        for job, costs in self._parts():
            if job in recent:
                for (tenant, model), cost in costs.items():
                    labels = job[2], tenant, model, job[0]
                    found[labels] = found.get(labels, 0) + cost
        ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = dict(ordered[:limit])
        for (_, tenant, model, _), cost in ordered[limit:]:
            labels = OTHER, tenant, model, OTHER
            shown[labels] = shown.get(labels, 0) + cost
        return shown

    def _parts(self) -> Iterator[tuple[Job, Costs]]:
        for each in self.gone:
            yield _job_of(each), {(tenant, model): cost for tenant, model, cost in each.costs}
        for pod in self.pods:
            yield _job_of(pod), costs_of(pod, from_us=self.accounting_start_us, now_us=self.now_us)


class JobCosts(StatePart[JobCostRecord]):
    """The costs of pods that are gone, by job, in the order of their last loss of a pod; none are added unless on."""

    name = "job-cost"
    document_limit = Limit(None, 10_000)
    kinds = ()

    def __init__(self, accounting_start_us: int) -> None:
        self.is_on = False
        self._start_us = accounting_start_us
        self._records: dict[Job, JobCostRecord] = {}
        self._touched: set[Job] = set()
        self._next_round_us = 0

    def add(self, record: PodRecord, *, at_us: int) -> None:
        """A deleted pod leaves the working state."""
        costs = costs_of(record, from_us=self._start_us, now_us=at_us) if self.is_on else {}
        if not costs:
            return
        job = _job_of(record)
        if known := self._records.pop(job, None):
            for tenant, model, cost in known.costs:
                costs[tenant, model] = costs.get((tenant, model), 0) + cost
        flat = tuple((*payer, cost) for payer, cost in costs.items())
        self._records[job] = JobCostRecord(namespace=job[0], job_kind=job[1], job=job[2], costs=flat, at_us=at_us)
        self._touched.add(job)
        if len(self._records) > self.document_limit.most:
            self._drop(next(iter(self._records)))

    def forget(self, now_us: int, pods: Mapping[str, PodRecord]) -> None:
        """Drop, now and then, jobs that ended long ago."""
        if now_us >= self._next_round_us and self._records:
            self._next_round_us = now_us + _ROUND_US
            recent = recent_jobs(pods.values(), self._records.values(), now_us=now_us)
            for job in self._records.keys() - recent:
                self._drop(job)

    def read(self, pods: Iterable[PodRecord], *, now_us: int) -> JobCostsNow | None:
        """The costs at `now_us`; None unless on."""
        if not self.is_on:
            return None
        gone = tuple(self._records.values())
        return JobCostsNow(pods=tuple(pods), gone=gone, accounting_start_us=self._start_us, now_us=now_us)

    def drain(self) -> dict[str, JobCostRecord | None]:
        """See `StatePart.drain`."""
        changed = {"/".join(job): self._records.get(job) for job in self._touched}
        self._touched.clear()
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self._touched.update(self._records)

    def restore(self, documents: Iterable[JobCostRecord], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        self._records = {_job_of(each): each for each in sorted(documents, key=lambda each: each.at_us)}

    def _drop(self, job: Job) -> None:
        del self._records[job]
        self._touched.add(job)


def recent_jobs(pods: Iterable[PodRecord], gone: Iterable[JobCostRecord], *, now_us: int) -> set[Job]:
    """Jobs with a pod that has not ended, or that ended within `KEPT_US`."""
    long_ago_us = now_us - KEPT_US
    found = {_job_of(pod) for pod in pods if pod.end_us is None or pod.end_us >= long_ago_us}
    return found | {_job_of(each) for each in gone if each.at_us >= long_ago_us}


def costs_of(record: PodRecord, *, from_us: int, now_us: int) -> Costs:
    """What a pod has cost in USD from `from_us` on; its segments in other currencies do not count."""
    found: Costs = {}
    for each in record.segments:
        if each.price and each.price.currency == JOB_COST_CURRENCY:
            end_us = now_us if each.end_us is None else min(each.end_us, now_us)
            cost = each.price.cost(each.quantity * max(0, end_us - max(each.start_us, from_us)))
            payer = each.labels[1], each.labels[2]
            found[payer] = found.get(payer, 0) + cost
    return found


def _job_of(found: PodRecord | JobCostRecord) -> Job:
    return found.namespace, found.job_kind, found.job
