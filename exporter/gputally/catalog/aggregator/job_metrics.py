"""The GPU-seconds of ended jobs."""

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals.totals import Total
from gputally.catalog.aggregator.allocation_metrics import gpu_seconds
from gputally.catalog.metric import Metric, MetricType

JOB_GPU_SECONDS = Metric[Snapshot](
    name="gputally_job_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of jobs by how they ended, counted once a job has ended and its pods have released their GPUs.",
    labels=("tier", "tenant", "outcome"),
    rows=gpu_seconds(Total.JOB),
)

METRICS = (JOB_GPU_SECONDS,)
