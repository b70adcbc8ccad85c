"""A cluster under test with the product beside it, and the moves that scenarios are made of."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.behaviour.product import Product
from tests.behaviour.recorder import Record
from tests.cluster.api import Api, Refused
from tests.cluster.manifests import Json, collection, gpu_node, namespace, path, priority_class
from tests.cluster.objects import Items, in_phase

PODS = "/api/v1/pods"


@dataclass
class Stage:
    """Give it an empty cluster; `recorder` is told of all pods from then on."""

    api: Api
    recorder: Record
    product: Product
    made: list[str] = field(default_factory=list)

    async def create(self, *manifests: Json) -> None:
        """Create objects; those that exist already (tiers outlive tests) stay as they are."""
        for manifest in manifests:
            try:
                await self.api.create(manifest)
            except Refused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
            if collection(manifest).endswith(("/nodes", "/namespaces")):
                self.made.append(path(manifest))

    async def furnish(self, *, nodes: int, gpus: int, tiers: dict[str, int], teams: dict[str, str]) -> None:
        """Nodes, PriorityClasses and namespaces with their team labels."""
        await self.create(*(gpu_node(f"node-{number}", gpus=gpus) for number in range(nodes)))
        await self.create(*(priority_class(name, value) for name, value in tiers.items()))
        await self.create(*(namespace(name, labels={"team": team}) for name, team in teams.items()))
        await self.api.wait_for_items("/api/v1/nodes", lambda items: all(map(schedulable, items)))

    async def pods(self, predicate: Callable[[Items], bool], *, within: float = 40) -> Items:
        """All pods, once they are as `predicate` says."""
        return await self.api.wait_for_items(PODS, predicate, within=within)

    async def running(self, count: int, *, tier: str = "") -> Items:
        """Wait until exactly so many pods (of a tier) run and none of them is being deleted."""
        return await self.pods(lambda items: len(live(items, tier)) == count)

    async def delete_all(self, *paths: str) -> None:
        """Delete workloads, and wait until no pod is left."""
        for each in paths:
            await self.api.delete(each)
        await self.pods(lambda items: not items)

    async def clear(self) -> None:
        """Leave nothing behind for the next test; tiers may stay."""
        for each in set(self.made):
            with suppress(Refused):  # the test deleted it itself
                await self.api.delete(each)
        for pod in (await self.api.list(PODS))["items"]:
            meta = pod["metadata"]
            await self.api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", grace_seconds=0)
        for each in self.made:
            await self.api.wait_for(each, lambda found: found is None)


def live(items: Items, tier: str = "") -> Items:
    """Running pods of the tier (all without one) that nobody asked to stop."""
    running = (item for item in in_phase(items, "Running") if "deletionTimestamp" not in item["metadata"])
    return [item for item in running if not tier or item["spec"].get("priorityClassName") == tier]


def schedulable(node: Json) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node.get("spec", {}).get("taints")
