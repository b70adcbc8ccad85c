"""What preemption cost, who paid and who gained, why pods lost their GPUs, and how long it took."""

from dashboards.rows.policy import POLICY
from dashboards.rows.preempted import OF_VICTIMS, by_preemptor, preemption_count, preemptions_of_tenants
from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, Column, Look, Query, bars, counts, stat, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT, GPU_HOURS, MONEY, RATIO, SECONDS

select = Selectors("cluster", "tier", "tenant")

LOST = f"gputally_preemption_lost_gpu_seconds_total{OF_VICTIMS}"
LOST_COST = f"gputally_preemption_lost_cost_total{OF_VICTIMS}"
COST_OF_ALL = select("gputally_allocated_cost_total")
STALLED = select("gputally_preemption_stalled_gpu_seconds_total")
DISRUPTIONS = select("gputally_disruptions_total")
REPEATED = select.now("gputally_repeat_victim_jobs")
OVERRUN = select("gputally_grace_period_exceeded_total")
STEP_BUCKETS = 'gputally_preemption_step_seconds_bucket{cluster=~"$cluster"}'
AT_RISK = select.now("gputally_work_at_risk_gpu_seconds")
AT_RISK_COST = select.now("gputally_work_at_risk_cost")
OVERDUE = select.now("gputally_checkpoints_overdue")
_NONE = "no preemptions"
_WORK = "Work since the last checkpoint, or since the start of pods that state none."

COST = Row(
    "What preemption cost in the time range, who paid and who gained",
    (
        stat(
            Look("Lost GPU-hours", _WORK, unit=GPU_HOURS, empty=_NONE, width=5),
            Query(f"{grown_in_all(LOST)} / 3600", "GPU-hours"),
        ),
        stat(
            Look("Cost of lost work", f"{_WORK} At the prices of that time.", unit=MONEY, empty=_NONE, width=5),
            Query(grown_in_all(LOST_COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look(
                "Share of the cost",
                "The cost of lost work by the cost of all allocated GPUs of these tiers and tenants.",
                unit=RATIO,
                empty="no price book",
                width=5,
            ),
            Query(f"{grown_in_all(LOST_COST, 'currency')} / {grown_in_all(COST_OF_ALL, 'currency')}", "{{currency}}"),
        ),
        stat(
            Look(
                "Stalled GPU-hours",
                "Running pods of a group that waited until the replacement of a preempted one ran.",
                unit=GPU_HOURS,
                empty="no pods waited",
                width=5,
            ),
            Query(f"{grown_in_all(STALLED)} / 3600", "GPU-hours"),
        ),
        preemption_count(width=4),
        table(
            Look(
                "Who paid",
                f"{_WORK} By the tenant and tier of the pods that lost it.",
                empty=_NONE,
                links=(Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "victim_tenant"}),),
                width=12,
            ),
            {"victim_tenant": "Tenant", "victim_tier": "Tier", "currency": "Currency"},
            Column(
                head="Lost GPU-hours",
                expression=f"{grown_in_all(LOST, 'victim_tenant', 'victim_tier')} / 3600",
                unit=GPU_HOURS,
            ),
            Column(
                head="Cost", expression=grown_in_all(LOST_COST, "victim_tenant", "victim_tier", "currency"), unit=MONEY
            ),
            preemptions_of_tenants(),
            order="Lost GPU-hours",
        ),
        by_preemptor("Who gained", order="Preempted GPUs"),
        counts(
            Look(
                "Cost of lost work per day by tenant",
                f"{_WORK} By the tenant of the pods that lost it, when they ended.",
                unit=MONEY,
                empty=_NONE,
                width=12,
            ),
            Query(
                f"sum by (victim_tenant, currency) (increase({LOST_COST}[$__interval]))",
                "{{victim_tenant}} {{currency}}",
            ),
            every="1d",
        ),
        bars(
            Look(
                "Lost GPU-hours by how the last checkpoint is known",
                "`start` means that no checkpoint is known, so that the loss may be smaller.",
                unit=GPU_HOURS,
                empty=_NONE,
                width=12,
            ),
            Query(f"{grown_in_all(LOST, 'basis')} / 3600", "{{basis}}"),
        ),
    ),
)

RISK = Row(
    "At risk",
    (
        timeseries(
            Look(
                "Work at risk by tier",
                "GPU-hours that a preemption of all running pods would have destroyed at that moment.",
                unit=GPU_HOURS,
                empty="no running pods",
            ),
            Query(f"sum by (tier) ({AT_RISK}) / 3600", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look("Cost of the work at risk by tier", "The same, priced.", unit=MONEY, empty="no price book"),
            Query(f"sum by (tier, currency) ({AT_RISK_COST})", "{{tier}} {{currency}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Overdue checkpoints",
                "Running pods that declare an interval and have stated no checkpoint for 1.5 times as long.",
                unit=COUNT,
                empty="no pod declares an interval",
                steps={1: ORANGE},
            ),
            Query(f"sum by (tier, tenant) ({OVERDUE})", "{{tier}} {{tenant}}"),
        ),
    ),
)

CAUSES = Row(
    "Causes",
    (
        counts(
            Look(
                "Disrupted pods by cause",
                "Pods that lost their GPUs before they had ended by themselves. Each bar is an hour, or longer in long "
                "time ranges.",
                unit=COUNT,
                empty="no disrupted pods",
            ),
            Query(f"sum by (cause) (round(increase({DISRUPTIONS}[$__interval])))", "{{cause}}"),
            every="1h",
        ),
        table(
            Look(
                "Disrupted pods by tenant",
                "`deletion` is a request of a user, a controller or a queue system.",
                empty="no disrupted pods",
                links=(Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),),
                width=12,
            ),
            {"tenant": "Tenant", "tier": "Tier", "cause": "Cause"},
            Column(head="Pods", expression=f"{grown_in_all(DISRUPTIONS, 'tenant', 'tier', 'cause')} > 0", unit=COUNT),
            order="Pods",
        ),
    ),
)

STEPS = Row(
    "How long a preemption takes",
    (
        timeseries(
            Look(
                "Median duration by step",
                "Of all tenants. Request: from the decision to the deletion request. Stop: to the end of the last "
                "container. Reuse: from the release to the next pod on that node. Replace: from the decision until "
                "the replacement runs.",
                unit=SECONDS,
                empty=_NONE,
            ),
            Query(
                f"histogram_quantile(0.5, sum by (step, le) (increase({STEP_BUCKETS}[$__range])))",
                "{{step}}",
            ),
        ),
        timeseries(
            Look("90th percentile by step", "The same for the slowest tenth.", unit=SECONDS, empty=_NONE),
            Query(
                f"histogram_quantile(0.9, sum by (step, le) (increase({STEP_BUCKETS}[$__range])))",
                "{{step}}",
            ),
        ),
        stat(
            Look(
                "Beyond the grace period",
                "Disrupted pods that held their GPUs for more than 2 s longer than their grace period.",
                unit=COUNT,
                empty="none",
                steps={1: ORANGE, 10: RED},
            ),
            Query(grown_in_all(OVERRUN), "pods"),
        ),
        stat(
            Look(
                "Repeat victims",
                "Jobs of which pods were preempted at three or more times within a day.",
                unit=COUNT,
                empty="none",
                steps={1: ORANGE},
            ),
            Query(f"sum({REPEATED})", "jobs"),
        ),
    ),
)

BOARD = Board(
    name="preemption",
    title="Preemption",
    description="What preemption cost, who paid and who gained, and why and how pods lost their GPUs.",
    span="7d",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
    ),
    annotations=annotation.ALL,
    rows=(COST, RISK, CAUSES, STEPS, POLICY),
)
