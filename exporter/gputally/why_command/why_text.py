"""The answers of `gputally why` as text: the first line is the answer, the others its evidence."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from gputally.model.placement.why_document import (
    Help,
    NeededResources,
    ObstacleText,
    OccupantPod,
    PastWait,
    WhyAnswer,
    WhyDocument,
)
from gputally.pending_api.words.amount_words import amount_words, byte_words, count_words, listed
from gputally.pending_api.words.duration_words import duration
from gputally.pending_api.words.suggestion_words import ACTOR_WORDS
from gputally.why_command.gang_words import gang_words
from gputally.why_command.text_lines import clock, gpus, headed, headed_if, headed_table, money, paragraph, pods
from gputally.why_command.workload_text import workload_lines

NO_CLASS: Final = "no PriorityClass"
_MOST_OCCUPANTS: Final = 5
_MOST_OBSTACLES: Final = 3
_MOST_WAITS: Final = 4
_LEAST_SIMILAR: Final = 10
"""Fewer pods have no quantiles worth the name."""
_MOST_HELPS: Final = 3
_MOST_VICTIMS: Final = 3
_PAST: Final = {"ended": "has ended", "gone": "exists no longer"}
_OCCUPANT_HEADS: Final = ("GPUS", "TIER", "PRIORITY", "PER HOUR", "PREEMPTIBLE", "POD (TENANT)")
_NUMBERS: Final = frozenset({0, 2, 3})


def why_lines(document: WhyDocument, *, width: int) -> Iterator[str]:
    """All answers, with an empty line between two."""
    for index, answer in enumerate(document.answers):
        if index:
            yield ""
        yield from _answer(answer, document, width)
    for index, workload in enumerate(document.workloads):
        if index or document.answers:
            yield ""
        yield from workload_lines(workload, document, width=width)
    if document.bound and document.answers:
        yield ""
        have = f"{pods(document.bound)} of the same job {'has its' if document.bound == 1 else 'have their'} GPUs"
        yield from paragraph(f"{have}{_on_nodes(document)}.", width)


def _answer(answer: WhyAnswer, document: WhyDocument, width: int) -> Iterator[str]:
    yield from _headline(answer, document, width)
    if answer.preempted:
        yield from headed("Preempted", _preempted(answer, document), width=width)
    if answer.needs:
        yield from headed("Needs", needs_words(answer.needs, model=answer.pod.gpu_model), width=width)
    yield from headed("Class", _class(answer), width=width)
    yield from headed_if("Cost", _cost(answer, document.currency), width=width)
    yield from obstacle_lines(answer.obstacles, width=width)
    yield from headed_if("Nodes", _nodes(answer), width=width)
    yield from occupant_lines("Held by", answer.occupants, document.currency, width=width, more=answer.more_occupants)
    if answer.gang:
        yield from headed("Gang", gang_words(answer.gang, document.currency, now=document.at), width=width)
    for index, note in enumerate(answer.priorities):
        yield from headed("" if index else "Priorities", note.text, width=width)
    yield from headed("Waited for", _waits(answer.waits, document), width=width) if answer.waits else ()
    yield from headed_if("Others", similar := _similar(answer), width=width)
    yield from others_lines("" if similar else "Others", answer.others_waiting, width=width)
    yield from would_help(answer.helps, document.currency, width=width)
    yield from headed_if("Scheduler", answer.scheduler_message, width=width)


def _on_nodes(document: WhyDocument) -> str:
    """`, on 8 nodes; 2 such nodes would hold them`."""
    used, needed = document.nodes_used, document.nodes_needed
    if used is None or needed is None:
        return ""
    on = f", on {used:,} node{'' if used == 1 else 's'}"
    return f"{on}; {needed:,} such node{'' if needed == 1 else 's'} would hold them" if needed < used else on


def _headline(answer: WhyAnswer, document: WhyDocument, width: int) -> Iterator[str]:
    pod = answer.pod
    name = f"{pod.namespace}/{pod.pod}"
    if answer.state != "pending":
        yield from paragraph(f"{name} {_past(answer)}", width)
        return
    cost = money(pod.cost_per_hour, document.currency) if pod.cost_per_hour is not None else ""
    price, waited = (f", {cost} per hour" if cost else ""), duration(answer.waited_seconds)
    if answer.pods > 1:
        others = f"{name} and {pods(answer.pods - 1)} like it have waited up to {waited}"
        yield from paragraph(
            f"{others} for {gpus(pod.gpus)} each{f'{price} each' if price else ''}: {pod.text}.", width
        )
    else:
        yield from paragraph(f"{name} has waited {waited} for {gpus(pod.gpus)}{price}: {pod.text}.", width)


def _past(answer: WhyAnswer) -> str:
    waited = duration(answer.waited_seconds)
    if answer.state == "gone" and answer.node is None:
        return f"exists no longer. It waited {waited}, and never got its GPUs."
    before = "; it was" if answer.state == "gone" else ""
    where = f"{before} on {answer.node}" if answer.node else ""
    verb = _PAST.get(answer.state, f"does not wait: it is {answer.state}")
    return f"{verb}{where}. It waited {waited} for its GPUs."


def obstacle_lines(obstacles: Sequence[ObstacleText], *, width: int) -> Iterator[str]:
    """The first obstacles, and how many more there are."""
    for index, each in enumerate(obstacles[:_MOST_OBSTACLES]):
        yield from headed("" if index else "Blocked by", each.text, width=width)
    if len(obstacles) > _MOST_OBSTACLES:
        yield from headed("", f"and {len(obstacles) - _MOST_OBSTACLES:,} more", width=width)


def needs_words(needs: NeededResources, *, model: str) -> str:
    """What one pod needs, on which nodes."""
    parts = [amount_words(name, count) for name, count in needs.devices.items()]
    if parts and model not in ("any", ""):
        parts[0] = f"{parts[0]} of {model}"
    if needs.cpu_cores:
        parts.append(f"{needs.cpu_cores:g} CPU{'' if needs.cpu_cores == 1 else 's'}")
    if needs.memory_bytes:
        parts.append(f"{byte_words(needs.memory_bytes)} memory")
    if needs.ephemeral_storage_bytes:
        parts.append(f"{byte_words(needs.ephemeral_storage_bytes)} ephemeral storage")
    chosen = [f"{key}={value}" for key, value in needs.node_selector.items()]
    chosen += [needs.node_affinity] if needs.node_affinity else []
    return f"{listed(parts)}, on one node" + (f" that matches {listed(chosen)}" if chosen else "")


def _nodes(answer: WhyAnswer) -> str:
    """What keeps it from how many nodes, which one comes closest, and if more nodes would not help, that."""
    counts = ", ".join(f"{count} {what}" for what, count in answer.nodes.items())
    closest = next((each.node for each in answer.obstacles if each.node), None)
    parts = [counts, f"{closest} comes closest" if counts and closest else ""]
    parts.append("more nodes like these would not help" if answer.more_nodes_help is False else "")
    return "; ".join(filter(None, parts))


def _cost(answer: WhyAnswer, currency: str) -> str:
    """What the wait has cost so far; without a price, what the pod may cost, or why nobody knows; "" without prices."""
    pod = answer.pod
    if answer.waited_cost is not None:
        of = f" of all {answer.pods:,} pods" if answer.pods > 1 else ""
        so_far = " so far" if answer.state == "pending" else ""
        return f"{money(answer.waited_cost, currency)} for the wait{of}{so_far}: what its GPUs would have cost"
    if not pod.unpriced:
        return ""
    if (found := pod.cost_range) is None:
        return f"unpriced: {pod.unpriced}"
    rates = dict.fromkeys((f"{Decimal(found.lowest):,.2f}", f"{Decimal(found.highest):,.2f}"))
    others = f", or on {listed(found.unpriced_models)}, which has no price" if found.unpriced_models else ""
    return f"{' to '.join(rates)} {currency} per hour, on {' or '.join(found.gpu_models)}{others}: {pod.unpriced}"


def _class(answer: WhyAnswer) -> str:
    pod = answer.pod
    payer = f"tier {pod.tier}, tenant {pod.tenant}"
    if pod.priority is None:
        return payer
    if pod.may_preempt is None:
        return f"{pod.class_name or NO_CLASS}, priority {pod.priority:,}; {payer}"
    policy = "may preempt lower priorities" if pod.may_preempt else "never preempts (preemptionPolicy: Never)"
    return f"{pod.class_name or NO_CLASS}, priority {pod.priority:,}, {policy}; {payer}"


def occupant_lines(
    head: str, occupants: Sequence[OccupantPod], currency: str, *, width: int, more: int = 0
) -> Iterator[str]:
    """A table of the first ones, and how many more there are."""
    if not occupants:
        return
    shown = occupants[:_MOST_OCCUPANTS]
    rows = [_OCCUPANT_HEADS, *(_occupant(each, currency) for each in shown)]
    used = [column for column in range(len(_OCCUPANT_HEADS)) if any(row[column] for row in rows[1:])]
    chosen = [[row[column] for column in used] for row in rows]
    right = frozenset(place for place, column in enumerate(used) if column in _NUMBERS)
    yield from headed_table(head, chosen, right=right)
    if hidden := len(occupants) - len(shown) + more:
        yield from headed("", f"and {hidden:,} more", width=width)


def _occupant(each: OccupantPod, currency: str) -> Sequence[str]:
    who = (
        f"{each.namespace}/{each.pod} ({each.tenant})"
        if each.pod
        else pods(each.pods)
        if each.pods
        else "pods of others"
    )
    who += ", stopping" if each.state == "terminating" else ""
    priority = "" if each.priority is None else f"{each.priority:,}"
    cost = money(each.cost_per_hour, currency) if each.pod else ""
    return (
        count_words(each.gpus),
        each.tier,
        priority,
        cost,
        "yes" if each.may_be_preempted else f"no, {each.why_not}",
        who,
    )


def _waits(waits: Sequence[PastWait], document: WhyDocument) -> str:
    """What it waited for, the last ones."""
    shown = [
        f"{each.text} {duration(each.seconds)} "
        + (f"(since {clock(each.start, now=document.at)} UTC)" if each.end is None else _span(each, document))
        for each in waits[-_MOST_WAITS:]
    ]
    return ("..., " if len(waits) > _MOST_WAITS else "") + ", then ".join(shown)


def _span(wait: PastWait, document: WhyDocument) -> str:
    assert wait.end
    start, end = clock(wait.start, now=document.at), clock(wait.end, now=document.at)
    return f"({start} to {end})" if start != end else f"(at {start})"


def others_lines(head: str, others_waiting: int, *, width: int, more: str = "") -> Iterator[str]:
    """How many pods wait already that may be bound first, if any, and what `more` is known of them."""
    if others_waiting:
        verb = "waits" if others_waiting == 1 else "wait"
        yield from headed(
            head, f"{pods(others_waiting)} of the same or a higher priority {verb} for such GPUs{more}", width=width
        )


def _similar(answer: WhyAnswer) -> str:
    """How long pods like it waited until they were bound: what is usual. "" for a pod that waits no longer."""
    if answer.state != "pending":
        return ""
    known, like = answer.similar, f"{answer.pod.tier} pods with {gpus(answer.pod.gpus)}"
    if known is None:
        return f"no other {like} were bound so far: nothing to compare with"
    if known.pods < _LEAST_SIMILAR:
        return f"{like} that were bound so far: {known.pods}, too few to compare with"
    median, p90 = duration(known.median_seconds), duration(known.p90_seconds)
    longer = "; it has waited longer than 90 % of them" if answer.waited_seconds > known.p90_seconds else ""
    return f"the last {known.pods} {like} waited {median} in the median, {p90} at p90{longer}"


def would_help(helps: Sequence[Help], currency: str, *, width: int) -> Iterator[str]:
    """The first suggestions with who can make them and what they would destroy; apart, those that change the job."""
    changing = [each for each in helps if each.changes_job]
    kept = [each for each in helps if not each.changes_job][: _MOST_HELPS - bool(changing)]
    for head, shown in (("Would help", kept), ("Change job", changing[: _MOST_HELPS - len(kept)])):
        for index, each in enumerate(shown):
            effect = _effect(each, currency) if each.victims else "it then fits"
            yield from headed("" if index else head, f"- {each.text}{_who(each)}: {effect}", width=width)


def _who(change: Help) -> str:
    """` (the owner of the pod)`; "" if waiting suffices."""
    named = [words for each in change.by if (words := ACTOR_WORDS.get(each, each))]
    return f" ({listed(named)})" if named else ""


def _effect(each: Help, currency: str) -> str:
    """Whom the pod would preempt then, and what that would destroy."""
    victims = each.victims
    named = [f"{each.namespace}/{each.pod}" if each.pod else f"{each.tier} ({gpus(each.gpus)})" for each in victims]
    shown = named[:_MOST_VICTIMS]
    if more := len(named) - len(shown):
        shown.append(f"{more} more")
    is_whole = all(each.pod for each in victims if each.tier)  # what hidden pods would lose is not the reader's to know
    known = [each for each in victims if is_whole and each.lost_gpu_hours is not None]
    hours = sum(each.lost_gpu_hours or 0 for each in known)
    most = "up to " if any(each.is_lost_upper_bound for each in known) else ""
    lost = f", destroying {most}{hours:.2f} GPU-hours of work{_lost_cost(known, currency)}" if known else ""
    return f"it then preempts {listed(shown)}{f' on {each.node}' if each.node else ''}{interrupted(victims)}{lost}"


def interrupted(victims: Sequence[OccupantPod]) -> str:
    """`, interrupting 2 serving pods`; "" without any."""
    serving = sum(each.serves_users for each in victims)
    return f", interrupting {serving} serving pod{'s' if serving > 1 else ''}" if serving else ""


def _lost_cost(known: Sequence[OccupantPod], currency: str) -> str:
    priced = [Decimal(each.lost_cost) for each in known if each.lost_cost is not None]
    return f" ({sum(priced, Decimal(0)):,.2f} {currency})" if priced and currency else ""


def _preempted(answer: WhyAnswer, document: WhyDocument) -> str:
    by = answer.preempted
    assert by
    if by.is_by_queue:
        job = f"{by.job_kind} {by.namespace}/{by.job}" if by.job else "a workload"
        who = f"its queue, for {job} of tier {by.tier}"
    else:
        who = f"{by.namespace}/{by.pod} of tier {by.tier}" if by.pod else f"a pod of tier {by.tier}"
    doubt = " (inferred: no Event names it)" if by.is_inferred else ""
    return f"at {clock(by.at, now=document.at)} UTC by {who}{doubt}"
