"""Removes obstacles from a state that is in the cluster, before the eyes of its scheduler."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from gputally.model.verdicts import Obstacle, ObstacleKind
from tests.e2e.oracle.alter import quantity, written
from tests.e2e.oracle.trial import WAITING, Trial


def is_removable(obstacles: Iterable[Obstacle]) -> bool:
    """Whether none of them is part of the pod's specification, or keeps it from being created."""
    return all(each.kind in REMOVE and (each.node or each.kind is ObstacleKind.GATE) for each in obstacles)


async def remove(trial: Trial, obstacles: Iterable[Obstacle]) -> None:
    """Gates last, so that the scheduler sees the pod once all other obstacles are gone."""
    for each in sorted(obstacles, key=lambda each: each.kind is ObstacleKind.GATE):
        await REMOVE[each.kind](trial, each)


async def untaint(trial: Trial, obstacle: Obstacle) -> None:
    node = await trial.api.get(node_path(obstacle))
    kept = [taint for taint in node["spec"].get("taints", ()) if written(taint) != obstacle.what]
    await trial.api.patch(node_path(obstacle), {"spec": {"taints": kept}})


async def uncordon(trial: Trial, obstacle: Obstacle) -> None:
    await trial.api.patch(node_path(obstacle), {"spec": {"unschedulable": None}})


async def enlarge(trial: Trial, obstacle: Obstacle) -> None:
    offer = {obstacle.what: quantity(obstacle.what, obstacle.needed or 0)}
    await trial.api.patch(f"{node_path(obstacle)}/status", {"status": {"capacity": offer, "allocatable": offer}})


async def end(trial: Trial, obstacle: Obstacle) -> None:
    for uid in obstacle.pods:
        await trial.deleted(trial.path(trial.names[uid]), grace_seconds=0)


async def ungate(trial: Trial, obstacle: Obstacle) -> None:
    pod = await trial.api.get(trial.path(WAITING))
    kept = [gate for gate in pod["spec"].get("schedulingGates", ()) if gate["name"] != obstacle.what]
    await trial.api.patch(trial.path(WAITING), {"spec": {"schedulingGates": kept}})


def node_path(obstacle: Obstacle) -> str:
    return f"/api/v1/nodes/{obstacle.node}"


REMOVE: Final[Mapping[ObstacleKind, Callable[[Trial, Obstacle], Awaitable[None]]]] = {
    ObstacleKind.TAINT: untaint,
    ObstacleKind.CORDON: uncordon,
    ObstacleKind.SIZE: enlarge,
    ObstacleKind.RESOURCE: end,
    ObstacleKind.GATE: ungate,
}
