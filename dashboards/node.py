"""GPUs of each node, and the pods that use them, as measured by the agents."""

from dashboards.rows.efficiency import EFFICIENCY
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import RED, STATES, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import BYTES, COUNT, ENERGY, GPU_HOURS, GPUS, RATIO, STATE, WATTS

select = Selectors("cluster", "instance", "gpu", "namespace")
GPU = "{{instance}} #{{minor}} {{profile}} {{slice}}"
BY_CONTAINER = "sum by (instance, namespace, pod, container, device)"
BY_DEVICE = "max by (instance, gpu, device, gpu_model, profile, source, minor, pci_bus_id)"


NOW = Row(
    "Now",
    (
        stat(
            Look("GPUs", "GPUs that agents read.", unit=COUNT, empty="no data from agents"),
            Query(f"count({select('gputally_gpu_up')})", "GPUs"),
        ),
        stat(
            Look(
                "Lost GPUs",
                "GPUs that the driver has lost, or on which a driver call hangs. Reboot the node, or have the GPU "
                "repaired.",
                unit=COUNT,
                empty="no data from agents",
                steps={1: RED},
                links=(Link("GPU health", "condition", kept=("instance", "gpu")),),
            ),
            Query(f"sum(1 - {select('gputally_gpu_up')})", "lost"),
        ),
        stat(
            Look(
                "Utilisation",
                "The share of the measured time in which anything ran.",
                unit=RATIO,
                empty="no usage data",
            ),
            Query(
                f"sum({select.rate('gputally_gpu_used_gpu_seconds_total')})"
                f" / sum({select.rate('gputally_gpu_measured_gpu_seconds_total')})",
                "busy",
            ),
            trend=True,
        ),
        stat(
            Look("Power", "Power draw of the GPUs.", unit=WATTS, empty="not reported"),
            Query(f"sum({select('gputally_gpu_power_watts')})", "power"),
            trend=True,
        ),
        stat(
            Look("Energy", "Energy that the GPUs consumed in the time range.", unit=ENERGY, empty="not reported"),
            Query(f"sum({select.grown('gputally_gpu_energy_joules_total')}) / 3600", "energy"),
        ),
        stat(
            Look("Unallocated energy", "Energy of GPUs outside any allocation.", unit=ENERGY, empty="not reported"),
            Query(f"sum({select.grown('gputally_gpu_unallocated_energy_joules_total')}) / 3600", "energy"),
        ),
    ),
)

USAGE = Row(
    "Usage",
    (
        timeseries(
            Look(
                "Utilisation by device",
                "The share of time since the last reading in which anything ran. MIG devices are measured "
                "separately where the driver supports it.",
                unit=RATIO,
                empty="no usage data",
            ),
            Query(select.numbered("gputally_gpu_utilization_ratio"), GPU),
        ),
        timeseries(
            Look(
                "Memory usage by device",
                "Without memory that the driver reserves, where it reports that separately.",
                unit=BYTES,
                empty="not reported",
            ),
            Query(select.numbered("gputally_gpu_memory_used_bytes"), GPU),
        ),
        timeseries(
            Look(
                "Power by GPU",
                "As the driver reports it, and the limit at which it slows the GPU down.",
                unit=WATTS,
                width=8,
                empty="not reported",
            ),
            Query(
                f"max by (instance, gpu, minor) ({select.numbered('gputally_gpu_power_watts')})",
                "{{instance}} #{{minor}}",
            ),
            Query(f"max({select('gputally_gpu_power_limit_watts')})", "limit"),
        ),
        timeseries(
            Look(
                "GPUs by state",
                "Held (allocated to a container), free, or unavailable: unhealthy as the kubelet reports, unsliced, "
                "lost to the driver, or unknown while the kubelet does not answer.",
                unit=GPUS,
                width=8,
                empty="no data from agents",
            ),
            Query(f"sum by (state) ({select.rate('gputally_gpu_state_gpu_seconds_total')})", "{{state}}"),
            stacked=True,
            colors=STATES,
        ),
        timeseries(
            Look(
                "Usage outside any container",
                "GPUs used while they were not allocated, or while their allocation was unknown.",
                unit=GPUS,
                width=8,
                empty="no usage data",
                steps={0.5: YELLOW},
            ),
            Query(
                f"sum by (instance) ({select.rate('gputally_gpu_unallocated_used_gpu_seconds_total')})",
                "{{instance}}: unallocated",
            ),
            Query(
                f"sum by (instance) ({select.rate('gputally_gpu_unknown_gpu_seconds_total')})", "{{instance}}: unknown"
            ),
        ),
    ),
)

CONTAINERS = Row(
    "Containers and devices",
    (
        table(
            Look(
                "GPU usage by container",
                "The current share of a GPU, if any, and the usage in the time range.",
                empty="no allocated GPUs",
                width=24,
                height=9,
            ),
            {"instance": "Node", "namespace": "Namespace", "pod": "Pod", "container": "Container", "device": "Device"},
            Column(
                head="Share",
                expression=f"{BY_CONTAINER} ({select('gputally_container_gpu_share_ratio')}) > 0",
                unit=RATIO,
            ),
            Column(
                head="Allocated",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_allocated_gpu_seconds_total')}) / 3600",
                unit=GPU_HOURS,
            ),
            Column(
                head="Utilisation",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_used_gpu_seconds_total')})"
                f" / {BY_CONTAINER} ({select.grown('gputally_container_measured_gpu_seconds_total')})",
                unit=RATIO,
            ),
            Column(
                head="Used above share",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_burst_gpu_seconds_total')}) / 3600",
                unit=GPU_HOURS,
            ),
            Column(
                head="Memory",
                expression=f"{BY_CONTAINER} ({select('gputally_container_gpu_memory_bytes')})",
                unit=BYTES,
            ),
            Column(
                head="Energy",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_gpu_energy_joules_total')}) / 3600",
                unit=ENERGY,
            ),
            order="Allocated",
        ),
        timeseries(
            Look(
                "Top 20 pods by GPUs used",
                "The average number of GPUs that each pod kept busy.",
                unit=GPUS,
                empty="no usage data",
            ),
            Query(
                f"topk(20, sum by (namespace, pod) ({select.rate('gputally_container_used_gpu_seconds_total')}))",
                "{{namespace}}/{{pod}}",
            ),
            stacked=True,
        ),
        timeseries(
            Look(
                "Top 20 pods by GPU memory",
                "Memory of the pod's processes, or split by shares where processes cannot be matched to pods.",
                unit=BYTES,
                empty="not reported",
            ),
            Query(
                f"topk(20, sum by (namespace, pod) ({select('gputally_container_gpu_memory_bytes')}))",
                "{{namespace}}/{{pod}}",
            ),
            stacked=True,
        ),
        table(
            Look(
                "Devices",
                "GPUs and MIG devices, and the source of their utilisation.",
                links=(Link("Health of this GPU", "condition", {"instance": "instance", "gpu": "gpu"}),),
                empty="no data from agents",
                width=24,
                height=9,
            ),
            {
                "instance": "Node",
                "gpu": "GPU",
                "device": "Device",
                "gpu_model": "Model",
                "profile": "Profile",
                "source": "Source",
                "minor": "Minor",
                "pci_bus_id": "PCI",
            },
            Column(
                head="Memory",
                expression=f"{BY_DEVICE} ({select('gputally_gpu_memory_total_bytes')}"
                " * on (instance, gpu, device) group_left (gpu_model, profile, source, minor, pci_bus_id) "
                f"{select('gputally_gpu_info')})",
                unit=BYTES,
            ),
            Column(
                head="MIG",
                expression=f"{BY_DEVICE} ({select('gputally_gpu_mig_enabled')}"
                " * on (instance, gpu) group_right () "
                f"{select('gputally_gpu_info')})",
                unit=STATE,
            ),
            Column(
                head="Processes",
                expression=f"{BY_DEVICE} ({select('gputally_gpu_processes')}"
                " * on (instance, gpu, device) group_left (gpu_model, profile, source, minor, pci_bus_id) "
                f"{select('gputally_gpu_info')})",
                unit=COUNT,
            ),
        ),
    ),
)


BOARD = Board(
    name="node",
    title="Nodes and GPUs",
    description="GPUs of each node, and the pods that use them, as measured by the agents.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_gpu_up"),
        Variable("instance", "Node", "gputally_gpu_up"),
        Variable("gpu", "GPU", "gputally_gpu_up"),
        Variable("namespace", "Namespace", "gputally_container_gpu_share_ratio"),
    ),
    rows=(NOW, USAGE, EFFICIENCY, CONTAINERS),
)
