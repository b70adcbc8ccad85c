"""What the GPUs of a node do, for whom, and how they are: from the agent on it."""

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
            Look("GPUs", "That agents read.", unit=COUNT, empty="no agent answers"),
            Query(f"count({select('gputally_gpu_up')})", "GPUs"),
        ),
        stat(
            Look(
                "Lost",
                "GPUs that the driver has lost, or in which a call hangs. The node needs a reboot, or the "
                "GPU a slot in the repair shop.",
                unit=COUNT,
                empty="no agent answers",
                steps={1: RED},
                links=(Link("Their condition", "condition", kept=("instance", "gpu")),),
            ),
            Query(f"sum(1 - {select('gputally_gpu_up')})", "lost"),
        ),
        stat(
            Look(
                "Busy", "The share of the measured time in which anything ran.", unit=RATIO, empty="nothing is measured"
            ),
            Query(
                f"sum({select.rate('gputally_gpu_used_gpu_seconds_total')})"
                f" / sum({select.rate('gputally_gpu_measured_gpu_seconds_total')})",
                "busy",
            ),
            trend=True,
        ),
        stat(
            Look("Power", "That the GPUs draw.", unit=WATTS, empty="not read"),
            Query(f"sum({select('gputally_gpu_power_watts')})", "power"),
            trend=True,
        ),
        stat(
            Look("Energy", "That the GPUs took in the time shown.", unit=ENERGY, empty="not read"),
            Query(f"sum({select.grown('gputally_gpu_energy_joules_total')}) / 3600", "energy"),
        ),
        stat(
            Look("... for nobody", "Of it, while no container held the GPU.", unit=ENERGY, empty="not read"),
            Query(f"sum({select.grown('gputally_gpu_unallocated_energy_joules_total')}) / 3600", "energy"),
        ),
    ),
)

USE = Row(
    "Use",
    (
        timeseries(
            Look(
                "Busy, by device",
                "The share of the time since the last reading in which anything ran. A device of MIG is "
                "measured on its own where the driver can.",
                unit=RATIO,
                empty="nothing is measured",
            ),
            Query(select.numbered("gputally_gpu_utilization_ratio"), GPU),
        ),
        timeseries(
            Look(
                "Memory in use, by device",
                "Without what the driver reserves, where it tells that apart.",
                unit=BYTES,
                empty="not read",
            ),
            Query(select.numbered("gputally_gpu_memory_used_bytes"), GPU),
        ),
        timeseries(
            Look(
                "Power, by GPU",
                "As the driver reads it, and the limit at which it slows down.",
                unit=WATTS,
                width=8,
                empty="not read",
            ),
            Query(
                f"max by (instance, gpu, minor) ({select.numbered('gputally_gpu_power_watts')})",
                "{{instance}} #{{minor}}",
            ),
            Query(f"max({select('gputally_gpu_power_limit_watts')})", "limit"),
        ),
        timeseries(
            Look(
                "What becomes of the GPUs",
                "Held by a container, free, or one of what takes a GPU away: unhealthy by the kubelet's "
                "word, not sliced, lost to the driver, or unknown while the kubelet does not answer.",
                unit=GPUS,
                width=8,
                empty="no agent answers",
            ),
            Query(f"sum by (state) ({select.rate('gputally_gpu_state_gpu_seconds_total')})", "{{state}}"),
            stacked=True,
            colors=STATES,
        ),
        timeseries(
            Look(
                "Used by no container",
                "GPUs that something used while no container held them, or while nobody knew who did.",
                unit=GPUS,
                width=8,
                empty="nothing is measured",
                steps={0.5: YELLOW},
            ),
            Query(
                f"sum by (instance) ({select.rate('gputally_gpu_unallocated_used_gpu_seconds_total')})",
                "{{instance}}: nobody",
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
                "Who holds or held what",
                "Containers with the share of a GPU they have now, if any, and what they did in the time shown.",
                empty="nobody holds a GPU",
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
                head="Held",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_allocated_gpu_seconds_total')}) / 3600",
                unit=GPU_HOURS,
            ),
            Column(
                head="Busy",
                expression=f"{BY_CONTAINER} ({select.grown('gputally_container_used_gpu_seconds_total')})"
                f" / {BY_CONTAINER} ({select.grown('gputally_container_measured_gpu_seconds_total')})",
                unit=RATIO,
            ),
            Column(
                head="Above its share",
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
            order="Held",
        ),
        timeseries(
            Look(
                "GPUs used, by pod",
                "GPUs worth of work that each pod did, the twenty busiest.",
                unit=GPUS,
                empty="nothing is measured",
            ),
            Query(
                f"topk(20, sum by (namespace, pod) ({select.rate('gputally_container_used_gpu_seconds_total')}))",
                "{{namespace}}/{{pod}}",
            ),
            stacked=True,
        ),
        timeseries(
            Look(
                "GPU memory, by pod",
                "Of the pod's processes, or its part by shares where they cannot be told apart.",
                unit=BYTES,
                empty="not read",
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
                "What each GPU and MIG device is, and by which source its use is known.",
                links=(Link("Its condition", "condition", {"instance": "instance", "gpu": "gpu"}),),
                empty="no agent answers",
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
    description="What GPUs do and for which pods, as the agents of their nodes read it.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_gpu_up"),
        Variable("instance", "Node", "gputally_gpu_up"),
        Variable("gpu", "GPU", "gputally_gpu_up"),
        Variable("namespace", "Namespace", "gputally_container_gpu_share_ratio"),
    ),
    rows=(NOW, USE, CONTAINERS),
)
