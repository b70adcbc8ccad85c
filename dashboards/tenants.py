"""Allocation, usage, idle GPUs and cost of each tenant."""

from dashboards.rows.budgets import BUDGETS
from dashboards.rows.history import BY_DAY_AND_JOB
from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, YELLOW, Column, Look, Query, bars, stat, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import ENERGY, GPU_HOURS, GPUS, MONEY, MONEY_PER_HOUR, RATIO

select = Selectors("cluster", "tier", "tenant", "gpu_model")

ALLOCATED = select("gputally_allocated_gpu_seconds_total")
COST = select("gputally_allocated_cost_total")
MEASURED = select("gputally_measured_gpu_seconds_total")
USED = select("gputally_used_gpu_seconds_total")
IDLE_COST = select("gputally_idle_cost_total")
UNPRICED = select("gputally_unpriced_gpu_seconds_total")
UNOBSERVED = select("gputally_unobserved_gpu_seconds_total")
ENERGY_USED = select("gputally_energy_joules_total")
OF_THE_FLEET = (
    'sum(increase(gputally_capacity_gpu_seconds_total{cluster=~"$cluster", gpu_model=~"$gpu_model"}[$__range]))'
)


CHANGE = (
    f"{grown_in_all(COST, 'tenant', 'currency')}"
    f" / sum by (tenant, currency) (increase({COST}[$__range] offset $__range)) - 1"
)
"""Against the period of the same length before."""
COVERED = (
    'count_over_time(max(gputally_nodes{cluster=~"$cluster"})[$__range:5m]) / count_over_time(vector(1)[$__range:5m])'
)

TOTALS = Row(
    "Totals in the time range",
    (
        stat(
            Look(
                "Cost",
                "Cost of allocated GPUs, with tier multipliers. Accurate to a scrape interval: create bills from "
                "the ledger.",
                unit=MONEY,
                empty="no price book",
                width=4,
            ),
            Query(grown_in_all(COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look(
                "Idle cost",
                "Cost of allocated GPUs that were idle, where agents measured them.",
                unit=MONEY,
                empty="no usage data or no prices",
                width=4,
            ),
            Query(grown_in_all(IDLE_COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look(
                "GPU-hours",
                "Allocated GPU-hours, from binding to release.",
                unit=GPU_HOURS,
                empty="no allocated GPUs",
                width=4,
            ),
            Query(f"{grown_in_all(ALLOCATED)} / 3600", "allocated"),
        ),
        stat(
            Look(
                "Measured",
                "The share of GPU-hours that agents measured. Unmeasured time is neither used nor idle here.",
                unit=RATIO,
                empty="no allocated GPUs",
                width=3,
            ),
            Query(f"{grown_in_all(MEASURED)} / {grown_in_all(ALLOCATED)}", "measured"),
        ),
        stat(
            Look(
                "Unpriced",
                "GPU-hours that no price rule covers. The cost does not include them.",
                unit=GPU_HOURS,
                empty="none",
                steps={0.001: ORANGE},
                width=3,
            ),
            Query(f"{grown_in_all(UNPRICED)} / 3600", "unpriced"),
        ),
        stat(
            Look(
                "Unobserved",
                "GPU-hours in observation gaps, in which pods ended unseen. They are not charged.",
                unit=GPU_HOURS,
                empty="none",
                steps={0.001: YELLOW},
                width=3,
            ),
            Query(f"{grown_in_all(UNOBSERVED)} / 3600", "unobserved"),
        ),
        stat(
            Look(
                "Data kept",
                "The share of the time range of which Prometheus still has data. Below 100 %, it was installed later "
                "or keeps less: kube-prometheus-stack keeps 10 days. Totals then lack the rest; the ledger has it.",
                unit=RATIO,
                empty="no data from the exporter",
                width=3,
            ),
            Query(COVERED, "covered"),
        ),
        table(
            Look(
                "Tenants",
                "Allocated GPU-hours of each tenant, their share of the fleet, cost, utilisation, and the cost of idle "
                "GPUs.",
                empty="no allocated GPUs",
                links=(
                    Link("This tenant only", "tenants", {"tenant": "tenant"}),
                    Link("Pending pods of this tenant", "pending", {"tenant": "tenant"}),
                ),
                width=24,
                height=10,
            ),
            {"tenant": "Tenant", "currency": "Currency"},
            Column(head="GPU-hours", expression=f"{grown_in_all(ALLOCATED, 'tenant')} / 3600", unit=GPU_HOURS),
            Column(
                head="Share of fleet",
                expression=f"clamp_max({grown_in_all(ALLOCATED, 'tenant')} / on () group_left () {OF_THE_FLEET}, 1)",
                unit=RATIO,
            ),
            Column(head="Cost", expression=grown_in_all(COST, "tenant", "currency"), unit=MONEY),
            Column(head="Change of cost", expression=CHANGE, unit=RATIO),
            Column(head="Used", expression=f"{grown_in_all(USED, 'tenant')} / 3600", unit=GPU_HOURS),
            Column(head="Utilisation", expression=select.busy("tenant", whole=True), unit=RATIO),
            Column(head="Idle cost", expression=grown_in_all(IDLE_COST, "tenant", "currency"), unit=MONEY),
            Column(head="Energy", expression=f"{grown_in_all(ENERGY_USED, 'tenant')} / 3600", unit=ENERGY),
            order="GPU-hours",
        ),
        bars(
            Look(
                "Top 10 tenants by cost",
                "Cost of their allocated GPUs in the time range.",
                unit=MONEY,
                empty="no price book",
                height=9,
            ),
            Query(f"topk(10, {grown_in_all(COST, 'tenant', 'currency')})", "{{tenant}} {{currency}}"),
        ),
        bars(
            Look(
                "Top 10 tenants by idle cost",
                "Cost of their allocated GPUs that were idle in the time range.",
                unit=MONEY,
                empty="no usage data or no prices",
                height=9,
            ),
            Query(f"topk(10, {grown_in_all(IDLE_COST, 'tenant', 'currency')})", "{{tenant}} {{currency}}"),
        ),
    ),
)

OVER_TIME = Row(
    "Over time",
    (
        timeseries(
            Look(
                "Allocated GPUs by tenant",
                "A plateau that never ends is a reservation in all but name.",
                unit=GPUS,
                empty="no allocated GPUs",
            ),
            Query(f"sum by (tenant) ({select.now('gputally_allocated_gpus')})", "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Cost per hour by tenant",
                "With tier multipliers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(f"sum by (tenant, currency) (rate({COST}[$__rate_interval])) * 3600", "{{tenant}} {{currency}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Idle GPUs by tenant",
                "Allocated and measured GPUs in which nothing ran. Use above the share of a shared GPU does not offset "
                "idle time.",
                unit=GPUS,
                empty="no usage data: no agents",
            ),
            Query(select.idle("tenant"), "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Utilisation by tenant",
                "The share of the measured time in which its GPUs were busy.",
                unit=RATIO,
                empty="no usage data: no agents",
            ),
            Query(select.busy("tenant"), "{{tenant}}"),
        ),
    ),
)

BOARD = Board(
    name="tenants",
    title="Tenants and cost",
    description="Allocation, usage, idle GPUs and cost of each tenant in the time range.",
    span="30d",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
        Variable("gpu_model", "GPU model", "gputally_allocated_gpus"),
    ),
    annotations=annotation.ALL,
    rows=(TOTALS, BY_DAY_AND_JOB, OVER_TIME, BUDGETS),
)
