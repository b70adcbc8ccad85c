"""A pod that waits as long as the demo runs, so that there is one to ask about."""

from typing import Final

from gputally_sim.api.registry import Registry
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work

_EXAMPLES: Final = {
    "s1": ("ml-vision", "evaluate-pairs", Work(app="evaluate", kind="training", tier="training-standard", gpus=2)),
    "s2": ("tenant-alpha", "llm-16-gpus", Work(app="llm", kind="training", gpus=16)),
}
"""The waiting pod of a scenario: namespace, name and requests, more than any node has. No quota of s2 counts it."""


def waiting_example(scenario: str) -> str:
    """The pod as people write it; "" for a scenario in which many pods wait."""
    namespace, name, _ = _EXAMPLES.get(scenario, ("", "", None))
    return f"{namespace}/{name}" if name else ""


def create_waiting_example(registry: Registry, scenario: str) -> None:
    """Create it, unless many pods wait anyway."""
    if scenario in _EXAMPLES:
        namespace, name, work = _EXAMPLES[scenario]
        registry.create("pods", workloads.bare_pod(work, name), namespace)
