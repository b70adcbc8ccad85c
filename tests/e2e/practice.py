"""A cluster as practitioners run it, with the product beside it, and the truth that its records are compared with."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import yaml

from tests.behaviour.compared import Compared
from tests.behaviour.conftest import RBAC
from tests.behaviour.product import Product
from tests.behaviour.recorder import Recorder
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import POOL, Json, conduct, gpu_node, gpu_pod, namespace, path, priority_class
from tests.cluster.objects import Items, in_phase
from tests.e2e.conftest import vacate
from tests.e2e.rights import Right, grant, logged_in, revoke, rights_of, until_granted

SCENE = "gputally.io/scene"
"""The label of all pods of a practice."""
ACCOUNTS = count(1)
_STOP = conduct(stop_after="1s")


class Practice(Compared):
    """Names of nodes, tiers and namespaces begin with `place`, which is a namespace itself."""

    def __init__(self, api: Api, place: str, *, account: str, product: Product, recorder: Recorder) -> None:
        super().__init__(api, place, product=product, recorder=recorder)
        self.account = account

    async def furnish(self, tiers: Mapping[str, int], *, nodes: int = 1, gpus: int = 1) -> None:
        """Create PriorityClasses by value, and nodes."""
        for tier, value in tiers.items():
            await self.api.create(priority_class(self.tier(tier), value))
        for number in range(nodes):
            await self.node(str(number), gpus=gpus)

    async def node(self, name: str, *, gpus: int = 1) -> None:
        await self.api.create(gpu_node(f"{self.place}-{name}", gpus=gpus, pool=self.place))

    async def tenant(self, name: str) -> str:
        """A further namespace, which is a tenant."""
        full = f"{self.place}-{name}"
        await self.api.create(namespace(full, labels={"team": full}))
        self.namespaces.append(full)
        return full

    def on(self, node: str) -> dict[str, str]:
        """The nodeSelector of pods for that node."""
        return {"kubernetes.io/hostname": f"{self.place}-{node}"}

    def tier(self, name: str) -> str:
        return f"{self.place}-{name}" if name else ""

    def pod(
        self,
        name: str,
        tier: str,
        *,
        team: str = "",
        gpus: int = 1,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] = _STOP,
        **spec: object,
    ) -> Json:
        """A pod for the nodes of this practice."""
        place = {"nodeSelector": {POOL: self.place}, "priorityClassName": self.tier(tier)} | spec
        given = {SCENE: self.place, **(labels or {})}
        return gpu_pod(name, team or self.place, gpus=gpus, labels=given, annotations=annotations, **place)

    async def pods(self, holds: Callable[[Items], bool], *, within: float = 60) -> Items:
        """All pods of the practice, once `holds` is true for them."""

        def own(items: Items) -> Items:
            return [item for item in items if item["metadata"]["labels"].get(SCENE) == self.place]

        return own(await self.api.wait_for_items("/api/v1/pods", lambda items: holds(own(items)), within=within))

    async def running(self, number: int, tier: str) -> Items:
        """The running pods of a tier that nobody deletes, once there are so many."""
        items = await self.pods(lambda items: len(self.live(items, tier)) == number)
        return self.live(items, tier)

    def live(self, items: Items, tier: str) -> Items:
        running = (item for item in in_phase(items, "Running") if "deletionTimestamp" not in item["metadata"])
        return [item for item in running if item["spec"].get("priorityClassName", "") == self.tier(tier)]

    async def scale(self, deployment: Json, replicas: int) -> None:
        await self.api.patch(path(deployment), {"spec": {"replicas": replicas}})


@asynccontextmanager
async def practised(
    control_plane: ControlPlane, place: str, scratch: Path, *, without: str = ""
) -> AsyncIterator[Practice]:
    """A practice whose aggregator has the documented rights, except those on the resource `without`."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(
            Api(control_plane.url, control_plane.token("admin"), control_plane.ca_file)
        )
        rights = [right for right in documented_rights() if right[1] != without]
        account = f"practice-{next(ACCOUNTS)}"
        await api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {"team": place}}})
        stack.push_async_callback(revoke, api, await grant(api, account, place, rights))
        await until_granted(api, account, place, rights)
        product = Product(scratch, await logged_in(api, control_plane, account, place, scratch / "kubeconfig"))
        recorder = await stack.enter_async_context(Recorder(api, labelSelector=f"{SCENE}={place}"))
        practice = Practice(api, place, account=account, product=product, recorder=recorder)
        stack.push_async_callback(left, practice)
        stack.push_async_callback(product.kill)
        await product.start()
        yield practice


async def left(practice: Practice) -> None:
    """Delete the further namespaces; the first is its owner's."""
    for each in practice.namespaces[1:]:
        await vacate(practice.api, each)


def documented_rights() -> list[Right]:
    documents = yaml.safe_load_all(RBAC.read_text())
    return rights_of(next(each["rules"] for each in documents if each["kind"] == "ClusterRole"))
