"""What operators do at night."""

from gputally_sim.api.registry import Registry
from gputally_sim.control.owners import release
from gputally_sim.node.pods import is_terminal


def clear_ended_pods(registry: Registry) -> None:
    """Delete pods that ran to their end, as `kubectl delete pods --field-selector=status.phase!=Running` would."""
    for pod in registry.store.docs("pods"):
        if is_terminal(pod):
            release(registry, "pods", pod)
