"""A cluster under test with the product, and the steps that scenarios consist of."""

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
    """Requires an empty cluster; `recorder` records all pods from then on."""

    api: Api
    recorder: Record
    product: Product
    made: list[str] = field(default_factory=list)

    async def create(self, *manifests: Json) -> None:
        """Create objects; existing ones stay as they are (tiers remain after a test)."""
        for manifest in manifests:
            try:
                await self.api.create(manifest)
            except Refused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
            if collection(manifest).endswith(("/nodes", "/namespaces")):
                self.made.append(path(manifest))

    async def furnish(self, *, nodes: int, gpus: int, tiers: dict[str, int], teams: dict[str, str]) -> None:
        """Create nodes, PriorityClasses, and namespaces with team labels."""
        await self.create(*(gpu_node(f"node-{number}", gpus=gpus) for number in range(nodes)))
        await self.create(*(priority_class(name, value) for name, value in tiers.items()))
        await self.create(*(namespace(name, labels={"team": team}) for name, team in teams.items()))
        await self.api.wait_for_items("/api/v1/nodes", lambda items: all(map(schedulable, items)))

    async def pods(self, predicate: Callable[[Items], bool], *, within: float = 40) -> Items:
        """All pods, once `predicate` is true for them."""
        return await self.api.wait_for_items(PODS, predicate, within=within)

    async def running(self, count: int, *, tier: str = "") -> Items:
        """Wait until exactly `count` pods (of `tier`) run that are not being deleted."""
        return await self.pods(lambda items: len(live(items, tier)) == count)

    async def delete_all(self, *paths: str) -> None:
        """Delete workloads and wait until no pod is left."""
        for each in paths:
            with suppress(Refused):  # a victim may be gone already
                await self.api.delete(each)
        await self.pods(lambda items: not items)

    async def clear(self) -> None:
        """Delete everything except tiers."""
        for each in set(self.made):
            with suppress(Refused):  # the test may have deleted it
                await self.api.delete(each)
        for pod in (await self.api.list(PODS))["items"]:
            meta = pod["metadata"]
            with suppress(Refused):  # its controller or a kubelet may have deleted it since
                await self.api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", grace_seconds=0)
        for each in self.made:
            await self.api.wait_for(each, lambda found: found is None)


def live(items: Items, tier: str = "") -> Items:
    """Running pods of the tier (default: all tiers) that are not being deleted."""
    running = (item for item in in_phase(items, "Running") if "deletionTimestamp" not in item["metadata"])
    return [item for item in running if not tier or item["spec"].get("priorityClassName") == tier]


def schedulable(node: Json) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node.get("spec", {}).get("taints")
