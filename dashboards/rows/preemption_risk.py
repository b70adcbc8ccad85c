"""What a preemption would destroy now, and whose checkpoints are overdue."""

from dashboards.rows.aggregator_pages import AT_RISK as AT_RISK_PAGE
from monitoring.board import Row
from monitoring.panel import ORANGE, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPU_HOURS, MONEY

select = Selectors("cluster", "tier", "tenant")

SERVING_TIERS = select("gputally_tier_info", 'serving="true"')
_NOT_SERVING = f"unless on (cluster, tier) {SERVING_TIERS}"
AT_RISK = f"{select.now('gputally_work_at_risk_gpu_seconds')} {_NOT_SERVING}"
AT_RISK_COST = f"{select.now('gputally_work_at_risk_cost')} {_NOT_SERVING}"
OVERDUE = select.now("gputally_checkpoints_overdue")
_NO_PODS = "no running pods"
_NO_INTERVAL = "no pod declares an interval"
_OVERDUE = "Running pods that declare an interval and have stated no checkpoint for 1.5 times as long."

RISK = Row(
    "At risk",
    (
        stat(
            Look(
                "Work at risk now",
                "What a preemption of all running pods, without those of serving tiers, would destroy at the end of "
                "the time range. Of pods without a known checkpoint, it is all work since their start: an upper "
                "bound.",
                unit=GPU_HOURS,
                empty=_NO_PODS,
                width=8,
            ),
            Query(f"sum({AT_RISK}) / 3600", "GPU-hours"),
        ),
        stat(
            Look(
                "Cost of work at risk now",
                "The cost of that work, at the prices of the time when it was done.",
                unit=MONEY,
                empty="no running pods, or no prices",
                width=8,
            ),
            Query(f"sum by (currency) ({AT_RISK_COST})", "{{currency}}"),
        ),
        stat(
            Look(
                "Overdue checkpoints now",
                f"{_OVERDUE} The table has them by tenant.",
                unit=COUNT,
                empty=_NO_INTERVAL,
                steps={1: ORANGE},
                width=8,
            ),
            Query(f"sum({OVERDUE})", "pods"),
        ),
        table(
            Look(
                "Work at risk now, by tenant",
                "Work of running pods since their last checkpoints, and pods whose checkpoint is overdue. Pods that "
                "serve user traffic save no work. Click a tenant for its jobs and nodes.",
                empty=_NO_PODS,
                links=(AT_RISK_PAGE,),
                width=12,
            ),
            {"tenant": "Tenant", "tier": "Tier", "currency": "Currency"},
            Column(head="GPU-hours", expression=f"sum by (tenant, tier) ({AT_RISK}) / 3600 > 0", unit=GPU_HOURS),
            Column(head="Cost", expression=f"sum by (tenant, tier, currency) ({AT_RISK_COST}) > 0", unit=MONEY),
            Column(head="Overdue pods", expression=f"sum by (tenant, tier) ({OVERDUE}) > 0", unit=COUNT),
            order="GPU-hours",
        ),
        timeseries(
            Look(
                "Work at risk by tier",
                "GPU-hours that a preemption of all running pods would have destroyed at that moment. Pods that serve "
                "user traffic save no work.",
                unit=GPU_HOURS,
                empty=_NO_PODS,
                width=6,
            ),
            Query(f"sum by (tier) ({AT_RISK}) / 3600", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Overdue checkpoints by tenant",
                f"{_OVERDUE} A line ends with the last such pod, and its legend has the last value: see the table "
                "for now.",
                unit=COUNT,
                empty=_NO_INTERVAL,
                steps={1: ORANGE},
                width=6,
            ),
            Query(f"sum by (tier, tenant) ({OVERDUE})", "{{tier}} {{tenant}}"),
        ),
    ),
)
