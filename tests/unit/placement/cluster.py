"""Small rooms and waiting pods."""

from msgspec import structs

from gputally.model.needs import Amounts, Needs, Place, Taint, Taken
from gputally.placement.room import Room

GPU = "nvidia.com/gpu"
GPU_TAINT = Taint(GPU, "present", "NoSchedule")


def amounts(**given: int) -> Amounts:
    """`gpu`, `cpu` in cores, `memory` in GiB; every pod also counts as one of the node's pods."""
    units = {"gpu": (GPU, 1), "cpu": ("cpu", 1000), "memory": ("memory", 2**30), "pods": ("pods", 1)}
    found = {units[name][0]: amount * units[name][1] for name, amount in ({"pods": 1} | given).items()}
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


def place(name: str = "n1", *, gpu: int = 8, cpu: int = 96, pods: int = 110, **fields: object) -> Place:
    offered = amounts(gpu=gpu, cpu=cpu, pods=pods, memory=1024)
    return structs.replace(Place(uid=f"uid-{name}", name=name, offered=offered), **fields)


def needs(*, gpu: int = 1, cpu: int = 1, **fields: object) -> Needs:
    known = Needs(namespace="ml", amounts=amounts(gpu=gpu, cpu=cpu), gpus=(GPU,), priority=100)
    return structs.replace(known, **fields)


def taken(*, gpu: int = 1, cpu: int = 1, priority: int = 100, serving: bool = False, at: int | None = 0) -> Taken:
    return Taken(amounts(gpu=gpu, cpu=cpu), priority, serving, at)


def room(*places: Place, **pods: tuple[str, Taken]) -> Room:
    """The places with pods by UID: each is on a node."""
    found = Room()
    for each in places or (place(),):
        found.put_node(each)
    for uid, (node, what) in pods.items():
        found.bind(node, uid, what)
    return found
