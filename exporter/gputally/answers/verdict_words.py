"""Verdicts and their obstacles in words."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from gputally.formatting.amounts import amount_words, bare_amount, listed
from gputally.model.quantities import resource_of
from gputally.model.verdicts import MEMBERS, Obstacle, ObstacleKind, Reason, Verdict

if TYPE_CHECKING:
    from gputally.model.needs import GangState, Needs, Situation

_MOST_TASKS: Final = 4
"""Tasks of a gang that are named."""
Sentence = Callable[[Verdict, "Needs | None", "Situation"], str]


class ReasonWords(Struct, frozen=True, kw_only=True):
    """A reason in words: what a pod waits for, what the reason says of many pods and of one, and what to do first.

    Of reasons without a first step, suggestions say what would help.
    """

    phrase: str
    meaning: str
    sentence: str | Sentence
    first_step: str = ""


NODE_COUNTS: Final[Mapping[ObstacleKind, str]] = {
    ObstacleKind.TAINT: "tainted",
    ObstacleKind.CORDON: "cordoned",
    ObstacleKind.SELECTOR: "not selected",
    ObstacleKind.SIZE: "too small",
    ObstacleKind.RESOURCE: "held by other pods",
}
"""What keeps a pod from so many nodes."""


def sentence(verdict: Verdict, needs: "Needs | None", situation: "Situation") -> str:
    """Why the pod waits, as the end of a sentence about it."""
    found = REASONS[verdict.reason].sentence
    return found if isinstance(found, str) else found(verdict, needs, situation)


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


def _on(verdict: Verdict) -> str:
    return f" on {verdict.node}" if verdict.node else ""


def _preempting(verdict: Verdict, _needs: "Needs | None", _situation: "Situation") -> str:
    is_one = len(verdict.victims) == 1
    count = f"{len(verdict.victims) or ''} pod{'' if is_one else 's'} of lower priority".strip()
    return f"it fits if {count}{_on(verdict)} {'is' if is_one else 'are'} preempted, not done yet"


def _never_preempts(_verdict: Verdict, needs: "Needs | None", _situation: "Situation") -> str:
    name = f"its class {needs.class_name}" if needs and needs.class_name else "it"
    return f"pods of lower priority hold what it needs, but {name} never preempts"


def _pods(count: int) -> str:
    return f"{count or ''} pod{' is' if count == 1 else 's are'}".strip()


def _named(verdict: Verdict, kind: ObstacleKind) -> str:
    return listed([each.what for each in verdict.obstacles if each.kind is kind] or ["an unknown one"])


def _quota(verdict: Verdict, _needs: "Needs | None", situation: "Situation") -> str:
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


def _gang(_verdict: Verdict, _needs: "Needs | None", situation: "Situation") -> str:
    gang = situation.gang
    if gang is None:
        return "its gang is incomplete"
    if gang.members < gang.least:
        return f"its gang {gang.name} is incomplete: {gang.members} of {gang.least} pods exist{_tasks(gang)}"
    if any(each.members < each.least for each in gang.tasks):
        return f"its gang {gang.name} is incomplete: too few pods of a task exist{_tasks(gang)}"
    needs = f"its gang {gang.name} needs {gang.least} pods at once, of which {gang.bound} hold resources"
    return f"{needs}{_tasks(gang)}"


def _tasks(gang: "GangState") -> str:
    """The tasks of a gang that lack pods, or whose pods lack resources."""
    missing = [f"task {each.name}: {each.members} of {each.least}" for each in gang.tasks if each.members < each.least]
    unbound = [f"task {each.name}: {each.bound} of {each.least}" for each in gang.tasks if each.bound < each.least]
    return f" ({listed((missing or unbound)[:_MOST_TASKS])})" if unbound else ""


def _lacking(verdict: Verdict, _needs: "Needs | None", _situation: "Situation") -> str:
    lacking = [each for each in verdict.obstacles if each.kind in (ObstacleKind.RESOURCE, ObstacleKind.SIZE)]
    names = dict.fromkeys("CPU" if each.what == "cpu" else each.what for each in lacking)
    return f"enough GPUs are there{_on(verdict)}, but not enough {listed(names) if names else 'CPU or memory'}"


REASONS: Final[Mapping[str, ReasonWords]] = {
    Reason.NO_SCHEDULER: ReasonWords(
        phrase="its scheduler",
        meaning="no scheduler with the name in their spec.schedulerName is active",
        sentence=lambda verdict, *_: f"no scheduler named {_named(verdict, ObstacleKind.SCHEDULER)} is active",
        first_step="Correct the name, or start the scheduler.",
    ),
    Reason.QUEUED: ReasonWords(
        phrase="queue",
        meaning="their queue has not admitted them",
        sentence=lambda _verdict, _needs, now: f"its queue has not admitted it{f': {now.queue}' * bool(now.queue)}",
        first_step="Look at the quota of the queue.",
    ),
    Reason.GATED: ReasonWords(
        phrase="scheduling gates",
        meaning="they have scheduling gates",
        sentence=lambda verdict, *_: f"it is gated by {_named(verdict, ObstacleKind.GATE)}",
        first_step="Whoever set them must remove them.",
    ),
    Reason.QUOTA_NEVER: ReasonWords(
        phrase="quota too small",
        meaning="they request more than their quota can ever admit",
        sentence=_quota,
    ),
    Reason.QUOTA: ReasonWords(
        phrase="quota",
        meaning="their quota is used up",
        sentence=_quota,
    ),
    Reason.REFUSED: ReasonWords(
        phrase="refused",
        meaning="the API server refuses to create them",
        sentence="the API server refuses to create it",
        first_step="Read what the API server answered.",
    ),
    Reason.CLAIM: ReasonWords(
        phrase="ResourceClaim",
        meaning="a ResourceClaim is not allocated",
        sentence=lambda _verdict, _needs, now: f"ResourceClaim {listed(now.open_claims or ['?'])} is not allocated",
        first_step="Look at the claim: its devices are not modelled.",
    ),
    Reason.GANG: ReasonWords(
        phrase="gang",
        meaning="their gang is incomplete",
        sentence=_gang,
    ),
    Reason.EXCLUDED: ReasonWords(
        phrase="a node that accepts it",
        meaning="taints, cordons, selectors or affinity exclude them from all nodes that are large enough",
        sentence="no node that is large enough accepts it",
    ),
    Reason.IMPOSSIBLE: ReasonWords(
        phrase="a larger node",
        meaning="no node is large enough, even if it were empty",
        sentence="no node is large enough for it, even if it were empty",
    ),
    Reason.UNKNOWN: ReasonWords(
        phrase="not yet known",
        meaning="the pods on the nodes with GPUs are still being listed",
        sentence="it is not yet known why; the pods on the nodes with GPUs are still being listed",
        first_step="Ask again in some seconds.",
    ),
    Reason.OTHER: ReasonWords(
        phrase="other",
        meaning="the scheduler names something that gputally does not model, such as volumes",
        sentence=lambda verdict, *_: f"the scheduler reports {_named(verdict, ObstacleKind.UNMODELLED)}",
        first_step="Read the line Scheduler.",
    ),
    Reason.SCHEDULABLE: ReasonWords(
        phrase="scheduler",
        meaning="they fit, and the scheduler has not bound them yet",
        sentence=lambda verdict, *_: f"it fits{_on(verdict)}, and the scheduler has not bound it yet",
        first_step="If that lasts, look at the scheduler.",
    ),
    Reason.VICTIMS_STOPPING: ReasonWords(
        phrase="victims stopping",
        meaning="pods on their node are stopping to make room",
        sentence=lambda verdict, *_: (
            f"room is being made{_on(verdict)}, where {_pods(len(verdict.victims))} still stopping"
        ),
        first_step="Wait for their grace period.",
    ),
    Reason.PREEMPTING: ReasonWords(
        phrase="preemption",
        meaning="they fit if pods of lower priority are preempted, which the scheduler has not done yet",
        sentence=_preempting,
        first_step="If that lasts, look at the scheduler.",
    ),
    Reason.OTHER_RESOURCE: ReasonWords(
        phrase="CPU or memory",
        meaning="a node has enough GPUs for them, but not enough CPU, memory, storage or pods",
        sentence=_lacking,
    ),
    Reason.NEVER_PREEMPTS: ReasonWords(
        phrase="preemptionPolicy: Never",
        meaning="pods of lower priority hold what they need, and they never preempt (preemptionPolicy)",
        sentence=_never_preempts,
    ),
    Reason.INVERSION: ReasonWords(
        phrase="priority inversion",
        meaning="they serve users, while pods that serve none hold what they need, at the same or a higher priority",
        sentence="it serves users, while pods that serve none hold what it needs, at the same or a higher priority",
    ),
    Reason.FRAGMENTED: ReasonWords(
        phrase="fragmentation",
        meaning="enough GPUs are free or may be preempted, but not on one node",
        sentence="enough GPUs are free or may be preempted, but not on one node",
    ),
    Reason.CAPACITY: ReasonWords(
        phrase="capacity",
        meaning="pods of the same or a higher priority hold what they need",
        sentence="pods of the same or a higher priority hold what it needs",
    ),
}
"""All that is said of each reason, whose code is its value: API, pages, commands and the demo take it from here."""

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
