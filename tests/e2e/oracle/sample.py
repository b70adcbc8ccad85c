"""States in which no verdict is too frequent."""

from collections import Counter
from collections.abc import Iterator
from itertools import count as numbers
from random import Random

import msgspec

from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.verdicts import Reason
from gputally.placement.needs import needs_of, taken_of
from gputally.placement.node_room import place_of
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.cluster.manifests import Json
from tests.e2e.oracle.guarded import guarded
from tests.e2e.oracle.state import NEVER, State, priority_of, state
from tests.e2e.oracle.trial import RULES, is_serving, situation_of


def mixed(count: int, *, seed: int, prefix: str, most: int) -> Iterator[State]:
    """`count` states, at most `most` of each expected verdict."""
    chance, found = Random(seed), Counter[Reason]()
    for number in numbers():
        drawn = state(chance, f"{prefix}-{number}")
        reason = expected(drawn)
        if found[reason] < most:
            found[reason] += 1
            yield drawn
        if found.total() == count:
            return


def with_budgets(count: int, *, seed: int, prefix: str) -> Iterator[State]:
    """States in which PodDisruptionBudgets decide about the victims of a preemption."""
    chance = Random(seed)
    return (guarded(chance, f"{prefix}-guarded-{number}") for number in range(count))


def expected(drawn: State) -> Reason:
    """The verdict of the model, without a cluster."""
    room = Room()
    for node in drawn.nodes:
        room.put_node(place_of(msgspec.convert(node, Node)))
    for holder in drawn.holders:
        pod = with_priority(holder)
        room.bind(pod.spec.node_name, pod.metadata.name, taken_of(pod, is_serving=is_serving(holder)))
        if pod.metadata.name in drawn.stopping:
            room.stop(pod.spec.node_name, pod.metadata.name)
    return judged(needs_of(with_priority(drawn.pod), RULES), room, situation_of(drawn)).reason


def with_priority(pod: Json) -> PlaceablePod:
    """The pod as admission stores it."""
    policy = "Never" if pod["spec"]["priorityClassName"].endswith(NEVER) else "PreemptLowerPriority"
    spec = pod["spec"] | {"priority": priority_of(pod), "preemptionPolicy": policy}
    return msgspec.convert(pod | {"spec": spec}, PlaceablePod)
