"""Measures the verdicts on waiting pods: 200 classes of them before 2,500 nodes with 20,000 pods."""

import time
from collections.abc import Iterator
from random import Random
from statistics import mean
from typing import Final

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm, Toleration
from gputally.model.needs import Amounts, Needs, Place, Situation, Taint, Taken
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from labs.bench.figure import Figure
from labs.bench.timing import timed

NODES, PODS, CLASSES = 2500, 20_000, 200
GPUS: Final = 8
GPU: Final = "nvidia.com/gpu"
MODELS: Final = ("A100", "H100", "H200", "L40S", "L4")
POOLS: Final = 12
PRIORITIES: Final = (100, 500, 1000, 5000, 10_000)
CHANGES: Final = 200


def measure() -> Iterator[Figure]:
    """In a cluster with some free GPUs, and in one without any."""
    yield from _in_cluster("busy", full=0.97)
    yield from _in_cluster("full", full=1)


def _in_cluster(name: str, *, full: float) -> Iterator[Figure]:
    """Build the room, judge all classes from scratch and again, then after each of many changes of a node."""
    chance, room = Random(1), Room()
    waiting = [_needs(chance, number) for number in range(CLASSES)]
    verdicts = {}
    yield Figure(f"placement.{name}.build_ms", 1000 * timed(lambda: _fill(room, chance, full)), "ms")

    def judge_all() -> None:
        for needs, situation in waiting:
            verdicts[needs] = judged(needs, room, situation)

    yield Figure(f"placement.{name}.all_from_scratch_ms", 1000 * timed(judge_all), "ms", "<= 1000")
    yield Figure(f"placement.{name}.all_again_ms", 1000 * timed(judge_all), "ms")
    reasons = [verdict.reason for verdict in verdicts.values()]
    for reason in sorted(set(reasons)):
        yield Figure(f"placement.{name}.classes.{reason}", reasons.count(reason), "classes")
    times = list(_after_changes(room, waiting, chance))
    yield Figure(f"placement.{name}.class_after_change_ms", mean(times), "ms", "<= 1")
    yield Figure(f"placement.{name}.class_after_change_max_ms", max(times), "ms")


def _after_changes(room: Room, waiting: list[tuple[Needs, Situation]], chance: Random) -> Iterator[float]:
    """Milliseconds of one class after a pod on a node was replaced by another."""
    names = sorted(room.nodes)
    for number in range(CHANGES):
        node = room.nodes[chance.choice(names)]
        uid, taken = next(iter(node.taken.items()))
        room.release(node.name, uid)
        room.bind(node.name, f"new-{number}", taken)
        needs, situation = chance.choice(waiting)
        started = time.perf_counter()
        judged(needs, room, situation)
        yield 1000 * (time.perf_counter() - started)


def _fill(room: Room, chance: Random, full: float) -> None:
    """Nodes that are almost full, as in a busy cluster; their memory differs, as it does on real machines."""
    names = [f"node-{number}" for number in range(NODES)]
    for number, name in enumerate(names):
        room.put_node(_place(name, number, chance))
    for number in range(PODS):
        name = names[number % NODES]
        free = room.nodes[name].free[GPU]
        gpus = min(chance.choice((0, 0, 0, 1, 1, 1, 2, 4)), free)
        if number >= PODS - NODES and chance.random() < full:
            gpus = free  # the last pod of a node takes the rest
        amounts = _amounts(gpus, cpu=4 + 8 * gpus, memory=8 + 64 * gpus)
        room.bind(name, f"pod-{number}", Taken(amounts, chance.choice(PRIORITIES), number % 3 == 0, number * 1_000_000))


def _place(name: str, number: int, chance: Random) -> Place:
    pool = number % POOLS
    labels = {"kubernetes.io/hostname": name, "model": MODELS[pool % len(MODELS)], "pool": f"pool-{pool}"}
    offered = {"cpu": 96_000, "memory": 2**40 - 4096 * chance.randrange(1000), "pods": 110, GPU: GPUS}
    return Place(
        uid=f"uid-{name}",
        name=name,
        labels=tuple(sorted(labels.items())),
        taints=(Taint(GPU, "present", "NoSchedule"), *([Taint("pool", str(pool), "NoSchedule")] if pool < 3 else [])),
        offered=tuple(sorted(offered.items())),
        is_cordoned=number % 100 == 0,
    )


def _amounts(gpus: int, *, cpu: int, memory: int) -> Amounts:
    found = {"cpu": 1000 * cpu, "memory": 2**30 * memory, "pods": 1, GPU: gpus}
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


def _needs(chance: Random, number: int) -> tuple[Needs, Situation]:
    gpus, priority = chance.choice((1, 1, 2, 4, 8)), chance.choice(PRIORITIES)
    requirement = LabelRequirement(key="pool", operator="In", values=(f"pool-{number % POOLS}", f"pool-{number % 5}"))
    needs = Needs(
        namespace=f"team-{number % 40}",
        amounts=_amounts(gpus, cpu=8 * gpus, memory=64 * gpus if number % 20 else 4096),
        gpus=(GPU,),
        priority=priority,
        may_preempt=number % 4 != 0,
        node_selector=(("model", MODELS[number % len(MODELS)]),) if number % 3 == 0 else (),
        node_terms=(NodeSelectorTerm(match_expressions=(requirement,)),) if number % 3 == 1 else None,
        tolerations=(Toleration(key=GPU, operator="Exists"),) if number % 10 else (),
    )
    return needs, Situation(is_serving=number % 5 == 0)
