"""A tenant's own view of the API: the rights of its token, at a bounded pace, and a count of what it was allowed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import GPU, POOL, Json, gpu_pod, path

NOWHERE = {"hostile.example/nowhere": "true"}
"""A node selector that no node has: such pods wait for ever and cost the control plane little."""
AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the tenant has found out about the cluster; the names of nodes and namespaces are no secrets."""

    namespace: str
    own_pool: str
    """Of nodes that it may use."""
    foreign_node: str
    """A GPU node of others."""
    foreign_namespace: str


class Tenant:
    """Makes at most `per_second` requests a second; a refusal is counted and not raised."""

    def __init__(self, api: Api, target: Target, *, per_second: float, scale: float) -> None:
        self.target = target
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._api = api
        self._interval_s = 1 / per_second
        self._scale = scale
        self._next_s = 0.0
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._numbers = count()

    def many(self, number: int) -> range:
        """`range(number)` in a whole campaign, a part of it in a short one."""
        return range(max(1, round(number * self._scale)))

    def name(self, stem: str = "pod") -> str:
        """A name that nothing has yet."""
        return f"{stem}-{next(self._numbers)}"

    def pod(self, stem: str = "pod", **spec: object) -> Json:
        """A pod that asks for a GPU and that no scheduler can place, unless `spec` says otherwise."""
        made = gpu_pod(self.name(stem), self.target.namespace)
        return {**made, "spec": made["spec"] | {"nodeSelector": NOWHERE} | spec}

    def running_pod(self, stem: str) -> Json:
        """A pod that gets its GPU."""
        return self.pod(stem, nodeSelector={POOL: self.target.own_pool})

    async def create(self, attack: str, manifest: Json) -> Json | None:
        """What was made, None if it was refused."""
        return await self._try(attack, lambda: self._api.create(manifest))

    async def patch(self, attack: str, manifest: Json, patch: Json) -> Json | None:
        """The same, of a merge patch."""
        return await self._try(attack, lambda: self._api.patch(path(manifest), patch))

    async def delete(self, attack: str, manifest: Json, *, grace_seconds: int | None = 0) -> Json | None:
        """Deleted at once, or with the grace given."""
        return await self._try(attack, lambda: self._api.delete(path(manifest), grace_seconds=grace_seconds))

    async def _try(self, attack: str, request: Callable[[], Awaitable[Json]]) -> Json | None:
        async with self._slots:
            await self._wait_for_turn()
            try:
                answer = await request()
            except Refused as refusal:
                self.refused[f"{attack}: {refusal.code} {refusal.reason}"] += 1
                return None
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self.refused[f"{attack}: {type(error).__name__}"] += 1
                return None
        self.accepted[attack] += 1
        return answer

    async def _wait_for_turn(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._next_s = max(self._next_s + self._interval_s, now_s)
        await asyncio.sleep(self._next_s - now_s)


def owned(pod: Json, *owners: Json) -> Json:
    """The pod with these owners."""
    return {**pod, "metadata": pod["metadata"] | {"ownerReferences": list(owners)}}


def owner(kind: str, name: str, uid: str, *, api_version: str = "v1", controller: bool = True) -> Json:
    """A reference, true or not."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def asking(pod: Json, **amounts: str) -> Json:
    """The pod with these limits of extended resources in place of its own."""
    container = pod["spec"]["containers"][0]
    resources = {"requests": {"cpu": "1m"} | amounts, "limits": dict(amounts)}
    return {**pod, "spec": pod["spec"] | {"containers": [container | {"resources": resources}]}}


def gpus(amount: str) -> dict[str, str]:
    """So many whole GPUs, as the API spells them."""
    return {GPU: amount}
