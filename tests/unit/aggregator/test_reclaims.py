"""Events that announce reclaims of spot machines, from the API server to the accounting."""

from gputally.aggregator.settings import Settings
from gputally.model.kube.kinds import Kind
from gputally_sim.cluster import SimCluster
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.until import until


async def test_a_reclaim_is_known_by_the_events_of_nodes_alone(settings: Settings, cluster: SimCluster) -> None:
    nodes = [node["metadata"] for node in cluster.registry.store.docs("nodes")][:3]
    forged = [nodes[1] | {"at": "kube-system"}, nodes[2] | {"kind": "Pod"}]
    async with aggregating(settings, cluster) as (running, _):
        await until_ready(running)
        await until(lambda: all(watch.connected for watch in running.pipeline.health.watches))
        for number, node in enumerate([*forged, nodes[0]]):
            named = {"kind": node.get("kind", "Node"), "name": node["name"], "uid": node["uid"]}
            sender = {"reason": "SpotInterrupted", "reportingComponent": "karpenter", "type": "Warning"}
            event = {"metadata": {"name": f"e.{number}"}, "involvedObject": named} | sender
            cluster.registry.create("events", event, node.get("at", "default"))
        signals = running.pipeline.fleet.disrupted.disruptions.signals
        await until(lambda: bool(signals.known))
        received = [watch.events for watch in running.pipeline.health.watches if watch.kind is Kind.KARPENTER_EVENTS]

    assert set(signals.known) == {nodes[0]["uid"]}
    assert received == [1]
