"""The metric catalog of the agent: the GPUs of one node, and their usage by container."""

from collections.abc import Mapping, Sequence
from typing import Final

from gputally.catalog.agent import efficiency_metrics as efficiency
from gputally.catalog.agent import gpu_metrics as gpu
from gputally.catalog.agent import node_health_metrics as node_health
from gputally.catalog.agent import node_usage_metrics as node_usage
from gputally.catalog.agent.node_view import NodeView
from gputally.catalog.metric import Metric

NODE_GROUPS: Final[Mapping[str, Sequence[Metric[NodeView]]]] = {
    "Node: GPUs": gpu.METRICS,
    "Node: efficiency": efficiency.METRICS,
    "Node: usage": node_usage.METRICS,
    "Node: agent health": node_health.METRICS,
}
NODE: Final[tuple[Metric[NodeView], ...]] = tuple(metric for group in NODE_GROUPS.values() for metric in group)
"""In the order they are exposed."""
