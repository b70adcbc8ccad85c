"""A job of another system, and how it becomes an allocation."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.facts.allocation import segments_of
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.terms.tier import tier_of
from gputally.model.allocation import End, Outcome, Result, Terms
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import to_datetime

RESOURCE: Final = "gpu"
_POOL: Final = "none"
_MODEL: Final = "unknown"


class ImportedJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a job that had GPUs. Times are µs, `quantity` is µGPU; `end_us` is None while it runs.

    `priority_class` is what tier rules read: the class or quality of service of the other system. Empty texts are not
    known. `run_us` tells the runs of a job apart: when it started, by the first reading of that time; None for a system
    whose jobs run once.
    """

    id: str
    tenant: str
    priority_class: str
    queue: str
    gpu_model: str
    node: str
    quantity: int
    submit_us: int
    start_us: int
    end_us: int | None
    outcome: Outcome
    reason: str
    run_us: int | None = None


class JobClassifier:
    """Classifies jobs by the rules and prices of the cluster. Jobs from `source` have IDs that are unique in it."""

    def __init__(self, *, source: str, rules: Rules, pricing: Pricing) -> None:
        self._source = source
        self._rules = rules
        self._pricing = pricing

    def uid(self, job: ImportedJob) -> str:
        """The UID of its allocation."""
        return f"{self._source}/{job.id}" + ("" if job.run_us is None else f"/{to_datetime(job.run_us).isoformat()}")

    def is_running(self, job: ImportedJob) -> bool:
        """Whether it has not ended yet."""
        return job.outcome is Outcome.RUNNING

    def record(self, job: ImportedJob, *, until_us: int, revision: int) -> PodRecord:
        """The allocation of the job, that of one pod; a running job is allocated up to `until_us`."""
        tenant = job.tenant or UNASSIGNED
        record = PodRecord(
            uid=self.uid(job),
            namespace=tenant,
            name=job.id,
            units=((RESOURCE, 1),),
            class_name=job.priority_class,
            created_us=job.submit_us,
            node=job.node,
            scheduled_us=job.start_us,
            started_us=job.start_us,
            job_kind="Job",
            job=job.id,
            terms=(self._terms(job, tenant),),
            revision=revision,
            **_ending(job),
        )
        return _with_segments(record, self._pricing, until_us)

    def _terms(self, job: ImportedJob, tenant: str) -> Terms:
        model = job.gpu_model or _MODEL
        return Terms(
            from_us=job.start_us,
            tier=tier_of(job.priority_class, None, self._rules),
            tenant=tenant,
            queue=job.queue,
            gpu_model=model,
            pool=_POOL,
            asset=Asset(gpu_model=model, pool=_POOL),
            quantities=((RESOURCE, job.quantity),),
        )


def _with_segments(record: PodRecord, pricing: Pricing, until_us: int) -> PodRecord:
    end_us = until_us if record.end_us is None else record.end_us
    return replace(record, segments=segments_of(record, until_us=end_us, prices=pricing.of_allocation))


def _ending(job: ImportedJob) -> Mapping[str, Any]:
    """The fields of a record from which its outcome follows, see `outcome_of`."""
    match job.outcome:
        case Outcome.RUNNING:
            return {}
        case Outcome.SUCCEEDED:
            more: dict[str, Any] = {"end_by": End.FINISHED, "result": Result("Succeeded", job.reason, 0, is_own=True)}
        case Outcome.FAILED:
            more = {"end_by": End.FINISHED, "result": Result("Failed", job.reason, None, is_own=True)}
        case Outcome.PREEMPTED:
            more = {"end_by": End.FINISHED, "preempted_us": job.end_us, "deletion_us": job.end_us}
        case Outcome.DELETED:
            more = {"end_by": End.DELETED}
        case Outcome.LOST:
            more = {"end_by": End.NODE}
        case _:
            more = {"end_by": End.VANISHED}
    return {**more, "end_us": job.end_us}
