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
    """The sentence in a report."""
    pods = f"up to {found.pods:,} pods at a time" if found.pods > 1 else "one pod at a time"
    gpus = f" with up to {found.gpus:,.6g} GPUs" if found.gpus else ""
    return f"Not included are the GPUs of {pods}{gpus}: {found.text} ({found.reason})."
