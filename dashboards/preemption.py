"""What preemption cost, who paid and who gained, why pods lost their GPUs, and how long it took."""

from dashboards.rows.aggregator_pages import BY_TENANT, BY_VICTIM, disrupted_pods, preempted_jobs
from dashboards.rows.policy import POLICY
from dashboards.rows.preempted import OF_VICTIMS, by_tier, preemption_count, preemptions_of_tenants
from dashboards.rows.preempted_jobs import JOBS
from dashboards.rows.preemption_risk import RISK
from dashboards.rows.preemption_steps import STEPS
from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import Column, Look, Query, bars, counts, stat, table
from monitoring.selector import Selectors, grown_in_all, grown_per_bar
from monitoring.unit import COUNT, GPU_HOURS, MONEY, RATIO

select = Selectors("cluster", "tier", "tenant")

LOST = f"gputally_preemption_lost_gpu_seconds_total{OF_VICTIMS}"
LOST_COST = f"gputally_preemption_lost_cost_total{OF_VICTIMS}"
COST_OF_ALL = select("gputally_allocated_cost_total")
LOST_AT_INTERVAL = f"gputally_preemption_lost_at_interval_gpu_seconds_total{OF_VICTIMS}"
DISRUPTION_LOST = select("gputally_disruption_lost_gpu_seconds_total")
DISRUPTION_LOST_COST = select("gputally_disruption_lost_cost_total")
STALLED = select("gputally_preemption_stalled_gpu_seconds_total")
DISRUPTIONS = select("gputally_disruptions_total")
DISRUPTED_PODS = DISRUPTIONS.replace("}", ', cause!="container_restart"}')
UNUSED = select("gputally_preemption_unused_gpus")
_UNUSED_PER_BAR = f"avg_over_time({UNUSED}[$__interval])"
_NONE = "no preemptions"
_WORK = (
    "Work since the last checkpoint. Of pods without a known one, it is all work since their start: an upper bound. "
    "Pods that serve users and placeholders have no work to lose."
)


def _before(counter: str) -> str:
    """What the series grew by in the period of the same length before, by currency."""
    return f"sum by (currency) (increase({counter}[$__range] offset $__range))"


def _lost_with(basis: str, legend: str) -> Query:
    """The loss of the pods whose last checkpoint is known in that way."""
    lost = LOST.replace("}", f', basis=~"{basis}"}}')
    return Query(f"{grown_in_all(lost)} / 3600", legend)


COST = Row(
    "What preemption cost in the time range, who paid and who gained",
    (
        stat(
            Look("Lost GPU-hours", _WORK, unit=GPU_HOURS, empty=_NONE, width=4),
            Query(f"{grown_in_all(LOST)} / 3600", "GPU-hours"),
        ),
        stat(
            Look(
                "Cost of lost work",
                f"{_WORK} At the prices of that time, without stalled and unused GPU-hours.",
                unit=MONEY,
                empty=_NONE,
                width=4,
            ),
            Query(grown_in_all(LOST_COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look(
                "Share of allocated cost",
                "The cost of lost work, which is an upper bound as far as no checkpoint is known, by the cost of all "
                "allocated GPUs of these tiers and tenants. Free GPUs have "
                "no tenant and are left out.",
                unit=RATIO,
                empty="no price book",
                width=4,
            ),
            Query(f"{grown_in_all(LOST_COST, 'currency')} / {grown_in_all(COST_OF_ALL, 'currency')}", "{{currency}}"),
        ),
        stat(
            Look(
                "Share in the period before",
                "The same share in the period of the same length before the time range, as far as Prometheus still "
                "has data of it: kube-prometheus-stack keeps 10 days.",
                unit=RATIO,
                empty="no data",
                width=4,
            ),
            Query(f"{_before(LOST_COST)} / {_before(COST_OF_ALL)}", "{{currency}}"),
        ),
        stat(
            Look(
                "Stalled GPU-hours",
                "Running pods of a group that waited until the replacement of a preempted one ran.",
                unit=GPU_HOURS,
                empty="no pods waited",
                width=4,
            ),
            Query(f"{grown_in_all(STALLED)} / 3600", "GPU-hours"),
        ),
        preemption_count(width=4),
        table(
            Look(
                "Who paid",
                f"{_WORK} By the tenant and tier of the pods that lost it.",
                empty=_NONE,
                links=(
                    preempted_jobs(BY_VICTIM),
                    Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "victim_tenant"}),
                ),
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
        by_tier(),
        counts(
            Look(
                "Cost of lost work per day by tenant",
                f"{_WORK} By the tenant of the pods that lost it, when they ended. Bars are estimates: "
                "the totals are in Who paid.",
                unit=MONEY,
                empty=_NONE,
                width=12,
            ),
            Query(
                f"sum by (victim_tenant, currency) ({grown_per_bar(LOST_COST)})",
                "{{victim_tenant}} {{currency}}",
            ),
            every="1d",
        ),
        bars(
            Look(
                "Lost GPU-hours by source of the checkpoint time",
                "How the time of the last checkpoint is known. Where it is not, all work since the start of the pod "
                "counts: an upper bound.",
                unit=GPU_HOURS,
                empty=_NONE,
                width=12,
            ),
            _lost_with("start", "unknown (upper bound)"),
            _lost_with("interval", "declared interval"),
            _lost_with("annotation|termination-message", "stated by the pod"),
            _lost_with("sigterm", "saved on SIGTERM"),
        ),
        bars(
            Look(
                "Lost GPU-hours with other checkpoint intervals",
                "The actual loss, and what the same preemptions would have destroyed if every pod had saved a "
                "checkpoint so often since its start: the difference is the saving. Time spent on saving is not "
                "included. `gputally preemptions` has it for each preemption.",
                unit=GPU_HOURS,
                empty=_NONE,
                width=12,
            ),
            Query(f"{grown_in_all(LOST)} / 3600", "actual"),
            Query(f"{grown_in_all(LOST_AT_INTERVAL, 'interval')} / 3600", "every {{interval}}"),
        ),
        counts(
            Look(
                "Unused GPU-hours in the hour after a preemption",
                "From the release by a preempted pod until another pod takes the GPUs, in the first hour alone, by the "
                "tier that lost them: victims had more GPUs than their preemptors needed. "
                "`gputally preemptions` has all of them as stranded GPU-hours. Each bar is an hour, or longer in long "
                "time ranges.",
                unit=GPU_HOURS,
                empty="pods took all freed GPUs at once",
                width=12,
            ),
            Query(
                f"sum by (tier) (max by (cluster, tier) ({_UNUSED_PER_BAR})) * $__interval_ms / 1000 / 3600 > 0",
                "{{tier}}",
            ),
            every="1h",
        ),
    ),
)

CAUSES = Row(
    "Causes",
    (
        counts(
            Look(
                "Disrupted pods by cause",
                "Pods that lost their GPUs before they had ended by themselves. `deletion` is a request of a user or a "
                "controller, such as a scale-down: its losses are not counted. Restarts of containers are not "
                "included: their pods kept the GPUs. Each bar is an hour, or longer in long time ranges.",
                unit=COUNT,
                empty="no disrupted pods",
                width=12,
            ),
            Query(f"sum by (cause) (round({grown_per_bar(DISRUPTED_PODS)}))", "{{cause}}"),
            every="1h",
        ),
        table(
            Look(
                "Disrupted pods by tenant",
                "What each cause destroyed; of `deletion` it is not counted. Lost is the work since the last "
                "checkpoint, of these pods and of those that restarted with them. `container_restart` counts restarts "
                "of containers, whose pods kept their GPUs.",
                empty="no disrupted pods",
                links=(
                    disrupted_pods({**BY_TENANT, "cause": "cause"}),
                    Link("GPU-hours and cost of this tenant", "tenants", {"tenant": "tenant"}),
                ),
                width=12,
            ),
            {"tenant": "Tenant", "tier": "Tier", "cause": "Cause", "currency": "Currency"},
            Column(head="Pods", expression=f"{grown_in_all(DISRUPTIONS, 'tenant', 'tier', 'cause')} > 0", unit=COUNT),
            Column(
                head="Lost GPU-hours",
                expression=f"{grown_in_all(DISRUPTION_LOST, 'tenant', 'tier', 'cause')} / 3600",
                unit=GPU_HOURS,
            ),
            Column(
                head="Cost",
                expression=grown_in_all(DISRUPTION_LOST_COST, "tenant", "tier", "cause", "currency"),
                unit=MONEY,
            ),
            order="Lost GPU-hours",
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
    rows=(COST, JOBS, STEPS, RISK, CAUSES, POLICY),
)
