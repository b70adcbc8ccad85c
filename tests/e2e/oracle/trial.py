"""One state in the real cluster, and what its scheduler does with the waiting pod."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import msgspec
from msgspec import structs

from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.policy import PodDisruptionBudget
from gputally.model.needs import QuotaState, Situation
from gputally.model.rules import Rules
from gputally.placement.disruption_budgets import Budgets, PodBudget
from gputally.placement.needs import taken_of
from gputally.placement.node_room import place_of
from gputally.placement.room import Room
from tests.cluster.api import Api, Refused
from tests.cluster.manifests import GPU, Json, pod_disruption_budget, resource_quota
from tests.cluster.objects import condition
from tests.e2e.oracle.board import Board
from tests.e2e.oracle.state import GUARD, SERVING, State, own_namespace

WAITING: Final = "waiting"
SETTLED: Final = 2.5
"""Seconds without a change after which a pod stays as it is: the scheduler tries again after one."""
PATIENCE: Final = 20.0
STOPPING_SECONDS: Final = 3600
RULES: Final = Rules()


@dataclass(frozen=True)
class Outcome:
    """What became of the pod: where it was bound, or for which node it has preempted pods, and the victims by name."""

    bound: str = ""
    nominated: str = ""
    victims: frozenset[str] = frozenset()
    text: str = ""


class Trial:
    """A state, which has its own namespace and nodes in the cluster."""

    def __init__(self, api: Api, board: Board, state: State) -> None:
        self.api = api
        self.board = board
        self.state = state
        self.refusal: Refused | None = None
        self.names: dict[str, str] = {}
        """Names of the holders by UID."""

    @classmethod
    @asynccontextmanager
    async def of(cls, api: Api, board: Board, state: State) -> AsyncIterator[Self]:
        """The state as it is created, without the waiting pod; it is deleted in the end."""
        trial = cls(api, board, state)
        try:
            await trial.furnish()
            yield trial
        finally:
            await trial.clear()

    async def furnish(self) -> None:
        await self.api.create(own_namespace(self.state.name))
        if self.state.quota is not None:
            await self.set_quota(self.state.quota)
        for node in self.state.nodes:
            await self.api.create(node)
        for holder in self.state.holders:
            made = await self.api.create(holder)
            self.names[made["metadata"]["uid"]] = made["metadata"]["name"]
            if status := holder.get("status"):
                await self.api.patch(f"{self.path(made['metadata']['name'])}/status", {"status": status})
        for name in self.state.stopping:
            await self.api.delete(self.path(name), grace_seconds=STOPPING_SECONDS)
        for value, stay in self.state.budgets:
            await self.guard(value, stay)
        for node in self.state.nodes:
            await self.api.wait_for(f"/api/v1/nodes/{node['metadata']['name']}", is_ready, within=PATIENCE)

    async def guard(self, value: str, stay: int) -> None:
        """A budget for the pods with this label, which are ready, and its status."""
        pods = [each for each in self.state.holders if each["metadata"]["labels"].get(GUARD) == value]
        for pod in pods:
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self.api.patch(f"{self.path(pod['metadata']['name'])}/status", {"status": ready})
        budget = pod_disruption_budget(value, self.state.name, labels={GUARD: value}, min_available=stay)
        await self.api.create(budget)

        def is_counted(found: Json | None) -> bool:
            status = found["status"] if found else {}
            return bool(status.get("observedGeneration")) and status.get("currentHealthy") == len(pods)

        await self.api.wait_for(f"{self.budgets_path}/{value}", is_counted, within=PATIENCE)

    @property
    def budgets_path(self) -> str:
        return f"/apis/policy/v1/namespaces/{self.state.name}/poddisruptionbudgets"

    async def set_quota(self, gpus: int) -> None:
        """A quota of as many GPUs beyond those of the holders, which it counts as they are created."""
        await self.api.create(resource_quota("gpus", self.state.name, gpus=held(self.state) + gpus))
        path = f"/api/v1/namespaces/{self.state.name}/resourcequotas/gpus"
        await self.api.wait_for(path, lambda quota: bool(quota and quota["status"].get("used")), within=PATIENCE)

    async def clear(self) -> None:
        for name in self.board.of(self.state.name):
            await self.deleted(self.path(name), grace_seconds=0)
        for node in self.state.nodes:
            await self.deleted(f"/api/v1/nodes/{node['metadata']['name']}")
        await self.deleted(f"/api/v1/namespaces/{self.state.name}")

    async def deleted(self, path: str, *, grace_seconds: int | None = None) -> None:
        """Delete what exists."""
        try:
            await self.api.delete(path, grace_seconds=grace_seconds)
        except Refused as refusal:
            if refusal.code != 404:
                raise

    async def wait_pod(self) -> None:
        """Create the waiting pod, unless the quota refuses it."""
        try:
            await self.api.create(self.state.pod)
        except Refused as refusal:
            if "exceeded quota" not in str(refusal):
                raise
            self.refusal = refusal

    async def room(self) -> Room:
        """What the API server says about the nodes, their pods and the budgets of these."""
        room, labels = Room(), dict[str, dict[str, str]]()
        for node in self.state.nodes:
            found = await self.api.get(f"/api/v1/nodes/{node['metadata']['name']}")
            room.put_node(place_of(msgspec.convert(found, Node)))
        for item in (await self.api.list(f"/api/v1/namespaces/{self.state.name}/pods"))["items"]:
            pod = msgspec.convert(item, PlaceablePod)
            labels[pod.metadata.uid] = pod.metadata.labels or {}
            if pod.spec.node_name:
                room.bind(pod.spec.node_name, pod.metadata.uid, taken_of(pod, is_serving=is_serving(item)))
                if pod.metadata.deletion_timestamp:
                    room.stop(pod.spec.node_name, pod.metadata.uid)
        found = (await self.api.list(self.budgets_path))["items"] if self.state.budgets else []
        room.budgets = Budgets(map(budget_of, found), lambda _: self.state.name, labels.get)
        return room

    def situation(self, outcome: Outcome) -> Situation:
        """What decides besides the nodes, after the pod was created or refused."""
        pod = self.board.of(self.state.name).get(WAITING)
        uid = pod["metadata"]["uid"] if pod and outcome.nominated else ""
        return structs.replace(situation_of(self.state), text=outcome.text, nominated_node=outcome.nominated, uid=uid)

    async def outcome(self, *, binds: bool) -> Outcome:
        """What the scheduler does, once that is final; if it `binds`, it is given more time for that."""
        if self.refusal:
            return Outcome()
        before = set(self.names.values())
        await self.board.until(self.state.name, was_reported, within=PATIENCE)
        if binds:
            await self.board.until(self.state.name, is_bound, within=PATIENCE)
        while await self.board.until(self.state.name, self.differs(), within=SETTLED):
            pass
        pods = self.board.of(self.state.name)
        pod = pods[WAITING]
        return Outcome(
            bound=pod["spec"].get("nodeName", ""),
            nominated=pod["status"].get("nominatedNodeName", ""),
            victims=frozenset(before - set(pods)),
            text=condition(pod, "PodScheduled").get("message", ""),
        )

    def differs(self) -> Callable[[dict[str, Json]], bool]:
        """Whether the scheduler has done something from now on."""
        seen = summary(self.board.of(self.state.name))
        return lambda pods: summary(pods) != seen

    def path(self, pod: str) -> str:
        return f"/api/v1/namespaces/{self.state.name}/pods/{pod}"


def budget_of(item: Json) -> PodBudget:
    found = msgspec.convert(item, PodDisruptionBudget)
    meta, allowed = found.metadata, found.status.disruptions_allowed
    return PodBudget(namespace=meta.namespace, name=meta.name, selector=found.spec.selector, allowed=allowed)


def held(state: State) -> int:
    """The GPUs of the holders."""
    return sum(map(gpus_of, state.holders))


def situation_of(state: State) -> Situation:
    """What decides besides the nodes, before the pod is created."""
    needed, quota = gpus_of(state.pod), None
    if state.quota is not None and needed > state.quota:
        used = held(state)
        quota = QuotaState(name="gpus", what=f"requests.{GPU}", hard=used + state.quota, used=used, needed=needed)
    return Situation(quota=quota, is_serving=is_serving(state.pod))


def is_serving(pod: Json) -> bool:
    return SERVING in pod["metadata"]["labels"]


def gpus_of(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))


def summary(pods: dict[str, Json]) -> object:
    """What the scheduler changes."""
    pod = pods.get(WAITING, {"spec": {}, "status": {}})
    return sorted(pods), pod["spec"].get("nodeName"), pod["status"].get("nominatedNodeName")


def was_reported(pods: dict[str, Json]) -> bool:
    return WAITING in pods and bool(condition(pods[WAITING], "PodScheduled"))


def is_bound(pods: dict[str, Json]) -> bool:
    return WAITING in pods and "nodeName" in pods[WAITING]["spec"]


def is_ready(node: Json | None) -> bool:
    """Whether the controller has removed its taint of new nodes, and added that of a cordon."""
    if node is None:
        return False
    keys = {taint["key"] for taint in node["spec"].get("taints", ())}
    is_cordoned = bool(node["spec"].get("unschedulable"))
    return "node.kubernetes.io/not-ready" not in keys and is_cordoned == ("node.kubernetes.io/unschedulable" in keys)
