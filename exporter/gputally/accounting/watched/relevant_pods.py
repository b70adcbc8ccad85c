"""Which pods are watched: nearly all pods of a cluster are not."""

from gputally.accounting.watched.agents import is_agent
from gputally.accounting.watched.unaccounted_pods import may_be_unaccounted
from gputally.model.kube.pods import Pod
from gputally.model.rules import Rules
from gputally.shares.request import may_be_added


def is_watched(pod: Pod, rules: Rules) -> bool:
    """Whether the pod requests GPUs or what may be some, is an agent, has claims, or may preempt pods with GPUs."""
    is_nominated = bool(pod.status.nominated_node_name)
    return may_be_unaccounted(pod, rules) or may_be_added(pod, rules) or is_nominated or is_agent(pod, rules)
