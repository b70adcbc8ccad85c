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
                "Completed early: the Job counts a preempted pod as a success. Failed early: preemptions used up its "
                "retries. Their work has not finished, and nothing starts them again: start them from their last "
                "checkpoint. Click a tenant for their names.",
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
                "Jobs of which pods were preempted at three or more times within a day: how many at a time, at most "
                "in the time range. Click a tenant for their names.",
                empty="none",
                links=(_JOBS, _TENANT),
                width=12,
                height=6,
            ),
            {"tenant": "Tenant", "tier": "Tier"},
            Column(
                head="Jobs in a day, at most",
                expression=f"max by (tenant, tier) (max_over_time({REPEATED}[$__range])) > 0",
                unit=COUNT,
                steps={1: ORANGE},
            ),
            order="Jobs in a day, at most",
        ),
    ),
)
