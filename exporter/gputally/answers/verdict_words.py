"""Verdicts and their obstacles in words."""

from collections.abc import Callable, Mapping
from typing import Final

from gputally.formatting.amounts import amount_words, bare_amount, listed
from gputally.model.needs import GangState, Needs, Situation, resource_of
from gputally.model.verdicts import MEMBERS, Obstacle, ObstacleKind, Reason, Verdict

_MOST_TASKS: Final = 4
"""Tasks of a gang that are named."""
SHORT: Final[Mapping[Reason, str]] = {
    Reason.NO_SCHEDULER: "its scheduler",
    Reason.QUEUED: "queue",
    Reason.GATED: "scheduling gates",
    Reason.QUOTA_NEVER: "quota too small",
    Reason.QUOTA: "quota",
    Reason.REFUSED: "refused",
    Reason.CLAIM: "ResourceClaim",
    Reason.GANG: "gang",
    Reason.EXCLUDED: "a node that accepts it",
    Reason.IMPOSSIBLE: "a larger node",
    Reason.UNKNOWN: "not yet known",
    Reason.OTHER: "other",
    Reason.SCHEDULABLE: "scheduler",
    Reason.VICTIMS_STOPPING: "victims stopping",
    Reason.PREEMPTING: "preemption",
    Reason.OTHER_RESOURCE: "CPU or memory",
    Reason.NEVER_PREEMPTS: "preemptionPolicy: Never",
    Reason.INVERSION: "priority inversion",
    Reason.FRAGMENTED: "fragmentation",
    Reason.CAPACITY: "capacity",
}
"""What a pod waits for, in a word or two."""

MEANING: Final[Mapping[Reason, str]] = {
    Reason.NO_SCHEDULER: "no scheduler with the name in their spec.schedulerName is active",
    Reason.QUEUED: "their queue has not admitted them",
    Reason.GATED: "they have scheduling gates",
    Reason.QUOTA_NEVER: "they request more than their quota can ever admit",
    Reason.QUOTA: "their quota is used up",
    Reason.REFUSED: "the API server refuses to create them",
    Reason.CLAIM: "a ResourceClaim is not allocated",
    Reason.GANG: "their gang is incomplete",
    Reason.EXCLUDED: "taints, cordons, selectors or affinity exclude them from all nodes that are large enough",
    Reason.IMPOSSIBLE: "no node is large enough, even if it were empty",
    Reason.UNKNOWN: "the pods on the nodes with GPUs are still being listed",
    Reason.OTHER: "the scheduler names something that gputally does not model, such as volumes",
    Reason.SCHEDULABLE: "they fit, and the scheduler has not bound them yet",
    Reason.VICTIMS_STOPPING: "pods on their node are stopping to make room",
    Reason.PREEMPTING: "they fit if pods of lower priority are preempted, which the scheduler has not done yet",
    Reason.OTHER_RESOURCE: "a node has enough GPUs for them, but not enough CPU, memory, storage or pods",
    Reason.NEVER_PREEMPTS: "pods of lower priority hold what they need, and they never preempt (preemptionPolicy)",
    Reason.INVERSION: (
        "they serve users, while pods that serve none hold what they need, at the same or a higher priority"
    ),
    Reason.FRAGMENTED: "enough GPUs are free or may be preempted, but not on one node",
    Reason.CAPACITY: "pods of the same or a higher priority hold what they need",
}
"""What a verdict says about all its pods."""

NODE_COUNTS: Final[Mapping[ObstacleKind, str]] = {
    ObstacleKind.TAINT: "tainted",
    ObstacleKind.CORDON: "cordoned",
    ObstacleKind.SELECTOR: "not selected",
    ObstacleKind.SIZE: "too small",
    ObstacleKind.RESOURCE: "held by other pods",
}
"""What keeps a pod from so many nodes."""
_OWN: Final[Mapping[Reason, str]] = {
    Reason.REFUSED: "the API server refuses to create it",
    Reason.EXCLUDED: "no node that is large enough accepts it",
    Reason.IMPOSSIBLE: "no node is large enough for it, even if it were empty",
    Reason.UNKNOWN: "it is not yet known why; the pods on the nodes with GPUs are still being listed",
    Reason.INVERSION: (
        "it serves users, while pods that serve none hold what it needs, at the same or a higher priority"
    ),
    Reason.FRAGMENTED: "enough GPUs are free or may be preempted, but not on one node",
    Reason.CAPACITY: "pods of the same or a higher priority hold what it needs",
}


def sentence(verdict: Verdict, needs: Needs | None, situation: Situation) -> str:
    """Why the pod waits, as the end of a sentence about it."""
    found = _SENTENCES.get(verdict.reason)
    return found(verdict, situation) if found else _fixed(verdict, needs)


def obstacle_text(obstacle: Obstacle, *, shows_node: bool = True) -> str:
    """One obstacle in words, with its node and the value of its taint unless the reader may not know them."""
    where = f"{obstacle.node}: " if obstacle.node and shows_node else ""
    if obstacle.kind is ObstacleKind.TAINT and not shows_node:
        return f"taint {without_value(obstacle.what)} is not tolerated"
    return where + _OBSTACLES[obstacle.kind](obstacle)


def without_value(taint: str) -> str:
    """`team:NoSchedule` of `team=a:NoSchedule`, as the value may name others."""
    key, _, effect = taint.rpartition(":")
    return f"{key.partition('=')[0]}:{effect}"


def _fixed(verdict: Verdict, needs: Needs | None) -> str:
    on = f" on {verdict.node}" if verdict.node else ""
    match verdict.reason:
        case Reason.SCHEDULABLE:
            return f"it fits{on}, and the scheduler has not bound it yet"
        case Reason.VICTIMS_STOPPING:
            return f"room is being made{on}, where {_pods(len(verdict.victims))} still stopping"
        case Reason.PREEMPTING:
            count = (
                f"{len(verdict.victims) or ''} pod{'' if len(verdict.victims) == 1 else 's'} of lower priority".strip()
            )
            return f"it fits if {count}{on} {'is' if len(verdict.victims) == 1 else 'are'} preempted, not done yet"
        case Reason.NEVER_PREEMPTS:
            name = f"its class {needs.class_name}" if needs and needs.class_name else "it"
            return f"pods of lower priority hold what it needs, but {name} never preempts"
        case _:
            return _OWN[verdict.reason]


def _pods(count: int) -> str:
    return f"{count or ''} pod{' is' if count == 1 else 's are'}".strip()


def _named(verdict: Verdict, kind: ObstacleKind) -> str:
    return listed([each.what for each in verdict.obstacles if each.kind is kind] or ["an unknown one"])


def _quota(verdict: Verdict, situation: Situation) -> str:
    quota = situation.quota
    if quota is None:
        return "its quota is used up"
    needed, hard, used = (
        quota_words(quota.what, quota.needed),
        *(_bare(quota.what, each) for each in (quota.hard, quota.used)),
    )
    if verdict.reason is Reason.QUOTA_NEVER:
        return f"its quota {quota.name} can never admit it: {needed} needed, {hard} allowed"
    return f"its quota {quota.name} is used up: {needed} needed, {used} of {hard} used"


def quota_words(key: str, amount: int) -> str:
    """The amount of what a quota limits, by its key."""
    return f"{amount_words(resource_of(key), amount)}{' as limits' if key.startswith('limits.') else ''}"


def _bare(key: str, amount: int) -> str:
    return bare_amount(resource_of(key), amount)


def _of_gang(obstacle: Obstacle) -> str:
    name = obstacle.what.removesuffix(f": {MEMBERS}")
    if name != obstacle.what:
        return f"gang {name}: {obstacle.free} of {obstacle.needed} pods exist"
    return f"gang {name}: {obstacle.needed} pods at once, {obstacle.free} possible"


def _of_quota(each: Obstacle) -> str:
    name, _, key = each.what.rpartition(": ")
    return f"quota {name}: {quota_words(key, each.needed or 0)} needed, {_bare(key, each.free or 0)} left"


def _gang(_: Verdict, situation: Situation) -> str:
    gang = situation.gang
    if gang is None:
        return "its gang is incomplete"
    if gang.members < gang.least:
        return f"its gang {gang.name} is incomplete: {gang.members} of {gang.least} pods exist{_tasks(gang)}"
    if any(each.members < each.least for each in gang.tasks):
        return f"its gang {gang.name} is incomplete: too few pods of a task exist{_tasks(gang)}"
    needs = f"its gang {gang.name} needs {gang.least} pods at once, of which {gang.bound} hold resources"
    return f"{needs}{_tasks(gang)}"


def _tasks(gang: GangState) -> str:
    """The tasks of a gang that lack pods, or whose pods lack resources."""
    missing = [f"task {each.name}: {each.members} of {each.least}" for each in gang.tasks if each.members < each.least]
    unbound = [f"task {each.name}: {each.bound} of {each.least}" for each in gang.tasks if each.bound < each.least]
    return f" ({listed((missing or unbound)[:_MOST_TASKS])})" if unbound else ""


def _lacking(verdict: Verdict, _: Situation) -> str:
    lacking = [each for each in verdict.obstacles if each.kind in (ObstacleKind.RESOURCE, ObstacleKind.SIZE)]
    names = dict.fromkeys("CPU" if each.what == "cpu" else each.what for each in lacking)
    on = f" on {verdict.node}" if verdict.node else ""
    return f"enough GPUs are there{on}, but not enough {listed(names) if names else 'CPU or memory'}"


_SENTENCES: Final[Mapping[Reason, Callable[[Verdict, Situation], str]]] = {
    Reason.NO_SCHEDULER: lambda verdict, _: f"no scheduler named {_named(verdict, ObstacleKind.SCHEDULER)} is active",
    Reason.QUEUED: lambda _, situation: (
        f"its queue has not admitted it{f': {situation.queue}' * bool(situation.queue)}"
    ),
    Reason.GATED: lambda verdict, _: f"it is gated by {_named(verdict, ObstacleKind.GATE)}",
    Reason.QUOTA_NEVER: _quota,
    Reason.QUOTA: _quota,
    Reason.CLAIM: lambda _, situation: f"ResourceClaim {listed(situation.open_claims or ['?'])} is not allocated",
    Reason.GANG: _gang,
    Reason.OTHER_RESOURCE: _lacking,
    Reason.OTHER: lambda verdict, _: f"the scheduler reports {_named(verdict, ObstacleKind.UNMODELLED)}",
}

_OBSTACLES: Final[Mapping[ObstacleKind, Callable[[Obstacle], str]]] = {
    ObstacleKind.TAINT: lambda each: f"taint {each.what} is not tolerated",
    ObstacleKind.CORDON: lambda _: "cordoned",
    ObstacleKind.SELECTOR: lambda each: f"does not match {each.what}",
    ObstacleKind.SIZE: lambda each: f"{_needed(each)}, the node has {bare_amount(each.what, each.free or 0)}",
    ObstacleKind.RESOURCE: lambda each: f"{_needed(each)}, {bare_amount(each.what, each.free or 0)} available",
    ObstacleKind.POLICY: lambda each: each.what or "preemptionPolicy: Never",
    ObstacleKind.GATE: lambda each: f"scheduling gate {each.what}",
    ObstacleKind.QUEUE: lambda each: f"queue: {each.what}" if each.what else "the queue has not admitted it",
    ObstacleKind.QUOTA: _of_quota,
    ObstacleKind.CLAIM: lambda each: f"ResourceClaim {each.what} is not allocated",
    ObstacleKind.GANG: _of_gang,
    ObstacleKind.SCHEDULER: lambda each: f"no scheduler named {each.what} is active",
    ObstacleKind.UNMODELLED: lambda each: each.what,
}


def _needed(obstacle: Obstacle) -> str:
    return f"{amount_words(obstacle.what, obstacle.needed or 0)} needed"
