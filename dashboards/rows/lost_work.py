"""Work lost to preemptions, and work at risk: a row of the dashboard of tiers."""

from monitoring.board import Row
from monitoring.panel import Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT, GPU_HOURS, MONEY, RATIO

select = Selectors("cluster", "tier", "tenant")
VICTIMS = 'cluster=~"$cluster", victim_tier=~"$tier", victim_tenant=~"$tenant"'
LOST = f"gputally_preemption_lost_gpu_seconds_total{{{VICTIMS}}}"
LOST_COST = f"gputally_preemption_lost_cost_total{{{VICTIMS}}}"
UPPER_BOUND = f'gputally_preemption_lost_gpu_seconds_total{{{VICTIMS}, basis="start"}}'
STALLED = select("gputally_preemption_stalled_gpu_seconds_total")
KEYS = ("victim_tier", "victim_tenant")

LOST_WORK = Row(
    "Work lost to preemptions",
    (
        stat(
            Look(
                "Lost GPU-hours",
                "Work since the last checkpoint that preemptions destroyed in the time range.",
                unit=GPU_HOURS,
                empty="no work was lost",
            ),
            Query(f"{grown_in_all(LOST)} / 3600", "lost"),
        ),
        stat(
            Look(
                "Upper bound",
                "The share of the lost work whose last checkpoint is not known, so that all work since the start "
                "counts. State checkpoints to reduce it.",
                unit=RATIO,
                empty="no work was lost",
            ),
            Query(f"{grown_in_all(UPPER_BOUND)} / {grown_in_all(LOST)}", "upper bound"),
        ),
        table(
            Look(
                "Lost work by tenant",
                "By the tier and the tenant of the pods that lost their work: the preempted ones, and those that "
                "restarted with them.",
                empty="no work was lost",
                width=16,
            ),
            {"victim_tenant": "Tenant", "victim_tier": "Tier", "currency": "Currency"},
            Column(head="Lost GPU-hours", expression=f"{grown_in_all(LOST, *KEYS)} / 3600", unit=GPU_HOURS),
            Column(head="Lost cost", expression=grown_in_all(LOST_COST, *KEYS, "currency"), unit=MONEY),
            order="Lost GPU-hours",
        ),
        timeseries(
            Look(
                "Work at risk by tier",
                "What a preemption of all running pods would destroy: GPU-hours since their last checkpoints.",
                unit=GPU_HOURS,
                empty="no running pods",
            ),
            Query(f"sum by (tier) ({select.now('gputally_work_at_risk_gpu_seconds')}) / 3600", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Cost of the work at risk by tier",
                "What that work has cost.",
                unit=MONEY,
                empty="no price book",
            ),
            Query(f"sum by (tier, currency) ({select.now('gputally_work_at_risk_cost')})", "{{tier}} {{currency}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "GPU-hours stalled by tier",
                "GPU time of pods that waited for the replacement of a preempted pod of their group.",
                unit=GPU_HOURS,
                empty="no group waited",
            ),
            Query(f"sum by (tier) (increase({STALLED}[$__rate_interval])) / 3600", "{{tier}}"),
        ),
        timeseries(
            Look(
                "Overdue checkpoints",
                "Running pods that declare a checkpoint interval, and have stated no checkpoint for 1.5 times as long.",
                unit=COUNT,
                empty="no pod declares an interval",
            ),
            Query(f"sum by (tenant) ({select.now('gputally_checkpoints_overdue')})", "{{tenant}}"),
        ),
    ),
)
