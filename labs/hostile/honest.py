"""The honest tenants' workload: pods with known lifetimes, bare, in Jobs, and with chains of owners.

Beside it, a Job waits in a queue, and two gangs wait for each other.
"""

import asyncio
from dataclasses import dataclass
from random import Random

from labs.hostile.tenant import owned, owner
from tests.cluster.api import Api
from tests.cluster.manifests import (
    POOL,
    Json,
    conduct,
    deployment,
    gpu_node,
    gpu_pod,
    job,
    metadata,
    namespace,
    priority_class,
)

TENANTS = ("alpha", "beta", "gamma")
LATE = ("delta", "epsilon")
"""Tenants that start after the junk labels exist."""
PROBE = "probe"
"""A tenant with one pod at a time, to measure latency."""
NAMESPACES = (*TENANTS, *LATE, PROBE)
HONEST_POOL = "honest"
NODES = 16
QUEUED = "queued"
"""A Job of `QUEUED_GPUS` GPUs that its queue does not admit."""
QUEUED_GPUS = 8
STUCK = "stuck"
"""The namespace and the pool of the gangs; each has half of a node, and needs all of it. Their pods never end."""
GPUS_OF_NODE = 8
TIERS = {"urgent": 10_000, "batch": 500}
LONGEST_RUN_S = 6
INTERVAL_S = 1.2
"""Mean interval between workloads of one tenant."""
PROBE_INTERVAL_S = 4.5
LATE_AT = 0.6
"""Fraction of the run after which late tenants start."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """Pods created together, each with `gpus` for `runs_s`."""

    at_s: float
    tenant: str
    kind: str
    number: int
    gpus: int
    runs_s: int
    tier: str

    @property
    def pods(self) -> int:
        return 2 if self.kind == "job" else 1

    @property
    def job(self) -> tuple[str, str]:
        """Kind and name of the job of its pods."""
        kinds = {"bare": ("Pod", f"bare-{self.number}"), "job": ("Job", f"job-{self.number}")}
        return kinds.get(self.kind, ("ConfigMap", f"run-{self.number}"))


def team_of(tenant: str) -> str:
    """The team of a namespace."""
    return f"team-{tenant}"


def lives(*, seed: int, lasts_s: float) -> list[Life]:
    """All workloads by start time, determined by the seed; late tenants start at `LATE_AT` of `lasts_s`."""
    random = Random(seed)
    found = []
    for tenant in (*TENANTS, *LATE):
        at_s, number = lasts_s * (LATE_AT if tenant in LATE else 0), 0
        while (at_s := at_s + random.uniform(0.5, 2) * INTERVAL_S) < lasts_s:
            found.append(_life(tenant, number, at_s, random))
            number += 1
    probes = (_probe(number) for number in range(int(lasts_s // PROBE_INTERVAL_S)))
    return sorted([*found, *probes], key=lambda life: life.at_s)


def _life(tenant: str, number: int, at_s: float, random: Random) -> Life:
    return Life(
        at_s=at_s,
        tenant=tenant,
        kind=random.choice(("bare", "job", "pipeline", "pipeline")),
        number=number,
        gpus=random.choice((1, 1, 2)),
        runs_s=random.randint(1, LONGEST_RUN_S),
        tier=random.choice(tuple(TIERS)),
    )


def _probe(number: int) -> Life:
    at_s = number * PROBE_INTERVAL_S
    return Life(at_s=at_s, tenant=PROBE, kind="bare", number=number, gpus=1, runs_s=2, tier="urgent")


def planned(plan: list[Life]) -> dict[str, int]:
    """Planned running GPU-seconds by team."""
    found: dict[str, int] = {}
    for life in plan:
        team = team_of(life.tenant)
        found[team] = found.get(team, 0) + life.pods * life.gpus * life.runs_s
    return found


async def create_objects(api: Api) -> None:
    """Create namespaces, tiers and nodes."""
    for tenant in NAMESPACES:
        await api.create(namespace(tenant, labels={"team": team_of(tenant)}))
    for name, value in TIERS.items():
        await api.create(priority_class(name, value))
    for number in range(NODES):
        await api.create(gpu_node(f"honest-{number}", pool=HONEST_POOL))
    await api.create(namespace(STUCK, labels={"team": team_of(STUCK)}))
    await api.create(gpu_node(STUCK, pool=STUCK, gpus=GPUS_OF_NODE))
    await _queue(api)


async def live(api: Api, plan: list[Life]) -> None:
    """Create all workloads on time; returns after the last one is created. The gangs are created with the late ones."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_stick(api, min(life.at_s for life in plan if life.tenant in LATE)))
        for life in plan:
            tasks.create_task(_begin(api, life))


async def _begin(api: Api, life: Life) -> None:
    await asyncio.sleep(life.at_s)
    pod = gpu_pod(
        f"{life.kind}-{life.number}",
        life.tenant,
        gpus=life.gpus,
        labels={"team": team_of(life.tenant)},
        annotations=conduct(run_for=f"{life.runs_s}s"),
        nodeSelector={POOL: HONEST_POOL},
        priorityClassName=life.tier,
    )
    if life.kind == "pipeline":
        pod = owned(pod, await _pipeline(api, life))
    if life.kind == "job":
        pod = job(pod, parallelism=life.pods, backoffLimit=0)
    await api.create(pod)


async def _pipeline(api: Api, life: Life) -> Json:
    """Create a job (ConfigMap) that owns a Deployment, the pod's owner; finding the job needs an owner lookup."""
    meta = metadata(f"run-{life.number}", life.tenant)
    top = await api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    step = deployment(gpu_pod(f"step-{life.number}", life.tenant), replicas=0)
    step["metadata"]["ownerReferences"] = [owner("ConfigMap", meta["name"], top["metadata"]["uid"])]
    made = await api.create(step)
    return owner("Deployment", made["metadata"]["name"], made["metadata"]["uid"], api_version="apps/v1")


async def _queue(api: Api) -> None:
    pod = gpu_pod(QUEUED, TENANTS[0], gpus=QUEUED_GPUS, priorityClassName="urgent")
    manifest = job(pod, suspend=True)
    labels = manifest["metadata"]["labels"] | {"kueue.x-k8s.io/queue-name": "honest"}
    await api.create({**manifest, "metadata": manifest["metadata"] | {"labels": labels}})


async def _stick(api: Api, at_s: float) -> None:
    """First the pods that are bound, then those for which no GPUs are left."""
    await asyncio.sleep(at_s)
    half = GPUS_OF_NODE // 2
    members = ((gang, first + number) for first in (0, half) for gang in ("a", "b") for number in range(half))
    for gang, number in members:
        await api.create(_member(gang, number))


def _member(gang: str, number: int) -> Json:
    labels = {"team": team_of(STUCK), "training.kubeflow.org/job-name": gang}
    never = conduct(start_after="2h")
    return gpu_pod(f"{gang}-{number}", STUCK, labels=labels, annotations=never, nodeSelector={POOL: STUCK})
