"""Operators' nightly cleanup."""

from gputally_sim.api.registry import Registry
from gputally_sim.control.owners import release
from gputally_sim.node.pods import is_terminal


def clear_ended_pods(registry: Registry) -> None:
    """Delete terminated pods, as `kubectl delete pods --field-selector=status.phase!=Running` does."""
    for pod in registry.store.docs("pods"):
        if is_terminal(pod):
            release(registry, "pods", pod)
