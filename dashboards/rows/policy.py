"""What PriorityClasses, quotas and disruption budgets say, and which disruptions violate a budget."""

from dashboards.rows.aggregator_pages import BY_TENANT, disrupted_pods, preempted_jobs
from dashboards.rows.preempted import by_preemptor
from monitoring.board import Row
from monitoring.link import Link
from monitoring.panel import RED, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT, EXACT, GPUS

select = Selectors("cluster", "tier", "tenant")

FORBIDDEN = 'gputally_forbidden_preemptions_total{cluster=~"$cluster", victim_tier=~"$tier"}'
VIOLATIONS = select("gputally_disruption_budget_violations_total")
QUOTA = select.now("gputally_quota_hard_gpus")
QUOTA_USED = select.now("gputally_quota_used_gpus")
QUOTA_REFUSED = select.now("gputally_quota_refused_gpus")
GPUS_NOW = select.now("gputally_capacity_gpus")
CLASS_VALUE = select("gputally_priority_class_value")

POLICY = Row(
    "Policy",
    (
        stat(
            Look(
                "Not permitted",
                "Preemptions of pods whose priority was not lower, or by pods whose preemptionPolicy is Never. "
                "Those by Kueue are not checked: it has its own rules.",
                unit=COUNT,
                empty="no preemptions",
                steps={1: RED},
                links=(preempted_jobs({}),),
                width=4,
            ),
            Query(grown_in_all(FORBIDDEN), "preemptions"),
        ),
        table(
            Look(
                "Violated disruption budgets",
                "Disrupted pods of which a PodDisruptionBudget allowed no disruption when that was decided. The "
                "scheduler may do so: it only prefers other victims. Click a tenant for its disrupted pods; "
                "`gputally preemptions --output csv` marks those of a violated budget.",
                empty="none, or PodDisruptionBudgets are not watched",
                links=(
                    disrupted_pods({**BY_TENANT, "cause": "cause"}),
                    Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),
                ),
                width=8,
            ),
            {"tenant": "Tenant", "tier": "Tier", "cause": "Cause"},
            Column(head="Pods", expression=f"{grown_in_all(VIOLATIONS, 'tenant', 'tier', 'cause')} > 0", unit=COUNT),
            order="Pods",
        ),
        by_preemptor("Who preempted whom", order="Preempted GPUs"),
        table(
            Look(
                "PriorityClasses",
                "Pods of a class may preempt those of lower ones, unless its preemptionPolicy is Never.",
                empty="PriorityClasses cannot be read",
                width=24,
                height=7,
            ),
            {
                "priority_class": "Class",
                "tier": "Tier",
                "preemption_policy": "preemptionPolicy",
                "global_default": "globalDefault",
            },
            Column(
                head="Value",
                expression=f"max by (priority_class, tier, preemption_policy, global_default) ({CLASS_VALUE})",
                unit=EXACT,
            ),
            order="Value",
        ),
        timeseries(
            Look(
                "GPU quotas and physical GPUs",
                "The limits of all tenants by tier, and the GPUs of the nodes: above them, tenants may all be within "
                "their quotas and still wait. `any` limits several tiers at once.",
                unit=GPUS,
                empty="ResourceQuotas are not watched",
            ),
            Query(f"sum by (tier) ({QUOTA})", "quotas of {{tier}}"),
            Query(f"sum({GPUS_NOW})", "GPUs"),
        ),
        table(
            Look(
                "GPU quotas by tenant and tier",
                "Use counts running and pending pods. Refused are GPUs of pods that the quota does not let be created, "
                "if Events FailedCreate are watched. `any` limits several tiers at once.",
                empty="ResourceQuotas are not watched",
                links=(Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),),
                width=12,
            ),
            {"tenant": "Tenant", "tier": "Tier"},
            Column(head="Limit", expression=f"sum by (tenant, tier) ({QUOTA})", unit=GPUS),
            Column(head="Used", expression=f"sum by (tenant, tier) ({QUOTA_USED})", unit=GPUS),
            Column(
                head="Headroom",
                expression=f"sum by (tenant, tier) ({QUOTA}) - sum by (tenant, tier) ({QUOTA_USED})",
                unit=GPUS,
            ),
            Column(head="Refused", expression=f"sum by (tenant, tier) ({QUOTA_REFUSED})", unit=GPUS),
            order="Limit",
        ),
    ),
)
