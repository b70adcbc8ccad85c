"""Jobs that preemptions ended, or hit again and again."""

from monitoring.board import Row
from monitoring.link import Link
from monitoring.panel import ORANGE, Column, Look, table
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT

select = Selectors("cluster", "tier", "tenant")

ENDED_EARLY = select("gputally_jobs_ended_early_total")
REPEATED = select("gputally_repeat_victim_jobs")
_TENANT = (Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),)
_NAMED = "`gputally preemptions --by job` names them."

JOBS = Row(
    "Jobs that preemptions ended or hit again and again",
    (
        table(
            Look(
                "Jobs ended early",
                "Completed early: the Job counts a preempted pod as a success. Failed early: preemptions used up its "
                f"retries. Their work has not finished, and nothing starts them again. {_NAMED}",
                empty="none",
                links=_TENANT,
                width=12,
                height=6,
            ),
            {"tenant": "Tenant", "tier": "Tier", "outcome": "Outcome"},
            Column(head="Jobs", expression=f"{grown_in_all(ENDED_EARLY, 'tenant', 'tier', 'outcome')} > 0", unit=COUNT),
            order="Jobs",
        ),
        table(
            Look(
                "Repeat victims",
                "Jobs of which pods were preempted at three or more times within a day: how many at a time, at most "
                f"in the time range. {_NAMED}",
                empty="none",
                links=_TENANT,
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
