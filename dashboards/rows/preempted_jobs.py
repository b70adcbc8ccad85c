"""Jobs that preemptions ended, or hit again and again, and links to their names."""

from dashboards.rows.aggregator_pages import BY_TENANT, ENDED_EARLY, preempted_jobs
from monitoring.board import Row
from monitoring.link import Link
from monitoring.panel import ORANGE, Column, Look, table
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT

select = Selectors("cluster", "tier", "tenant")

ENDED = select("gputally_jobs_ended_early_total")
REPEATED = select("gputally_repeat_victim_jobs")
_TENANT = Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"})
_JOBS = preempted_jobs(BY_TENANT)

JOBS = Row(
    "Jobs that preemptions ended or hit again and again",
    (
        table(
            Look(
                "Jobs ended early",
                "`completed_early`: a preempted pod exited with 0, so the Job counts it as a success. `failed_early`: "
                "preemptions used up the retries. Nothing starts these jobs again: start them from their last "
                "checkpoint. To prevent it, ignore DisruptionTarget in the podFailurePolicy, and exit with another "
                "code than 0 on SIGTERM. Click a tenant for the names of its jobs.",
                empty="none",
                links=(ENDED_EARLY, _JOBS, _TENANT),
                width=12,
                height=6,
            ),
            {"tenant": "Tenant", "tier": "Tier", "outcome": "Outcome"},
            Column(head="Jobs", expression=f"{grown_in_all(ENDED, 'tenant', 'tier', 'outcome')} > 0", unit=COUNT),
            order="Jobs",
        ),
        table(
            Look(
                "Repeat victims",
                "Jobs that were preempted three or more times within 24 h. The count is the highest at any "
                "moment, so a longer time range may have had more such jobs. Click a tenant for its preempted jobs: "
                "those that the list has several times are the victims.",
                empty="none",
                links=(_JOBS, _TENANT),
                width=12,
                height=6,
            ),
            {"tenant": "Tenant", "tier": "Tier"},
            Column(
                head="Most jobs at once",
                expression=f"max by (tenant, tier) (max_over_time({REPEATED}[$__range])) > 0",
                unit=COUNT,
                steps={1: ORANGE},
            ),
            order="Most jobs at once",
        ),
    ),
)
