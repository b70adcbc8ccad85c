"""Capacity, utilisation and cost of the fleet: the first dashboard to open."""

from dashboards.rows.history import BY_NODE
from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, STATES, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import GPUS, MONEY, MONEY_PER_HOUR, RATIO, WATTS

select = Selectors("cluster", "gpu_model")

ALLOCATED = 'state="allocated"'
UNAVAILABLE = 'state=~"unknown|unhealthy|cordoned"'
NOT_ALLOCATED = 'state!="allocated"'
GPUS_NOW = f"sum({select.now('gputally_capacity_gpus')})"
ALLOCATED_NOW = f"sum({select.now('gputally_capacity_gpus', ALLOCATED)})"


BUSY = select.busy()

NOW = Row(
    "Now",
    (
        stat(
            Look("GPUs", "Physical GPUs of all nodes, in any state.", unit=GPUS, empty="no data from the exporter"),
            Query(GPUS_NOW, "GPUs"),
        ),
        stat(
            Look(
                "Allocated",
                "The share of GPUs that is allocated to pods. The rest is paid for, but not requested.",
                unit=RATIO,
                empty="no GPUs",
            ),
            Query(f"{ALLOCATED_NOW} / {GPUS_NOW}", "allocated"),
            trend=True,
        ),
        stat(
            Look(
                "Utilisation (allocated)",
                "Of the allocated GPU time that agents measured, the share in which the GPUs were busy.",
                unit=RATIO,
                empty="no usage data: no agents",
            ),
            Query(BUSY, "busy"),
            trend=True,
        ),
        stat(
            Look(
                "Cost per hour",
                "Cost of all GPUs per hour, from the price book.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(f"sum by (currency) ({select.rate('gputally_capacity_cost_total')}) * 3600", "{{currency}}"),
        ),
        stat(
            Look(
                "Unallocated cost per hour",
                "Cost per hour of GPUs that are free, cordoned, unhealthy, unsliced or unknown.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
                links=(Link("Cost by tenant", "tenants"),),
            ),
            Query(
                f"sum by (currency) ({select.rate('gputally_capacity_cost_total', NOT_ALLOCATED)}) * 3600",
                "{{currency}}",
            ),
        ),
        stat(
            Look(
                "Idle cost per hour",
                "Cost per hour of allocated GPUs that are idle, where agents measure them.",
                unit=MONEY_PER_HOUR,
                empty="no usage data or no prices",
                links=(Link("Idle cost by tenant", "tenants"),),
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
                "GPUs by state",
                "Every physical GPU has one state. Unallocated GPUs are free, unless their node is unknown or "
                "cordoned, or they are unhealthy or unsliced. The states add up to the fleet.",
                unit=GPUS,
                empty="no data from the exporter",
                height=9,
            ),
            Query(f"sum by (state) ({select.now('gputally_capacity_gpus')})", "{{state}}"),
            stacked=True,
            colors=STATES,
        ),
        table(
            Look(
                "GPUs by model and pool",
                "Physical GPUs now, the share that is allocated, and the GPUs that no pod can be given.",
                links=(Link("Tenants of this model", "tenants", {"gpu_model": "gpu_model"}),),
                empty="no data from the exporter",
                height=9,
            ),
            {"gpu_model": "Model", "pool": "Pool"},
            Column(
                head="GPUs",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus')})",
                unit=GPUS,
            ),
            Column(
                head="Allocated",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', ALLOCATED)})"
                f" / sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus')})",
                unit=RATIO,
            ),
            Column(
                head="Unavailable",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_capacity_gpus', UNAVAILABLE)})",
                unit=GPUS,
                steps={0.001: RED},
            ),
            Column(
                head="Unpriced",
                expression=f"sum by (gpu_model, pool) ({select.now('gputally_unpriced_gpus')})",
                unit=GPUS,
                steps={0.001: ORANGE},
            ),
            order="GPUs",
        ),
        timeseries(
            Look(
                "Overcommitted GPUs",
                "GPUs allocated to pods on nodes that no longer have them: a GPU failed under its pod, or the device "
                "plugin restarts. If it lasts, check the node.",
                unit=GPUS,
                empty="none",
                steps={0.001: RED},
                height=7,
            ),
            Query(
                f"sum by (gpu_model, pool) ({select.now('gputally_overcommitted_gpus')})",
                "{{gpu_model}} {{pool}}",
            ),
        ),
        timeseries(
            Look(
                "Usage outside any pod",
                "GPUs used while they were not allocated to a container: by a process outside Kubernetes, or one "
                "that outlived its pod.",
                unit=GPUS,
                empty="no usage data: no agents",
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
                "GPUs: total, allocated, used",
                "Physical GPUs, allocated GPUs, and the GPU time used. The gap from total to allocated is for capacity "
                "planning, the gap from allocated to used is for the tenants.",
                unit=GPUS,
                empty="no data from the exporter",
            ),
            Query(GPUS_NOW, "total"),
            Query(ALLOCATED_NOW, "allocated"),
            Query(f"sum({select.rate('gputally_used_gpu_seconds_total')})", "used"),
        ),
        timeseries(
            Look(
                "Utilisation (allocated) by model",
                "Used GPU time divided by measured GPU time. Neither includes time that no agent measured.",
                unit=RATIO,
                empty="no usage data: no agents",
            ),
            Query(
                select.busy("gpu_model"),
                "{{gpu_model}}",
            ),
        ),
    ),
)

COST_AND_POWER = Row(
    "Cost and power",
    (
        timeseries(
            Look(
                "Cost per hour by state",
                "Cost of the GPUs in each state, without tier multipliers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(
                f"sum by (state, currency) ({select.rate('gputally_capacity_cost_total')}) * 3600",
                "{{state}} {{currency}}",
            ),
            stacked=True,
            colors=STATES,
        ),
        timeseries(
            Look(
                "Power",
                "Power draw of allocated and unallocated GPUs, from their energy counters.",
                unit=WATTS,
                empty="no usage data: no agents",
            ),
            Query(f"sum({select.rate('gputally_energy_joules_total')})", "allocated"),
            Query(f"sum({select.rate('gputally_unallocated_energy_joules_total')})", "unallocated"),
            stacked=True,
        ),
        stat(
            Look(
                "Total cost",
                "Cost of all GPUs in the time range.",
                unit=MONEY,
                empty="no price book",
                width=8,
            ),
            Query(
                f"sum by (currency) (increase({select('gputally_capacity_cost_total')}[$__range]))",
                "{{currency}}",
            ),
        ),
        stat(
            Look(
                "Total unallocated cost",
                "The part of the total cost for unallocated GPUs.",
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
                "Total idle cost",
                "The part of the total cost for allocated GPUs that were idle, where agents measured them.",
                unit=MONEY,
                empty="no usage data or no prices",
                width=8,
            ),
            Query(f"sum by (currency) (increase({select('gputally_idle_cost_total')}[$__range]))", "{{currency}}"),
        ),
    ),
)

BOARD = Board(
    name="fleet",
    title="Fleet",
    description="Capacity, utilisation and cost of the fleet.",
    variables=(
        Variable("cluster", "Cluster", "gputally_capacity_gpus"),
        Variable("gpu_model", "GPU model", "gputally_capacity_gpus"),
    ),
    annotations=annotation.ALL,
    rows=(NOW, CAPACITY, UTILISATION, COST_AND_POWER, BY_NODE),
)
