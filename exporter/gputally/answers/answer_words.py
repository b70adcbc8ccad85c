"""The answer about a pod in words, part by part."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Final

from gputally.answers.verdict_words import REASONS
from gputally.formatting.amounts import (
    amount_words,
    bare_amount,
    byte_words,
    count_words,
    gpu_words,
    listed,
    money,
    money_range,
    pod_words,
)
from gputally.formatting.times import clock, duration
from gputally.model.api.pending import GangEntry, PendingPod, QuotaRefusal
from gputally.model.api.why import (
    NeededResources,
    OccupantPod,
    PastWait,
    PreemptedBy,
    UnaccountedNote,
    WhyAnswer,
    WhyDocument,
)
from gputally.model.partial_gangs import NotCompared
from gputally.model.quantities import CPU, LIMITS, REQUESTS, resource_of

if TYPE_CHECKING:
    from gputally.model.needs import QuotaState

NO_CLASS: Final = "no PriorityClass"
OCCUPANT_HEADS: Final = ("GPUs", "Tier", "Priority", "Per hour", "Preemptible", "Pod (tenant)")
OCCUPANT_NUMBERS: Final = frozenset({0, 2, 3})
"""The columns of these that are numbers."""
_MOST_WAITS: Final = 4
_MOST_PREEMPTIONS: Final = 5
"""The last times at which pods of a job were preempted, with up to `_MOST_NAMES` pods each."""
_MOST_NAMES: Final = 3
_LEAST_SIMILAR: Final = 10
"""Fewer pods have no quantiles worth the name."""
_PAST: Final = {
    "ended": "has ended",
    "gone": "exists no longer",
    "gang_wait": "does not wait for GPUs: its gang is incomplete, but it holds its GPUs",
}
NOT_COMPARED: Final[Mapping[str, str]] = {
    NotCompared.UNKNOWN: "what it waits for is not known",
    NotCompared.LIMIT: "enough older gangs of its tenant, or of all tenants, are compared",
}
Facts = Iterator[tuple[str, str]]
_MILLI = 1000


def headline_words(answer: WhyAnswer, currency: str) -> str:
    """The answer in one sentence."""
    pod = answer.pod
    name = f"{pod.namespace}/{pod.pod}"
    if answer.state != "pending":
        return f"{name} {_past(answer)}"
    cost = money_range(pod.cost_per_hour, pod.highest_per_hour, currency) if pod.cost_per_hour is not None else ""
    price, waited = (f", {cost} per hour" if cost else ""), duration(answer.waited_seconds)
    if answer.pods > 1:
        others = f"{name} and {pod_words(answer.pods - 1)} like it have waited up to {waited}"
        return f"{others} for {gpu_words(pod.gpus)} each{f'{price} each' if price else ''}: {_why(answer)}."
    return f"{name} has waited {waited} for {gpu_words(pod.gpus)}{price}: {_why(answer)}."


def _why(answer: WhyAnswer) -> str:
    others = answer.gang.deadlocked_with if answer.gang else []
    return answer.pod.text + (f"; its gang is in a deadlock with {listed(others)}" if others else "")


def _past(answer: WhyAnswer) -> str:
    waited = duration(answer.waited_seconds)
    if answer.state == "gone" and answer.node is None:
        return f"exists no longer. It waited {waited}, and never got its GPUs."
    before = "; it was" if answer.state == "gone" else ""
    where = f"{before} on {answer.node}" if answer.node else ""
    verb = _PAST.get(answer.state, f"does not wait: it is {answer.state}")
    return f"{verb}{where}. It waited {waited} for its GPUs."


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


def nodes_words(answer: WhyAnswer) -> str:
    """What keeps it from how many nodes, which one comes closest, and if more nodes would not help, that."""
    counts = ", ".join(f"{count} {what}" for what, count in answer.nodes.items())
    closest = next((each.node for each in answer.obstacles if each.node), None)
    parts = [counts, f"{closest} comes closest" if counts and closest else ""]
    parts.append("more nodes like these would not help" if answer.more_nodes_help is False else "")
    return "; ".join(filter(None, parts))


def cost_words(answer: WhyAnswer, currency: str) -> str:
    """What the wait has cost so far, and on which GPU models the price depends; or why there is none.

    "" without prices.
    """
    pod = answer.pod
    if answer.waited_cost is not None:
        of = f" of all {answer.pods:,} pods" if answer.pods > 1 else ""
        so_far = " so far" if answer.state == "pending" else ""
        cost = money_range(answer.waited_cost, answer.highest_waited_cost, currency)
        return f"{cost} for the wait{of}{so_far}: what its GPUs would have cost{_models_words(pod, currency)}"
    models = _models_words(pod, currency).removeprefix("; ")
    return ": ".join(filter(None, (models or "unpriced" * bool(pod.unpriced), pod.unpriced)))


def _models_words(pod: PendingPod, currency: str) -> str:
    """`; 2.21 to 3.75 USD per hour, on A100 or H100`, if the nodes that the pod selects have several prices."""
    if (found := pod.cost_range) is None:
        return ""
    rates = dict.fromkeys((f"{Decimal(found.lowest):,.2f}", f"{Decimal(found.highest):,.2f}"))
    others = f", or on {listed(found.unpriced_models)}, which has no price" if found.unpriced_models else ""
    return f"; {' to '.join(rates)} {currency} per hour, on {' or '.join(found.gpu_models)}{others}"


def class_words(answer: WhyAnswer) -> str:
    """The class of the pod, as far as known, with its tier and tenant."""
    pod = answer.pod
    payer = f"tier {pod.tier}, tenant {pod.tenant}"
    if pod.priority is None:
        return payer
    if pod.may_preempt is None:
        return f"{pod.class_name or NO_CLASS}, priority {pod.priority:,}; {payer}"
    policy = "may preempt lower priorities" if pod.may_preempt else "never preempts (preemptionPolicy: Never)"
    return f"{pod.class_name or NO_CLASS}, priority {pod.priority:,}, {policy}; {payer}"


def waits_words(waits: Sequence[PastWait], document: WhyDocument) -> str:
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


def similar_words(answer: WhyAnswer) -> str:
    """How long pods like it waited until they were bound: what is usual. "" for a pod that waits no longer."""
    if answer.state != "pending":
        return ""
    known, like = answer.similar, f"{answer.pod.tier} pods with {gpu_words(answer.pod.gpus)}"
    if known is None:
        return f"no other {like} were bound so far: nothing to compare with"
    if known.pods < _LEAST_SIMILAR:
        return f"{like} that were bound so far: {known.pods}, too few to compare with"
    median, p90 = duration(known.median_seconds), duration(known.p90_seconds)
    longer = "; it has waited longer than 90 % of them" if answer.waited_seconds > known.p90_seconds else ""
    return f"the last {known.pods} {like} waited {median} in the median, {p90} at p90{longer}"


def preempted_words(answer: WhyAnswer, document: WhyDocument) -> str:
    """When and by whom it was preempted; "" if it was not."""
    return preemptor_words(answer.preempted, now=document.at) if answer.preempted else ""


def job_preempted_words(document: WhyDocument) -> Iterator[str]:
    """How many pods of the job were preempted, then the last times: which pods, and by whom; nothing for a pod."""
    if document.preempted_from is None:
        return
    since = f"since {clock(document.preempted_from, now=document.at)} UTC"
    if not document.preempted:
        yield f"No pod of the job was preempted {since}."
        return
    verb = "was" if document.preempted_count == 1 else "were"
    yield f"{pod_words(document.preempted_count)} of the job {verb} preempted {since}:"
    groups = [(by, list(pods)) for by, pods in groupby(document.preempted, key=lambda each: each.by)]
    for by, pods in groups[:_MOST_PREEMPTIONS]:
        names = sorted(each.pod for each in pods)
        more = [f"{len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else []
        yield f"- {listed([*names[:_MOST_NAMES], *more])} {preemptor_words(by, now=document.at)}"
    shown = sum(len(pods) for _, pods in groups[:_MOST_PREEMPTIONS])
    if hidden := document.preempted_count - shown:
        yield f"- {pod_words(hidden)} before"


def preemptor_words(by: PreemptedBy, *, now: datetime) -> str:
    """When and by whom."""
    if by.is_by_queue:
        job = f"{by.job_kind} {by.namespace}/{by.job}" if by.job else "a workload"
        who = f"its queue, for {job} of tier {by.tier}"
    elif by.job:
        who = f"{by.job_kind} {by.namespace}/{by.job} of tier {by.tier}"
    else:
        who = f"{by.namespace}/{by.pod} of tier {by.tier}" if by.pod else f"a pod of tier {by.tier}"
    doubt = " (inferred: no Event names it)" if by.is_inferred else ""
    return f"at {clock(by.at, now=now)} UTC by {who}{doubt}"


def occupant_cells(each: OccupantPod, currency: str) -> Sequence[str]:
    """A row of the table of those that hold what a pod waits for; see OCCUPANT_HEADS."""
    who = f"{each.namespace}/{each.pod} ({each.tenant})" if each.pod else unnamed_words(each)
    who += ", stopping" if each.state == "terminating" else ""
    priority = "" if each.priority is None else f"{each.priority:,}"
    cost = money(each.cost_per_hour, currency) if each.pod else ""
    return (
        count_words(each.gpus),
        each.tier,
        priority,
        cost,
        "yes" if each.may_be_preempted else f"no, {each.why_not}" if each.tier else "not known",
        who,
    )


def unnamed_words(each: OccupantPod) -> str:
    """`2 pods without GPUs`; of other tenants' pods, whose number the reader may not know, `pods of others`."""
    who = pod_words(each.pods) if each.pods else "pods of others" if each.tier else "pods"
    return who if each.tier else f"{who} without GPUs"


def bound_words(document: WhyDocument) -> str:
    """How many pods of the same job have their GPUs, on how many nodes; "" for none."""
    if not document.bound:
        return ""
    have = f"{pod_words(document.bound)} of the same job {'has its' if document.bound == 1 else 'have their'} GPUs"
    return f"{have}{_on_nodes(document)}."


def unaccounted_words(note: UnaccountedNote) -> str:
    """Why GPUs of a bound pod are not accounted."""
    node = f" on {note.node}" if note.node else ""
    what = gpu_words(note.gpus) if note.gpus else "devices"
    resources = f" ({listed(note.resources)})" if note.resources else ""
    pod = f"{note.namespace}/{note.pod}{node}"
    return f"{pod} asks for {what}{resources} that are not accounted: {note.text} ({note.reason})."


def _on_nodes(document: WhyDocument) -> str:
    """`, on 8 nodes; 2 such nodes would hold them`."""
    used, needed = document.nodes_used, document.nodes_needed
    if used is None or needed is None:
        return ""
    on = f", on {used:,} node{'' if used == 1 else 's'}"
    return f"{on}; {needed:,} such node{'' if needed == 1 else 's'} would hold them" if needed < used else on


def gang_words(gang: GangEntry, currency: str, *, now: datetime) -> str:
    """How much of it is bound, since when, what that costs, and which gangs wait for it while it waits for them."""
    since = duration((now - gang.since).total_seconds())
    rate = f", {money(gang.cost_per_hour, currency)} per hour" if gang.cost_per_hour is not None else ""
    cost = f" ({money(gang.cost, currency)} so far)" if gang.cost is not None else ""
    bound = f"{gang.bound} of {gang.needed} pods of {gang.kind} {gang.namespace}/{gang.name}"
    if gang.tasks:
        bound = f"{bound} ({listed([f'task {each.name}: {each.bound} of {each.needed}' for each in gang.tasks])})"
    have = "has" if gang.bound == 1 else "have"
    others = gang.deadlocked_with
    deadlock = f"; it and {listed(others)} wait for each other: suspend one of them" if others else ""
    if not others and gang.not_compared:
        deadlock = f"; whether it is in a deadlock is not known: {NOT_COMPARED[gang.not_compared]}"
    return f"{bound} {have} been bound for {since}, holding {gpu_words(gang.gpus)}{rate}{cost}{deadlock}"


def first_step(reason: str, *, has_suggestions: bool) -> str:
    """The first step about a pod or workload that waits for this reason; "" if suggestions say more."""
    words = REASONS.get(reason)
    return words.first_step if words and not has_suggestions else ""


def pod_facts(answer: WhyAnswer, document: WhyDocument) -> Facts:
    """What the pod is, and what it needs."""
    return _non_empty(
        ("Preempted", preempted_words(answer, document)),
        ("Needs", needs_words(answer.needs, model=answer.pod.gpu_model) if answer.needs else ""),
        ("Class", class_words(answer)),
        ("Cost", cost_words(answer, document.currency)),
    )


def wait_facts(answer: WhyAnswer, document: WhyDocument) -> Facts:
    """With whom it waits, whom it should precede, and what it waited for before."""
    return _non_empty(
        ("Gang", gang_words(answer.gang, document.currency, now=document.at) if answer.gang else ""),
        *(("Priorities", each.text) for each in answer.priorities),
        ("Waited for", waits_words(answer.waits, document) if answer.waits else ""),
    )


def next_facts(answer: WhyAnswer) -> Facts:
    """What to do first where no change was found, and what the scheduler says."""
    return _non_empty(
        ("First step", first_step(answer.pod.reason, has_suggestions=bool(answer.helps))),
        ("Scheduler", answer.scheduler_message),
    )


def _non_empty(*lines: tuple[str, str]) -> Facts:
    return ((head, text) for head, text in lines if text)


def quota_refusal(quota: "QuotaState | None") -> QuotaRefusal | None:
    """The quota in units of people."""
    if quota is None:
        return None
    scale = _MILLI if resource_of(quota.what) == CPU else 1
    return QuotaRefusal(
        name=quota.name,
        resource=_key(quota.what),
        hard=quota.hard / scale,
        used=quota.used / scale,
        requested=quota.needed / scale,
    )


def quota_line(quota: QuotaRefusal) -> str:
    """`training, requests.nvidia.com/gpu: 8 requested for each pod, 0 of 6 used`."""
    requested, used, hard = (_amount(quota.resource, each) for each in (quota.requested, quota.used, quota.hard))
    return f"{quota.name}, {quota.resource}: {requested} requested for each pod, {used} of {hard} used"


def _key(what: str) -> str:
    """The key of the resource in a ResourceQuota, which limits devices by their requests."""
    return f"{REQUESTS}{what}" if "/" in what and not what.startswith((REQUESTS, LIMITS, "count/")) else what


def _amount(key: str, amount: float) -> str:
    resource = resource_of(key)
    return bare_amount(resource, round(amount * _MILLI) if resource == CPU else round(amount))
