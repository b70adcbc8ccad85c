"""What operators do at night."""

from gputally.sim.owners import release
from gputally.sim.pods import is_terminal
from gputally.sim.registry import Registry


def clear_ended_pods(registry: Registry) -> None:
    """Delete pods that ran to their end, as `kubectl delete pods --field-selector=status.phase!=Running` would."""
    for pod in registry.store.docs("pods"):
        if is_terminal(pod):
            release(registry, "pods", pod)
