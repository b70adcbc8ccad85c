"""The pods of a period that asked for GPUs which were not accounted, as reports note them."""

from collections.abc import Iterable

from msgspec import Struct

from gputally.model.unaccounted import KNOWN_GPUS, WORDS, Unaccounted, UnaccountedDay
from gputally.model.units import GPU


class MostUnaccounted(Struct, frozen=True, kw_only=True):
    """The most `pods` and `gpus` at a time that were not accounted for one reason; `gpus` None if not known."""

    reason: Unaccounted
    text: str
    pods: int
    gpus: float | None


def most_unaccounted(days: Iterable[UnaccountedDay]) -> list[MostUnaccounted]:
    """The maxima over these days, in the order of the reasons."""
    by_reason: dict[Unaccounted, list[UnaccountedDay]] = {}
    for each in days:
        by_reason.setdefault(each.reason, []).append(each)
    return [
        MostUnaccounted(
            reason=reason,
            text=WORDS[reason],
            pods=max(each.pods for each in by_reason[reason]),
            gpus=max(each.quantity for each in by_reason[reason]) / GPU if reason in KNOWN_GPUS else None,
        )
        for reason in Unaccounted
        if reason in by_reason
    ]


def note_of(found: MostUnaccounted) -> str:
    """The sentence in a report: `Not billed: up to 3 pods at a time (6 GPUs), because ... (claim)`."""
    pods = "1 pod" if found.pods == 1 else f"{found.pods:,} pods"
    gpus = f" ({found.gpus:,.6g} {'GPU' if found.gpus == 1 else 'GPUs'})" if found.gpus else ""
    return f"Not billed: up to {pods} at a time{gpus}, because {found.text} ({found.reason})."
