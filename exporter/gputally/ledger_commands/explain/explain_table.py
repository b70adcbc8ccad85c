"""Explanations for people: each pod with why it ended, its prices and its segments."""

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from decimal import Decimal
from itertools import groupby
from typing import Final

from gputally.accounting.prices.price_key import PriceKey
from gputally.ledger.records import AllocationRecord, GapSubject, ObservationGap, Window
from gputally.ledger_commands.explain.explain_rows import Amounts, Explanation, totals_of, uncharged
from gputally.ledger_commands.report.scope_text import Scope
from gputally.model.allocation import End, Segment
from gputally.model.price import Price
from gputally.model.printable import printable
from gputally.model.units import to_datetime
from gputally.reports.explanation import ExplainedPod, ExplainedSegment
from gputally.reports.rounding import gpus

_ENDS: Final = {
    End.FINISHED: "its containers finished",
    End.REJECTED: "the kubelet rejected it",
    End.TERMINAL: "it was seen to have ended; a container has no finish time",
    End.DELETED: "it was deleted",
    End.VANISHED: "it disappeared while nobody watched",
    End.NODE: "its node was gone",
}
_GAPS: Final = 10
"""Gaps that a table names; JSON has all of them."""
_ALWAYS: Final = "always"


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """The lines of the table, which fit 80 columns if names and amounts are short."""
    query, amounts = explanation.scope.query, Amounts(explanation.places)
    yield f"Allocations from {printable(explanation.scope.about)}\n"
    for pod in explanation.pods:
        explanation.sums.add(pod)
        yield from _pod(pod, query.calendar.zone)
        for group in _by_terms(pod.segments):
            yield from _segments(group, amounts, query.calendar.zone)
    if explanation.others.pods:
        yield f"\n{explanation.others.pods:,} other pods\n"
        for total in explanation.others.totals():
            yield _sum(amounts.hours(total.gpu_time), amounts.cost(total.currency, total.cost), total.currency)
    explanation.sums.include(explanation.others)
    yield from _total(explanation)


def _pod(pod: ExplainedPod, zone: tzinfo) -> Iterator[str]:
    """What it was, and why it ended."""
    of, allocation = pod.of, pod.allocation
    job = f", {of.job_kind} {of.job}" if of.job_kind else ""
    yield f"\n{printable(f'{of.namespace}/{of.name} on {of.node}{job}')}\n"
    revised = _time(allocation.recorded_us, zone)
    yield f"  UID {printable(of.pod_uid)}, recorded {revised}, {allocation.outcome.value}\n"
    yield f"  allocated {_life(allocation, zone)}\n"


def _life(allocation: AllocationRecord, zone: tzinfo) -> str:
    start, end, gap = _time(allocation.scheduled_us, zone), allocation.end_us, allocation.gap
    if end is None:
        return f"since {start}, and still so"
    why = _ENDS[allocation.end_by] if allocation.end_by else "unknown why"
    if gap:
        until = f"between {_time(gap.from_us, zone)} and {_time(gap.to_us, zone)}"
        return f"from {start}; {why},\n  {until}: charged up to the first"
    return f"{start} to {_time(end, zone)}: {why}"


def _by_terms(segments: Sequence[ExplainedSegment]) -> Iterator[list[ExplainedSegment]]:
    """Runs of segments with the same labels and price."""
    for _, group in groupby(segments, key=lambda each: (_terms(each.segment), each.segment.price)):
        yield list(group)


def _terms(segment: Segment) -> tuple[str, str]:
    queue = f", queue {segment.queue}" if segment.queue else ""
    pool = f", pool {segment.pool}" if segment.pool else ""
    whose = f"tier {segment.tier}, tenant {segment.tenant}{queue}"
    return whose, f"{segment.gpu_model}{pool}, {segment.resource}"


def _segments(group: Sequence[ExplainedSegment], amounts: Amounts, zone: tzinfo) -> Iterator[str]:
    first = group[0].segment
    yield from (f"  {printable(each)}\n" for each in (*_terms(first), *price_words(first.price)))
    yield _line("from", "to", "state", "GPUs", "GPU-hours", f"cost {group[0].currency}".rstrip())
    for each in group:
        hours, cost = amounts.hours(each.gpu_time), amounts.cost(each.currency, each.cost)
        start, end = _time(each.segment.start_us, zone), _time(each.segment.end_us or 0, zone)
        shown = "" if cost is None else f"{cost:f}"
        yield _line(start, end, each.segment.state.value, f"{gpus(each.segment.quantity)}", f"{hours:f}", shown)


def _line(*cells: str) -> str:
    start, end, state, count, hours, cost = cells
    return f"{start:<19}  {end:<19}  {state:<11}  {count:>4}  {hours:>9}  {cost:>8}".rstrip() + "\n"


def price_words(price: Price | None) -> tuple[str, ...]:
    """A price and its origin, for people."""
    if price is None:
        return ("unpriced: the price book had no rule for this GPU",)
    key = PriceKey.parse(price.key)
    text = f"{price.per_gpu_hour:f} {price.currency} per GPU-hour, {price.purchase.value}"
    if key is None:
        return text, f"price {price.key}"
    since = "" if key.since == _ALWAYS else f" since {key.since}"
    times = "" if key.multiplier == 1 else f", times {key.multiplier:f} for the tier included"
    return f"{text}{times}", f"rule {key.rule}{since}, price book {key.book}"


def _total(explanation: Explanation) -> Iterator[str]:
    scope, sums = explanation.scope, explanation.sums
    yield f"\ntotal of {sums.pods:,} pod{'' if sums.pods == 1 else 's'}\n"
    for total in totals_of(explanation):
        yield _sum(total.gpu_hours, total.cost, total.currency)
        if total.unpriced:
            yield f"  {total.unpriced:f} of these GPU-hours have no price and cost nothing\n"
    yield f"\n{scope.accounted[0].upper()}{scope.accounted[1:]}.\n"
    if sums.unobserved:
        yield (
            f"{sums.unobserved:,} of the pods ended while nobody watched, and had at most "
            f"{uncharged(explanation):f} GPU-hours more.\n"
        )
    yield from _gaps(explanation.gaps, scope)


def _sum(hours: Decimal, cost: Decimal | None, currency: str) -> str:
    return f"  {hours:f} GPU-hours{'' if cost is None else f', {cost:f} {currency}'}\n"


def _gaps(gaps: Sequence[ObservationGap], scope: Scope) -> Iterator[str]:
    for gap in gaps[:_GAPS]:
        period = scope.period(Window(gap.start_us, gap.end_us))
        what = f"{gap.name} were not watched" if gap.subject is GapSubject.WATCH else f"node {gap.name} ended"
        yield f"Observation gap: {printable(what)}, {period}.\n"
    if len(gaps) > _GAPS:
        yield f"{len(gaps) - _GAPS:,} more observation gaps; --output json has all.\n"


def _time(us: int, zone: tzinfo) -> str:
    return f"{to_datetime(us).astimezone(zone):%Y-%m-%d %H:%M:%S}"
