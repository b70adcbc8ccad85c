"""GPU-hours of ended jobs by how they ended: what came of them, and whose work was lost."""

from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, Column, Look, Query, bars, counts, stat, table
from monitoring.selector import Selectors, grown_in_all, grown_per_bar
from monitoring.unit import GPU_HOURS, RATIO

select = Selectors("cluster", "tier", "tenant")

_METRIC = "gputally_job_gpu_seconds_total"
ENDED = select(_METRIC)
SUCCEEDED = select(_METRIC, 'outcome="succeeded"')
FAILED = select(_METRIC, 'outcome="failed"')
EARLY = select(_METRIC, 'outcome=~"completed_early|failed_early"')
JOBS_ENDED_EARLY = select("gputally_jobs_ended_early_total")
PREEMPTED = select(_METRIC, 'outcome="preempted"')
DELETED = select(_METRIC, 'outcome="deleted"')
LOST = select(_METRIC, 'outcome=~"lost|unknown"')
NOT_SUCCEEDED = select(_METRIC, 'outcome!="succeeded"')
_NONE = "no job with GPUs has ended"
_COUNTED = "A job counts when it has ended and its pods have released their GPUs, with all of its time."


def _hours(series: str, *by: str) -> str:
    return f"{grown_in_all(series, *by)} / 3600"


def _share(series: str, *by: str) -> str:
    return f"{grown_in_all(series, *by)} / {grown_in_all(ENDED, *by)}"


TOTALS = Row(
    "Jobs that ended in the time range",
    (
        stat(
            Look("GPU-hours", _COUNTED, unit=GPU_HOURS, empty=_NONE, width=6),
            Query(_hours(ENDED), "ended"),
        ),
        stat(
            Look(
                "Succeeded",
                "The share of the GPU-hours of ended jobs that went to jobs that succeeded, their failed attempts "
                "included.",
                unit=RATIO,
                empty=_NONE,
                width=6,
            ),
            Query(_share(SUCCEEDED), "succeeded"),
        ),
        stat(
            Look("Failed", "The share of jobs that failed.", unit=RATIO, empty="none", steps={0.1: ORANGE}, width=6),
            Query(_share(FAILED), "failed"),
        ),
        stat(
            Look(
                "Preempted",
                "The share of pods without a Job that were preempted. A Job whose pod is preempted goes on.",
                unit=RATIO,
                empty="none",
                steps={0.1: ORANGE},
                width=6,
            ),
            Query(_share(PREEMPTED), "preempted"),
        ),
        bars(
            Look(
                "Jobs ended by preemptions",
                "Completed early: the Job counts a preempted pod as a success. Failed early: preemptions used up its "
                "retries. Their training has not finished, and nothing starts them again.",
                empty="none",
                height=9,
            ),
            Query(grown_in_all(JOBS_ENDED_EARLY, "tenant", "outcome"), "{{tenant}} {{outcome}}"),
        ),
        bars(
            Look("GPU-hours by outcome", _COUNTED, unit=GPU_HOURS, empty=_NONE, height=9),
            Query(_hours(ENDED, "outcome"), "{{outcome}}"),
        ),
        bars(
            Look("GPU-hours by tier and outcome", _COUNTED, unit=GPU_HOURS, empty=_NONE, height=9),
            Query(_hours(ENDED, "tier", "outcome"), "{{tier}} {{outcome}}"),
        ),
        bars(
            Look(
                "Top 10 tenants by GPU-hours that did not succeed",
                "Jobs that failed, were preempted or deleted, ended early by preemptions, or with their node or "
                "unobserved.",
                unit=GPU_HOURS,
                empty="all jobs succeeded",
                height=9,
            ),
            Query(f"topk(10, {_hours(NOT_SUCCEEDED, 'tenant')})", "{{tenant}}"),
        ),
        counts(
            Look(
                "GPU-hours by end of jobs",
                "A long job counts all at once, when it ends. Each bar is an hour, or longer in long time ranges.",
                unit=GPU_HOURS,
                empty=_NONE,
            ),
            Query(f"sum by (outcome) ({grown_per_bar(ENDED)}) / 3600", "{{outcome}}"),
            every="1h",
        ),
    ),
)

BY_TENANT = Row(
    "Tenants",
    (
        table(
            Look(
                "GPU-hours by tenant",
                f"Ended early: by preemptions. Unknown: ended unobserved, or with their node. {_COUNTED}",
                empty=_NONE,
                links=(Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),),
                width=24,
                height=10,
            ),
            {"tenant": "Tenant"},
            Column(head="GPU-hours", expression=_hours(ENDED, "tenant"), unit=GPU_HOURS),
            Column(head="Succeeded", expression=_share(SUCCEEDED, "tenant"), unit=RATIO),
            Column(head="Failed", expression=_hours(FAILED, "tenant"), unit=GPU_HOURS),
            Column(head="Ended early", expression=_hours(EARLY, "tenant"), unit=GPU_HOURS),
            Column(head="Preempted", expression=_hours(PREEMPTED, "tenant"), unit=GPU_HOURS),
            Column(head="Deleted", expression=_hours(DELETED, "tenant"), unit=GPU_HOURS),
            Column(head="Unknown", expression=_hours(LOST, "tenant"), unit=GPU_HOURS),
            order="GPU-hours",
        ),
    ),
)

BOARD = Board(
    name="jobs",
    title="Jobs",
    description="GPU-hours of ended jobs by outcome, tier and tenant.",
    span="7d",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
    ),
    annotations=annotation.ALL,
    rows=(TOTALS, BY_TENANT),
)
