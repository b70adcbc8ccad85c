"""Gangs before a few nodes, in a cluster whose scheduler binds them at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import msgspec

from gputally.model.kube.nodes import Node
from gputally.model.needs import GangState, Situation
from gputally.model.verdicts import MEMBERS, Obstacle, ObstacleKind, Verdict
from gputally.placement.needs import needs_of, taken_of
from gputally.placement.node_room import place_of
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.cluster.api import Api
from tests.cluster.manifests import Json
from tests.e2e.oracle.board import Board
from tests.e2e.oracle.sample import with_priority
from tests.e2e.oracle.state import ORACLE, VALUES, class_name, holder, own_namespace, plain_node, pod, requests
from tests.e2e.oracle.trial import PATIENCE, RULES, SETTLED

GATES: Final = "--feature-gates=GenericWorkload=true,GangScheduling=true"
GROUPS: Final = "scheduling.k8s.io/v1alpha2"
MEMBER: Final = "member-"


@dataclass(frozen=True)
class Gang:
    """`members` equal pods, of which `least` must run at once, before nodes with holders."""

    name: str
    nodes: tuple[Json, ...]
    holders: tuple[Json, ...]
    member: Json
    members: int
    least: int

    def verdict(self) -> Verdict:
        """That of the model on each member; holders have their names as UIDs."""
        room = Room()
        for node in self.nodes:
            room.put_node(place_of(msgspec.convert(node, Node)))
        for each in self.holders:
            held = with_priority(each)
            room.bind(held.spec.node_name, held.metadata.name, taken_of(held))
        state = GangState(name="gang", least=self.least, members=self.members)
        return judged(needs_of(with_priority(self.member), RULES), room, Situation(gang=state))

    def without(self, obstacle: Obstacle) -> "Gang":
        """The gang in which the obstacle is gone: its members exist, or there are nodes for them."""
        assert obstacle.kind is ObstacleKind.GANG
        if not obstacle.what.endswith(MEMBERS):
            more = [plain_node(f"{self.name}-m{index}", self.name, gpus=4) for index in range(obstacle.needed or 0)]
            return replace(self, nodes=(*self.nodes, *more))
        return replace(self, members=obstacle.needed or 0)


def gangs(count: int, *, seed: int) -> Iterator[Gang]:
    chance = Random(seed)
    for number in range(count):
        yield gang(chance, f"gang-{number}")


def gang(chance: Random, name: str) -> Gang:
    nodes = [plain_node(f"{name}-n{index}", name, gpus=4) for index in range(chance.choice((1, 2, 3)))]
    holders = [
        holder(f"holder-{index}", each, gpus=chance.choice((1, 2, 4)), priority=chance.choice(VALUES))
        for index, each in enumerate(nodes)
        if chance.random() < 0.6
    ]
    members = chance.choice((2, 3, 4))
    member = pod(
        MEMBER,
        name,
        requests(gpus=chance.choice((1, 2, 3)), cpu="1", memory="1Gi"),
        labels={},
        priorityClassName=class_name(100, preempts=False),
        nodeSelector={ORACLE: name},
        tolerations=[{"key": ORACLE, "operator": "Equal", "value": name, "effect": "NoSchedule"}],
        schedulingGroup={"podGroupName": "gang"},
    )
    least = members + 1 if chance.random() < 0.3 else chance.choice((2, members))
    return Gang(name, tuple(nodes), tuple(holders), member, members, least)


async def bound(api: Api, board: Board, each: Gang, *, number: int, binds: bool) -> int:
    """How many members the scheduler binds, in a copy of the state with that number."""
    name = f"{each.name}-{number}"
    text = msgspec.json.encode((each.nodes, each.holders, each.member)).decode().replace(f'"{each.name}', f'"{name}')
    nodes, holders, member = msgspec.json.decode(text)
    await api.create(own_namespace(name))
    policy = {"schedulingPolicy": {"gang": {"minCount": each.least}}}
    metadata = {"name": "gang", "namespace": name}
    await api.create({"apiVersion": GROUPS, "kind": "PodGroup", "metadata": metadata, "spec": policy})
    for made in (*nodes, *holders):
        await api.create(made)
    for node in nodes:
        await api.wait_for(f"/api/v1/nodes/{node['metadata']['name']}", is_untainted, within=PATIENCE)
    for index in range(each.members):
        await api.create(member | {"metadata": member["metadata"] | {"name": f"{MEMBER}{index}"}})
    await board.until(name, lambda pods: number_bound(pods) >= each.least, within=PATIENCE if binds else SETTLED)
    await board.until(name, lambda pods: number_bound(pods) == each.members, within=SETTLED)
    return number_bound(board.of(name))


def number_bound(pods: dict[str, Json]) -> int:
    return sum("nodeName" in each["spec"] for name, each in pods.items() if name.startswith(MEMBER))


def is_untainted(node: Json | None) -> bool:
    return bool(node) and len((node or {})["spec"]["taints"]) == 1
