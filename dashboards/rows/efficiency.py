"""How well GPUs use their hardware, from GPM counters: a row of the dashboard of nodes and GPUs."""

from typing import Any

from monitoring.board import Row
from monitoring.panel import Column, Look, Query, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import RATIO

select = Selectors("cluster", "instance", "gpu", "namespace")
GPU = "{{instance}} #{{minor}} {{profile}} {{slice}}"
SHARE = select("gputally_container_gpu_share_ratio")
KEYS = "cluster, instance, gpu, device"
ALONE = (
    f"(max by ({KEYS}, namespace, pod, container) ({SHARE}) > 0 and on ({KEYS}) count by ({KEYS}) ({SHARE} > 0) == 1)"
)
"""Containers that share their device with no other."""


EFFICIENCIES = {
    "SM activity": "sm_active",
    "SM occupancy": "sm_occupancy",
    "Tensor activity": "tensor_active",
    "Memory bandwidth": "dram_active",
}


def efficiency(name: str) -> str:
    """The mean of a counter of shares over the profiled time, by container that has devices of its own."""
    share = f"{select.grown(name)} / {select.grown('gputally_gpu_profiled_seconds_total')}"
    joined = f"{share} * on ({KEYS}) group_left (namespace, pod, container) ({ALONE} > bool 0)"
    return f"avg by (instance, namespace, pod, container) ({joined})"


def activity(title: str, description: str, counter: str) -> Any:  # noqa: ANN401 - grafanalib has no types
    """A share by device over time."""
    look = Look(title, description, unit=RATIO, width=8, empty="no GPU has GPM counters")
    return timeseries(look, Query(select.numbered_rate(counter), GPU))


EFFICIENCY = Row(
    "Efficiency (Hopper and later)",
    (
        activity(
            "SM activity by device",
            "The share of multiprocessors with work. A GPU whose utilisation is 100 % may use a tenth of them.",
            "gputally_gpu_sm_active_seconds_total",
        ),
        activity(
            "Tensor activity by device",
            "The share of the time in which tensor cores were active. Training with mixed precision should use them.",
            "gputally_gpu_tensor_active_seconds_total",
        ),
        activity(
            "Memory bandwidth by device",
            "The share of the memory bandwidth in use. Inference of large models is often limited by it.",
            "gputally_gpu_dram_active_seconds_total",
        ),
        table(
            Look(
                "Efficiency by container",
                "Means over the time range, of containers that share their devices with no other.",
                empty="no GPU has GPM counters",
                width=24,
            ),
            {"instance": "Node", "namespace": "Namespace", "pod": "Pod", "container": "Container"},
            *(
                Column(head=head, expression=efficiency(f"gputally_gpu_{name}_seconds_total"), unit=RATIO)
                for head, name in EFFICIENCIES.items()
            ),
            order="SM activity",
        ),
    ),
)
