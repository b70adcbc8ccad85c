"""One pod on one node, in each stage of its lifecycle."""

from dataclasses import replace

from gputally.model.rules import Rules, TenantRule, TenantSource
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

A100 = {"nvidia.com/gpu.product": "A100"}
NODE = NodeForm(labels=A100)
PENDING = PodForm(created=5, tier="gold", priority=100)
BOUND = replace(PENDING, node="n1", scheduled=10, version=2)
RUNNING = replace(BOUND, started=12, version=3)
FINISHED = replace(RUNNING, phase="Succeeded", finished=17, version=4)
BY_LABEL = Rules(
    tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"), TenantRule(source=TenantSource.NAMESPACE))
)


def cluster(rules: Rules = Rules(), node: NodeForm = NODE) -> Replay:  # noqa: B008 - frozen
    """A fleet that has observed the node."""
    replay = Replay(rules=rules)
    replay.see(node, at=1)
    return replay
