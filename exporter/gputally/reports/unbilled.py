"""What a bill may be missing: time of allocations whose end was not observed, and pods that were not accounted."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from gputally.errors import DetailRolledUp
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import SegmentRecord
from gputally.model.price import Price
from gputally.model.unaccounted import KNOWN_GPUS, WORDS, Unaccounted, UnaccountedDay
from gputally.model.units import GPU
from gputally.reports.cells import UnobservedCell, labels_of
from gputally.reports.choices import TIME_DIMENSIONS
from gputally.reports.query import ReportQuery

_OF_THE_POD: Final = ("namespace", "node", "job_kind", "job")


class SampledLine(Struct, kw_only=True):
    """The allocations of one line of a report whose end is known to a span of at most `longest_us`.

    GPU-time is in µs·µGPU: `gpu_time` was charged, and at most `most` is missing. `labels` are without those of time.
    """

    labels: tuple[str, ...]
    gpu_time: int = 0
    most: int = 0
    longest_us: int = 0


def read_sampled(reader: LedgerReader, query: ReportQuery) -> list[SampledLine]:
    """The lines with such allocations, those with the largest possible error first. Raises: LedgerError.

    Filters by time do not apply: an end is one instant, and the allocations are shown whole. Those that the retention
    may have rolled up are not included.
    """
    columns = [column for column in query.columns if column not in TIME_DIMENSIONS]
    filters = [each for each in query.filters if each.column not in TIME_DIMENSIONS]
    lines: defaultdict[tuple[str, ...], SampledLine] = defaultdict(lambda: SampledLine(labels=()))
    with suppress(DetailRolledUp):
        for each in reader.ended_in_gaps(query.window):
            values = _values(each.record)
            if all(limit.includes(values[limit.column]) for limit in filters):
                line = lines[tuple(values[column] for column in columns)]
                line.gpu_time += each.gpu_time
                line.most += each.most
                line.longest_us = max(line.longest_us, each.gap_us)
    for labels, line in lines.items():
        line.labels = labels
    return sorted(lines.values(), key=lambda line: (-line.most, line.labels))


def read_unobserved(reader: LedgerReader, query: ReportQuery) -> list[UnobservedCell] | None:
    """What allocations may have had in the gaps in which they ended, by line and price. Raises: LedgerError.

    An end is one instant: all of a gap counts in the period in which the charged time ends, so that it is on a line
    with that time. Of a gap that began before the window, the rest counts in its first period. None if the retention
    may have rolled up some of the allocations.
    """
    found, periods = Counter[tuple[tuple[str, ...], Price | None]](), query.periods
    try:
        for each in reader.ended_in_gaps(query.window):
            if each.most:
                values = {**_values(each.record), **periods.values[bisect_left(periods.cuts, each.end_us)]}
                if query.includes(values):
                    found[labels_of(values, query), each.record.segment.price] += each.most
    except DetailRolledUp:
        return None
    return [
        UnobservedCell(labels=labels, price=price, gpu_time=gpu_time) for (labels, price), gpu_time in found.items()
    ]


def _values(record: SegmentRecord) -> Mapping[str, str]:
    """The values of all columns."""
    segment = record.segment
    return {
        **{name: getattr(record, name) for name in _OF_THE_POD},
        "pod": record.name,
        "outcome": record.outcome.value,
        "job_outcome": record.job_outcome.value,
        "resource": segment.resource,
        "tier": segment.tier,
        "tenant": segment.tenant,
        "queue": segment.queue,
        "gpu_model": segment.gpu_model,
        "pool": segment.pool,
        "purchase": segment.price.purchase.value if segment.price else "",
    }


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
