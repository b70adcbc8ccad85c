"""Which pods are watched: nearly all pods of a cluster are not."""

from gputally.accounting.agents import is_agent
from gputally.accounting.claim_pods import is_claim_only
from gputally.model.kube import Pod
from gputally.model.rules import Rules
from gputally.shares.request import holds_gpu


def is_watched(pod: Pod, rules: Rules) -> bool:
    """Whether the pod requests GPUs, is an agent, uses devices only through claims, or may preempt pods with GPUs."""
    is_nominated = bool(pod.status.nominated_node_name)
    return holds_gpu(pod, rules) or is_nominated or is_agent(pod, rules) or is_claim_only(pod, rules)
