"""The GPU-seconds of ended jobs, and the Jobs that preemptions ended."""

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import counts, gpu_seconds
from gputally.catalog.metric import Metric, MetricType

JOB_GPU_SECONDS = Metric[Snapshot](
    name="gputally_job_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of jobs by how they ended, counted once a job has ended and its pods have released their GPUs.",
    labels=("tier", "tenant", "outcome"),
    rows=gpu_seconds(Total.JOB),
)

JOBS_ENDED_EARLY = Metric[Snapshot](
    name="gputally_jobs_ended_early_total",
    kind=MetricType.COUNTER,
    help=(
        "Jobs that preemptions ended, complete with a preempted pod as a success or failed only by preemptions, by the "
        "tier and tenant with most of the Job's GPU-time."
    ),
    labels=("tier", "tenant", "outcome"),
    rows=counts(Total.ENDED_EARLY),
)

METRICS = (JOB_GPU_SECONDS, JOBS_ENDED_EARLY)
