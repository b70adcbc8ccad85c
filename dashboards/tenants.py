"""What each tenant held, used, wasted and owes."""

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
BLIND = select("gputally_unobserved_gpu_seconds_total")
ENERGY_USED = select("gputally_energy_joules_total")
OF_THE_FLEET = (
    'sum(increase(gputally_capacity_gpu_seconds_total{cluster=~"$cluster", gpu_model=~"$gpu_model", '
    'state!="overcommitted"}[$__range]))'
)


BILL = Row(
    "The time shown",
    (
        stat(
            Look(
                "Cost",
                "Of what tenants held, with the multipliers of tiers. An estimate to the scrape: bills are "
                "made from the ledger.",
                unit=MONEY,
                empty="no price book",
                width=5,
            ),
            Query(grown_in_all(COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look(
                "... of it idle",
                "What they held and did not use, where agents measured it.",
                unit=MONEY,
                empty="nothing is measured, or has a price",
                width=5,
            ),
            Query(grown_in_all(IDLE_COST, "currency"), "{{currency}}"),
        ),
        stat(
            Look("GPU-hours", "GPUs held, from binding to release.", unit=GPU_HOURS, empty="no pod held a GPU"),
            Query(f"{grown_in_all(ALLOCATED)} / 3600", "held"),
        ),
        stat(
            Look(
                "Measured",
                "The share of them for which an agent knows what the GPUs did. What is not measured is "
                "neither used nor idle here.",
                unit=RATIO,
                empty="no pod held a GPU",
                width=3,
            ),
            Query(f"{grown_in_all(MEASURED)} / {grown_in_all(ALLOCATED)}", "measured"),
        ),
        stat(
            Look(
                "Without a price",
                "GPU-hours that no price rule covers: the cost lacks them.",
                unit=GPU_HOURS,
                empty="none",
                steps={0.001: ORANGE},
            ),
            Query(f"{grown_in_all(UNPRICED)} / 3600", "unpriced"),
        ),
        stat(
            Look(
                "Uncertain",
                "GPU-hours inside intervals in which pods ended unseen. The bill has them at none.",
                unit=GPU_HOURS,
                empty="none",
                steps={0.001: YELLOW},
                width=3,
            ),
            Query(f"{grown_in_all(BLIND)} / 3600", "uncertain"),
        ),
        table(
            Look(
                "Tenants",
                "What each held, its share of all GPUs of the fleet, what that cost, how busy it kept its "
                "GPUs, and what it paid for GPUs that did nothing.",
                empty="no pod held a GPU",
                links=(
                    Link("This tenant alone", "tenants", {"tenant": "tenant"}),
                    Link("What it waits for", "pending", {"tenant": "tenant"}),
                ),
                width=24,
                height=10,
            ),
            {"tenant": "Tenant", "currency": "Currency"},
            Column(head="GPU-hours", expression=f"{grown_in_all(ALLOCATED, 'tenant')} / 3600", unit=GPU_HOURS),
            Column(
                head="Of the fleet",
                expression=f"{grown_in_all(ALLOCATED, 'tenant')} / on () group_left () {OF_THE_FLEET}",
                unit=RATIO,
            ),
            Column(head="Cost", expression=grown_in_all(COST, "tenant", "currency"), unit=MONEY),
            Column(head="Used", expression=f"{grown_in_all(USED, 'tenant')} / 3600", unit=GPU_HOURS),
            Column(head="Busy", expression=select.busy("tenant", whole=True), unit=RATIO),
            Column(head="Idle cost", expression=grown_in_all(IDLE_COST, "tenant", "currency"), unit=MONEY),
            Column(head="Energy", expression=f"{grown_in_all(ENERGY_USED, 'tenant')} / 3600", unit=ENERGY),
            order="GPU-hours",
        ),
        bars(
            Look(
                "Cost, the ten dearest",
                "Tenants by what their GPUs cost in the time shown.",
                unit=MONEY,
                empty="no price book",
                height=9,
            ),
            Query(f"topk(10, {grown_in_all(COST, 'tenant', 'currency')})", "{{tenant}} {{currency}}"),
        ),
        bars(
            Look(
                "Idle cost, the ten dearest",
                "Tenants by what they paid for GPUs that did nothing.",
                unit=MONEY,
                empty="nothing is measured, or has a price",
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
                "GPUs held",
                "By tenant. A plateau that never ends is a reservation by other means.",
                unit=GPUS,
                empty="no pod held a GPU",
            ),
            Query(f"sum by (tenant) ({select.now('gputally_allocated_gpus')})", "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Cost per hour",
                "What they cost per hour, with the multipliers of tiers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(f"sum by (tenant, currency) (rate({COST}[$__rate_interval])) * 3600", "{{tenant}} {{currency}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "GPUs held and idle",
                "GPUs worth of measured time in which nothing ran. Used above one's share, on a shared GPU, "
                "makes up for none of it.",
                unit=GPUS,
                empty="nothing is measured: no agents",
            ),
            Query(select.idle("tenant"), "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Busy",
                "The share of the measured time in which its GPUs worked for it.",
                unit=RATIO,
                empty="nothing is measured: no agents",
            ),
            Query(select.busy("tenant"), "{{tenant}}"),
        ),
    ),
)

BOARD = Board(
    name="tenants",
    title="Tenants and bills",
    description="What each tenant held, used, wasted and owes, in the time shown.",
    span="30d",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
        Variable("gpu_model", "GPU model", "gputally_allocated_gpus"),
    ),
    rows=(BILL, OVER_TIME),
)
