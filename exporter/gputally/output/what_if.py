"""Says where pods would run now, whom they would evict, or why they would wait."""

from collections.abc import Iterator, Sequence
from typing import Final

from gputally.answers.answer_words import NO_CLASS, needs_words, quota_line
from gputally.answers.help_words import interrupted
from gputally.formatting.amounts import gpu_words, listed, money, pod_words, pods_words
from gputally.formatting.wrapping import Fact, Paragraph, Parts
from gputally.model.api.what_if import PodForecast, WhatIfDocument
from gputally.model.api.why import OccupantPod
from gputally.output.answer import Answer, live_answer
from gputally.output.why import obstacle_parts, occupant_parts, others_parts, would_help

_COLUMNS: Final = (
    *("name", "pods", "gpus", "tier", "class_name", "priority", "may_preempt", "bound", "refused", "not_evaluated"),
    *("reason", "text"),
)
_MOST_NODES: Final = 4
_MOST_BUDGETS: Final = 3
_ONE: Final = 1
_QUOTAS: Final = ("quota", "quota_never")
_KINDS: Final = {"resourcequotas": "ResourceQuotas", "poddisruptionbudgets": "PodDisruptionBudgets"}
_OF_VICTIMS: Final = "poddisruptionbudgets"


def what_if_answer(document: WhatIfDocument, body: bytes) -> Answer:
    """The answer; CSV has a row for each kind of pod."""
    records = ([getattr(each, name) for name in _COLUMNS] for each in document.forecasts)
    return live_answer(
        "What would happen", what_if_parts(document), body, at=document.at, columns=_COLUMNS, records=records
    )


def what_if_parts(document: WhatIfDocument) -> Parts:
    """One paragraph for each kind of pod; the first line says what would happen."""
    for index, each in enumerate(document.forecasts):
        if index:
            yield ""
        yield from _forecast(each, document)
    if len(document.forecasts) > 1 and document.lost_gpu_hours:
        yield ""
        victims = [victim for each in document.forecasts for victim in each.victims]
        yield Fact("In all", _lost(victims, document))
    has_victims = any(each.victims for each in document.forecasts)
    for name, why in document.not_considered.items():
        if has_victims or name != _OF_VICTIMS:
            yield Fact("Not known", f"{_KINDS.get(name, name)}: {why}")


def _forecast(each: PodForecast, document: WhatIfDocument) -> Parts:
    yield Paragraph(_headline(each))
    yield Fact("Needs", needs_words(each.needs, model=""))
    policy = "may preempt lower priorities" if each.may_preempt else "never preempts (preemptionPolicy: Never)"
    name = each.class_name or NO_CLASS
    priority = "" if each.priority is None else f", priority {each.priority:,}"
    yield Fact("Class", f"{name}{priority}, {policy}; tier {each.tier}")
    if each.nodes:
        shown = ", ".join(each.nodes[:_MOST_NODES])
        more = f" and {len(each.nodes) - _MOST_NODES:,} more" if len(each.nodes) > _MOST_NODES else ""
        yield Fact("Nodes", f"{shown}{more}")
    if each.victims:
        yield from occupant_parts("Evicts", each.victims, document.currency)
        if document.lost_gpu_hours is not None and len(document.forecasts) == _ONE:
            yield Fact("Destroys", _lost(each.victims, document))
        if budgets := _budgets(each.victims):
            yield Fact("Budgets", budgets)
    if each.quota and each.reason not in _QUOTAS:
        yield Fact("Quota", quota_line(each.quota))
    yield from obstacle_parts(each.obstacles)
    yield from occupant_parts("Held by", each.occupants, document.currency)
    yield from others_parts("Others", each.others_waiting, more=_of_others(each))
    yield from would_help(each.helps, document.currency)


def _headline(each: PodForecast) -> str:
    """`train: 1 of 2 pods with 8 GPUs each fits now; 1 would wait: ...`."""
    name = f"{each.name}: " if each.name else ""
    what = f"{pod_words(each.pods)} with {gpu_words(each.gpus)}{'' if each.pods == _ONE else ' each'}"
    evicting = f", by preempting {pods_words(each.victims)}" if each.victims else ""
    if each.bound == each.pods:
        return f"{name}{what} would be bound now{evicting}{_behind(each)}."
    ends = list(_ends(each))
    if each.bound:
        fits = f"{each.bound:,} of {what} {'fits' if each.bound == _ONE else 'fit'} now{evicting}{_behind(each)}"
        return f"{name}{'; '.join([fits, *ends])}."
    if len(ends) == _ONE:
        return f"{name}{what} {ends[0].partition(' ')[2]}."
    return f"{name}{what}: {'; '.join(ends)}."


def _ends(each: PodForecast) -> Iterator[str]:
    """Why pods would not be bound: `3 would wait: ...`."""
    is_by_quota = each.reason in _QUOTAS
    rest = each.pods - each.bound - each.not_evaluated - each.refused
    if rest:
        yield f"{rest:,} would wait: {each.text}"
    if each.refused:
        why = each.text if is_by_quota else f"quota {each.quota.name} is used up" if each.quota else "a quota"
        yield f"{each.refused:,} would be refused: {why}"
    if each.not_evaluated:
        yield f"{each.not_evaluated:,} not evaluated, as one request has too many pods"


def _behind(each: PodForecast) -> str:
    """What changes if the pods that wait have their places first."""
    after = each.after_waiting
    if after is None or after.bound >= each.bound:
        return ""
    others = f"{pod_words(after.placed)} of the same or a higher priority"
    wait = "waits for such GPUs: after it" if after.placed == _ONE else "wait for such GPUs: after them"
    is_one = each.bound == _ONE
    rest = f"{after.bound:,} would fit" if after.bound else f"{'it' if is_one else 'none'} would {'not ' * is_one}fit"
    return f"; but {others} {wait}, {rest}"


def _of_others(each: PodForecast) -> str:
    """Whether the pods that wait would be bound first."""
    after = each.after_waiting
    if after is None:
        return ""
    beginning = "" if after.is_complete else "at least "
    if not after.placed:
        return ", and none of them fits now" if after.is_complete else ""
    return f", of which {beginning}{after.placed:,} {'fits' if after.placed == _ONE else 'fit'} now"


def _budgets(victims: Sequence[OccupantPod]) -> str:
    """Say that the scheduler preempts pods whose budgets do not allow it."""
    violated = [each for each in victims if each.budget]
    if not violated:
        return ""
    names = list(dict.fromkeys(each.budget for each in violated))
    shown = names[:_MOST_BUDGETS] + ([f"{len(names) - _MOST_BUDGETS:,} more"] if len(names) > _MOST_BUDGETS else [])
    are = "is" if len(violated) == _ONE else "are"
    preempted = f"{pod_words(len(violated))} of these {are} preempted"
    return f"{preempted} although PodDisruptionBudget {listed(shown)} does not allow it"


def _lost(victims: Sequence[OccupantPod], document: WhatIfDocument) -> str:
    """What all victims would lose: of those without a known checkpoint, all their work."""
    most = "up to " if document.is_lost_upper_bound else ""
    price = f", {most}{money(document.lost_cost, document.currency)}" if document.lost_cost is not None else ""
    has_checkpoint = any(not each.is_lost_upper_bound for each in victims if each.lost_gpu_hours is not None)
    since = ""
    if has_checkpoint:
        since = " since the last checkpoints" + (", where one is known" if document.is_lost_upper_bound else "")
    if not document.lost_gpu_hours:
        return f"no GPU-hours of work{since}{interrupted(victims)}"
    return f"{most}{document.lost_gpu_hours:.2f} GPU-hours of work{since}{price}{interrupted(victims)}"
