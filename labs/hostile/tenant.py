"""API client of the hostile tenant, with its token's rights, a rate limit, and counts of accepted requests."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import GPU, POOL, Json, gpu_pod, path

NOWHERE = {"hostile.example/nowhere": "true"}
"""A node selector that matches no node: such pods stay pending and cost the control plane little."""
AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Target:
    """The tenant's knowledge of the cluster; names of nodes and namespaces are not secret."""

    namespace: str
    own_pool: str
    """The pool of nodes that it may use."""
    foreign_node: str
    """A GPU node of other tenants."""
    foreign_namespace: str


class Tenant:
    """Sends at most `per_second` requests per second; rejections are counted and not raised."""

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
        """`range(number)`, scaled down in a short campaign."""
        return range(max(1, round(number * self._scale)))

    def name(self, stem: str = "pod") -> str:
        """An unused name."""
        return f"{stem}-{next(self._numbers)}"

    def pod(self, stem: str = "pod", **spec: object) -> Json:
        """A pod that requests a GPU and is unschedulable unless `spec` overrides that."""
        made = gpu_pod(self.name(stem), self.target.namespace)
        return {**made, "spec": made["spec"] | {"nodeSelector": NOWHERE} | spec}

    def running_pod(self, stem: str) -> Json:
        """A schedulable pod with a GPU."""
        return self.pod(stem, nodeSelector={POOL: self.target.own_pool})

    async def create(self, attack: str, manifest: Json) -> Json | None:
        """Create an object; None if rejected."""
        return await self._try(attack, lambda: self._api.create(manifest))

    async def patch(self, attack: str, manifest: Json, patch: Json) -> Json | None:
        """Apply a merge patch; None if rejected."""
        return await self._try(attack, lambda: self._api.patch(path(manifest), patch))

    async def delete(self, attack: str, manifest: Json, *, grace_seconds: int | None = 0) -> Json | None:
        """Delete at once, or with the given grace period."""
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
    """An owner reference, which may be false."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def asking(pod: Json, **amounts: str) -> Json:
    """The pod with its resources replaced by these limits of extended resources."""
    container = pod["spec"]["containers"][0]
    resources = {"requests": {"cpu": "1m"} | amounts, "limits": dict(amounts)}
    return {**pod, "spec": pod["spec"] | {"containers": [container | {"resources": resources}]}}


def gpus(amount: str) -> dict[str, str]:
    """`amount` GPUs as a resource quantity."""
    return {GPU: amount}
