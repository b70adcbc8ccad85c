"""What the fleet is, what it does, and what it costs: the page to look at first."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, STATES, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import GPUS, MONEY, MONEY_PER_HOUR, RATIO, WATTS

select = Selectors("cluster", "gpu_model")

PHYSICAL = 'state!="overcommitted"'
ALLOCATED = 'state="allocated"'
OVERCOMMITTED = 'state="overcommitted"'
UNUSABLE = 'state=~"unknown|unhealthy|cordoned"'
NOT_ALLOCATED = 'state!~"allocated|overcommitted"'
GPUS_NOW = f"sum({select.now('gputally_capacity_gpus', PHYSICAL)})"
ALLOCATED_NOW = f"sum({select.now('gputally_capacity_gpus', ALLOCATED)})"


BUSY = select.busy()

NOW = Row(
    "Now",
    (
        stat(
            Look("GPUs", "Physical GPUs of the nodes, whatever their state.", unit=GPUS, empty="no exporter answers"),
            Query(GPUS_NOW, "GPUs"),
        ),
        stat(
            Look(
                "Allocated",
                "The share of the GPUs that pods hold. Below it money is paid for GPUs nobody asked for.",
                unit=RATIO,
                empty="no GPUs",
            ),
            Query(f"{ALLOCATED_NOW} / {GPUS_NOW}", "allocated"),
            trend=True,
        ),
        stat(
            Look(
                "Busy while allocated",
                "Of the GPU time that agents measured in allocated GPUs, the share in which they worked.",
                unit=RATIO,
                empty="nothing is measured: no agents",
            ),
            Query(BUSY, "busy"),
            trend=True,
        ),
        stat(
            Look(
                "Cost per hour",
                "What all GPUs cost per hour, by the price book.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(
                f"sum by (currency) ({select.rate('gputally_capacity_cost_total', PHYSICAL)}) * 3600", "{{currency}}"
            ),
        ),
        stat(
            Look(
                "... of it not allocated",
                "What GPUs cost per hour that no pod holds: free, cordoned, unhealthy, unsliced, unknown.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
                links=(Link("By tenant", "tenants"),),
            ),
            Query(
                f"sum by (currency) ({select.rate('gputally_capacity_cost_total', NOT_ALLOCATED)}) * 3600",
                "{{currency}}",
            ),
        ),
        stat(
            Look(
                "... of it allocated, but idle",
                "What pods hold and do not use, per hour, where agents measure it.",
                unit=MONEY_PER_HOUR,
                empty="nothing is measured, or has a price",
                links=(Link("Whose they are", "tenants"),),
            ),
            Query(f"sum by (currency) ({select.rate('gputally_idle_cost_total')}) * 3600", "{{currency}}"),
        ),
    ),
)

CAPACITY = Row(
    "Capacity",
    (
        timeseries(
            Look(
                "What becomes of the GPUs",
                "Every physical GPU has one state: what no pod holds is free, but that of a node that is "
                "unknown or cordoned, unhealthy or unsliced GPUs. The stack is as high as the fleet is large.",
                unit=GPUS,
                empty="no exporter answers",
                height=9,
            ),
            Query(f"sum by (state) ({select.now('gputally_capacity_gpus', PHYSICAL)})", "{{state}}"),
            stacked=True,
            colors=STATES,
        ),
        table(
            Look(
                "By model and pool",
                "Physical GPUs now, how many pods hold, and how many cannot be given to any.",
                links=(Link("Its tenants", "tenants", {"gpu_model": "gpu_model"}),),
                empty="no exporter answers",
                height=9,
            ),
            {"gpu_model": "Model", "pool": "Pool"},
            Column(
                head="GPUs",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', PHYSICAL)})",
                unit=GPUS,
            ),
            Column(
                head="Allocated",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', ALLOCATED)})"
                f" / sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', PHYSICAL)})",
                unit=RATIO,
            ),
            Column(
                head="Unusable",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', UNUSABLE)})",
                unit=GPUS,
                steps={0.001: RED},
            ),
            Column(
                head="Without price",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_unpriced_gpus')})",
                unit=GPUS,
                steps={0.001: ORANGE},
            ),
            order="GPUs",
        ),
        timeseries(
            Look(
                "Allocated beyond what there is",
                "GPUs that pods hold of nodes that have no such GPU any more: one failed under its pod, or "
                "its device plugin is starting again. More than a moment of it needs a look at the node.",
                unit=GPUS,
                empty="none",
                steps={0.001: RED},
                height=7,
            ),
            Query(
                f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', OVERCOMMITTED)})",
                "{{gpu_model}} {{pool}}",
            ),
        ),
        timeseries(
            Look(
                "Used by nobody's pod",
                "GPUs that something used while no container held them: a process outside "
                "Kubernetes, or one that outlived its pod.",
                unit=GPUS,
                empty="nothing is measured: no agents",
                steps={0.5: YELLOW},
                height=7,
            ),
            Query(
                f"sum by (gpu_model, pool) ({select.rate('gputally_unallocated_used_gpu_seconds_total')})",
                "{{gpu_model}} {{pool}}",
            ),
        ),
    ),
)

UTILISATION = Row(
    "Utilisation",
    (
        timeseries(
            Look(
                "Paid, held, used",
                "Physical GPUs, those that pods hold, and those worth of work that was done. The first gap "
                "is for whoever sizes the fleet, the second for whoever holds the GPUs.",
                unit=GPUS,
                empty="no exporter answers",
            ),
            Query(GPUS_NOW, "paid"),
            Query(ALLOCATED_NOW, "held"),
            Query(f"sum({select.rate('gputally_used_gpu_seconds_total')})", "used"),
        ),
        timeseries(
            Look(
                "Busy while allocated, by model",
                "Used GPU time over measured GPU time. Time that no agent measured is in neither.",
                unit=RATIO,
                empty="nothing is measured: no agents",
            ),
            Query(
                select.busy("gpu_model"),
                "{{gpu_model}}",
            ),
        ),
    ),
)

MONEY_AND_POWER = Row(
    "Money and power",
    (
        timeseries(
            Look(
                "Cost per hour, by what became of the GPUs",
                "What the GPUs cost per hour, by their state, without the multipliers of tiers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(
                f"sum by (state, currency) ({select.rate('gputally_capacity_cost_total', PHYSICAL)}) * 3600",
                "{{state}} {{currency}}",
            ),
            stacked=True,
            colors=STATES,
        ),
        timeseries(
            Look(
                "Power",
                "What the GPUs draw, as the growth of their meters, with and without a holder.",
                unit=WATTS,
                empty="nothing is measured: no agents",
            ),
            Query(f"sum({select.rate('gputally_energy_joules_total')})", "held"),
            Query(f"sum({select.rate('gputally_unallocated_energy_joules_total')})", "held by nobody"),
            stacked=True,
        ),
        stat(
            Look(
                "Cost of the time shown",
                "What all GPUs cost in the time shown.",
                unit=MONEY,
                empty="no price book",
                width=8,
            ),
            Query(
                f"sum by (currency) (increase({select('gputally_capacity_cost_total', PHYSICAL)}[$__range]))",
                "{{currency}}",
            ),
        ),
        stat(
            Look(
                "... not allocated",
                "Of it, what GPUs cost that no pod held.",
                unit=MONEY,
                empty="no price book",
                width=8,
            ),
            Query(
                f"sum by (currency) (increase({select('gputally_capacity_cost_total', NOT_ALLOCATED)}[$__range]))",
                "{{currency}}",
            ),
        ),
        stat(
            Look(
                "... allocated, but idle",
                "Of it, what pods held and did not use, where agents measured it.",
                unit=MONEY,
                empty="nothing is measured, or has a price",
                width=8,
            ),
            Query(f"sum by (currency) (increase({select('gputally_idle_cost_total')}[$__range]))", "{{currency}}"),
        ),
    ),
)

BOARD = Board(
    name="fleet",
    title="Fleet",
    description="Whether the GPUs are there, held, used, and worth their money.",
    variables=(
        Variable("cluster", "Cluster", "gputally_capacity_gpus"),
        Variable("gpu_model", "GPU model", "gputally_capacity_gpus"),
    ),
    rows=(NOW, CAPACITY, UTILISATION, MONEY_AND_POWER),
)
