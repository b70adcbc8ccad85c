"""The forecast of `gputally what-if` as text."""

from collections.abc import Iterator, Sequence
from typing import Final

from gputally.model.placement.what_if_document import PodForecast, WhatIfDocument
from gputally.model.placement.why_document import OccupantPod
from gputally.pending_api.words.amount_words import pods_words
from gputally.why_command.text_lines import gpus, headed, money, paragraph, pods
from gputally.why_command.why_text import needs_words, obstacle_lines, occupant_lines, others_lines, would_help

_MOST_NODES: Final = 4
_ONE: Final = 1


def what_if_lines(document: WhatIfDocument, *, width: int) -> Iterator[str]:
    """One paragraph for each kind of pod; the first line says what would happen."""
    for index, each in enumerate(document.forecasts):
        if index:
            yield ""
        yield from _forecast(each, document, width)
    if len(document.forecasts) > 1 and document.lost_gpu_hours:
        yield ""
        victims = [victim for each in document.forecasts for victim in each.victims]
        yield from headed("In all", _lost(victims, document), width=width)


def _forecast(each: PodForecast, document: WhatIfDocument, width: int) -> Iterator[str]:
    yield from paragraph(_headline(each), width)
    yield from headed("Needs", needs_words(each.needs, model=""), width=width)
    policy = "may preempt lower priorities" if each.may_preempt else "never preempts (preemptionPolicy: Never)"
    name = each.class_name or "none"
    yield from headed("Class", f"{name}, priority {each.priority:,}, {policy}; tier {each.tier}", width=width)
    if each.nodes:
        shown = ", ".join(each.nodes[:_MOST_NODES])
        more = f" and {len(each.nodes) - _MOST_NODES:,} more" if len(each.nodes) > _MOST_NODES else ""
        yield from headed("Nodes", f"{shown}{more}", width=width)
    if each.victims:
        yield from occupant_lines("Evicts", each.victims, document.currency, width=width)
        if document.lost_gpu_hours is not None and len(document.forecasts) == _ONE:
            yield from headed("Destroys", _lost(each.victims, document), width=width)
    yield from obstacle_lines(each.obstacles, width=width)
    yield from occupant_lines("Held by", each.occupants, document.currency, width=width)
    yield from others_lines("Others", each.others_waiting, width=width)
    yield from would_help(each.helps, document.currency, width=width)


def _headline(each: PodForecast) -> str:
    """`train: 1 of 2 pods would be bound now; the other would wait: ...`."""
    what = f"{pods(each.pods)} with {gpus(each.gpus)}{'' if each.pods == _ONE else ' each'}"
    subject = f"{each.name}: {what}" if each.name else what
    evicting = f", by preempting {pods_words(each.victims)}" if each.victims else ""
    rest = each.pods - each.bound - each.not_evaluated
    if each.bound == each.pods:
        return f"{subject} would be bound now{evicting}."
    if rest == each.pods:
        return f"{subject} would wait: {each.text}."
    ends = [f"{each.bound:,} would be bound now{evicting}"] if each.bound else []
    ends += [f"{rest:,} would wait: {each.text}"] if rest else []
    ends += [f"{each.not_evaluated:,} not evaluated, as one request has too many pods"] if each.not_evaluated else []
    return f"{subject}: {'; '.join(ends)}."


def _lost(victims: Sequence[OccupantPod], document: WhatIfDocument) -> str:
    """What all victims would lose: of those without a known checkpoint, all their work."""
    price = f", {money(document.lost_cost, document.currency)}" if document.lost_cost is not None else ""
    has_checkpoint = any(not each.is_lost_upper_bound for each in victims if each.lost_gpu_hours is not None)
    since = ""
    if has_checkpoint:
        since = " since the last checkpoints" + (", where one is known" if document.is_lost_upper_bound else "")
    most = "up to " if document.is_lost_upper_bound else ""
    return f"{most}{document.lost_gpu_hours:.2f} GPU-hours of work{since}{price}"
