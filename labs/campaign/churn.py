"""Creates and deletes pods of several tiers and teams in many ways, determined by a seed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from random import Random

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import POOL, Json, conduct, deployment, gpu_pod, job, path

TIERS = {"urgent": 10_000, "serving": 5_000, "batch": 500, "spare": 100}
TEAMS = {"alpha": "team-alpha", "beta": "team-beta", "gamma": "team-gamma"}
NODES, GPUS = 8, 8
NODE_SELECTOR = {POOL: ""}
"""The node selector of this load."""
MORE_THAN_ANY_NODE = 64
SERVICES = (("alpha", "urgent", 2), ("beta", "serving", 1), ("gamma", "serving", 4))
"""Team, tier and GPUs of Deployments, each scaled up to a third of the cluster."""
QUEUED = {"kueue.x-k8s.io/queue-name": "research"}
"""The labels of a Job that a queue holds back while it is suspended."""
PODS = "/api/v1/pods"
KIND = {"apiVersion": "v1", "kind": "Pod"}
"""The type fields that items of a list lack."""


class Churn:
    """A load that tolerates restarts of the API server."""

    def __init__(self, api: Api, *, seed: int) -> None:
        self._api = api
        self._seed = seed

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._runs(tasks, Random(f"{self._seed} runs")))
            tasks.create_task(self._jobs(Random(f"{self._seed} jobs")))
            tasks.create_task(self._unschedulable(tasks, Random(f"{self._seed} misfits")))
            tasks.create_task(self._queued(Random(f"{self._seed} queued")))
            for number in range(3):
                tasks.create_task(self._same_names(f"again-{number}", Random(f"{self._seed} again {number}")))
            for team, tier, gpus in SERVICES:
                tasks.create_task(self._service(team, tier, gpus, Random(f"{self._seed} {team}")))

    async def stop(self) -> None:
        """Delete all pods of the cluster, and wait until they are gone."""
        for kind in ("apps/v1", "deployments"), ("batch/v1", "jobs"):
            for team in TEAMS:
                await self._empty(f"/apis/{kind[0]}/namespaces/{team}/{kind[1]}")
        for pod in (await self._api.list(PODS))["items"]:
            await self._delete(path(pod | KIND))
        await self._api.wait_for_items(PODS, lambda items: not items, within=60)

    async def _empty(self, collection: str) -> None:
        for item in (await self._api.list(collection))["items"]:
            await self._delete(f"{collection}/{item['metadata']['name']}")

    async def _runs(self, tasks: asyncio.TaskGroup, random: Random) -> None:
        """Create bare pods, two or three per second, most of them short."""
        for number in count():
            await asyncio.sleep(random.expovariate(2.5))
            lasts_s = random.choice((1, 1, 2, 3, 5, 8, 13, 20))
            manner = conduct(
                start_after=random.choice(("", "", "1s", "3s")),
                run_for=f"{lasts_s}s",
                stop_after=random.choice(("", "1s", "2s")),
                exit_as=random.choice(("", "", "", "Failed")),
            )
            manifest = of(f"run-{number}", manner, gpus=random.choice((1, 1, 1, 2, 4)), random=random)
            deleted_after_s, grace_seconds = deletion_of(lasts_s, random)
            tasks.create_task(self._live(manifest, deleted_after_s, grace_seconds))

    async def _live(self, manifest: Json, deleted_after_s: float, grace_seconds: int | None) -> None:
        await self._create(manifest)
        await asyncio.sleep(deleted_after_s)
        await self._delete(path(manifest), grace_seconds)

    async def _unschedulable(self, tasks: asyncio.TaskGroup, random: Random) -> None:
        """Create unschedulable pods and delete them after a while."""
        for number in count():
            await asyncio.sleep(random.uniform(2, 6))
            manifest = of(f"misfit-{number}", {}, gpus=MORE_THAN_ANY_NODE, random=random)
            tasks.create_task(self._live(manifest, random.uniform(1, 8), None))

    async def _same_names(self, name: str, random: Random) -> None:
        """Recreate pods with the same name."""
        team = random.choice(tuple(TEAMS))
        while True:
            manner = conduct(run_for=random.choice(("", "1s", "2s")))
            manifest = gpu_pod(name, team, annotations=manner, nodeSelector=NODE_SELECTOR, priorityClassName="batch")
            await self._create(manifest)
            await asyncio.sleep(random.uniform(0.5, 5))
            await self._delete(path(manifest), random.choice((None, 0)))
            await asyncio.sleep(random.choice((0, 0.5, 3)))

    async def _jobs(self, random: Random) -> None:
        """Create Jobs of several pods and delete them; the garbage collector deletes the pods."""
        for number in count():
            await asyncio.sleep(random.uniform(3, 8))
            manner = conduct(run_for=f"{random.randint(2, 10)}s")
            parallelism = random.randint(2, 4)
            manifest = job(of(f"job-{number}", manner, gpus=1, random=random), parallelism=parallelism)
            await self._create(manifest)
            await asyncio.sleep(random.uniform(1, 10))
            await self._delete(path(manifest))

    async def _queued(self, random: Random) -> None:
        """Create Jobs that a queue holds back, and admit or delete them after a while."""
        for number in count():
            await asyncio.sleep(random.uniform(1, 4))
            pod = of(f"queued-{number}", conduct(run_for="2s"), gpus=random.choice((1, 2, 8)), random=random)
            manifest = job(pod, parallelism=random.randint(1, 4), suspend=True)
            manifest["metadata"]["labels"] = QUEUED
            await self._create(manifest)
            await asyncio.sleep(random.uniform(2, 15))
            if random.random() < 0.5:
                await self._retry(partial(self._api.patch, path(manifest), {"spec": {"suspend": False}}))
                await asyncio.sleep(random.uniform(0, 3))
            await self._delete(path(manifest))

    async def _service(self, team: str, tier: str, gpus: int, random: Random) -> None:
        """Scale a Deployment up and down; it preempts pods if there is no free capacity."""
        manner = conduct(start_after=random.choice(("", "1s")), stop_after="1s")
        pod = gpu_pod("serve", team, gpus=gpus, annotations=manner, nodeSelector=NODE_SELECTOR, priorityClassName=tier)
        manifest = deployment(pod, replicas=1)
        await self._create(manifest)
        while True:
            await asyncio.sleep(random.uniform(2, 6))
            replicas = random.randint(0, NODES * GPUS // 3 // gpus)
            await self._retry(partial(self._api.patch, path(manifest), {"spec": {"replicas": replicas}}))

    async def _create(self, manifest: Json) -> None:
        await self._retry(partial(self._api.create, manifest))

    async def _delete(self, path: str, grace_seconds: int | None = None) -> None:
        await self._retry(partial(self._api.delete, path, grace_seconds=grace_seconds))

    async def _retry(self, request: Callable[[], Awaitable[object]]) -> None:
        """Retry until the server accepts: it may restart, or the old pod may still exist. A 404 counts as success."""
        while True:
            try:
                await request()
            except (aiohttp.ClientError, TimeoutError):
                pass
            except Refused as refusal:
                if refusal.code == 404:
                    return
                if not (refusal.passing or refusal.code in {403, 409}):
                    raise
            else:
                return
            await asyncio.sleep(0.3)


def of(name: str, manner: dict[str, str], *, gpus: int, random: Random) -> Json:
    """A pod with a random tier and team; one in ten has no tier."""
    pod = gpu_pod(name, random.choice(tuple(TEAMS)), gpus=gpus, annotations=manner, nodeSelector=NODE_SELECTOR)
    if random.random() < 0.9:
        pod["spec"]["priorityClassName"] = random.choice(tuple(TIERS))
    return pod


def deletion_of(lasts_s: int, random: Random) -> tuple[float, int | None]:
    """Seconds until a pod is deleted, and the grace period of the deletion: the pod's own (None) or 0."""
    return random.choice(
        (
            (lasts_s + random.uniform(0, 4), None),
            (lasts_s + random.uniform(0, 4), None),
            (random.uniform(0, lasts_s), None),
            (random.uniform(0, lasts_s), 0),
            (lasts_s + 30, None),
        )
    )
