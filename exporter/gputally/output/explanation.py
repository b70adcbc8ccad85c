"""Explains a number of a report by its allocations, prices and dates."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from msgspec import Struct, json, structs

from gputally.accounting.prices.book import PriceKey
from gputally.formatting.times import iso
from gputally.ledger.records import AllocationRecord, GapSubject, ObservationGap, Window
from gputally.model.allocation import End, Segment
from gputally.model.price import Price
from gputally.model.printable import printable
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.output.answer import Answer, Section
from gputally.output.scope import Scope, document_head, times
from gputally.reports.bill_rows import OTHERS
from gputally.reports.explanation import ExplainedPod, ExplainedSegment, ExplainedSums
from gputally.reports.rounding import RunningSums, gpus

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
_WIDTHS: Final = (19, 19, 11, 4, 9, 8)
"""Columns of one width in the tables of all pods, which fit 80 characters if names and amounts are short."""
VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_ENCODER: Final = json.Encoder(decimal_format="number")


class Explanation(Struct, frozen=True, kw_only=True):
    """An explanation to print, amounts with `places` decimals. Printing the `pods` adds them up in `sums`.

    `others` adds up those beyond the top ones. `gaps` are those of watches and nodes.
    `unmatched` reads the values of filters that no record has, for an explanation without pods.
    """

    scope: Scope
    pods: Iterable[ExplainedPod]
    sums: ExplainedSums
    others: ExplainedSums
    gaps: Sequence[ObservationGap]
    unmatched: Callable[[], list[str]]
    places: int


class ExplainRow(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One segment; times are ISO 8601.

    What is not known or does not apply is None: the price and cost of unpriced time, the end of an open allocation,
    and the parts of a price key of another form. GPU-hours and costs add up to the totals. `gap_from` and `gap_to` are
    those of the gap in which the allocation ended; it is charged up to the first.
    The allocation was last revised when it was `recorded`.
    """

    namespace: str | None = None
    pod: str
    pod_uid: str | None = None
    node: str | None = None
    job_kind: str | None = None
    job: str | None = None
    resource: str | None = None
    state: str | None = None
    from_: str | None = None
    to: str | None = None
    gpus: Decimal | None = None
    gpu_hours: Decimal
    tier: str | None = None
    tenant: str | None = None
    queue: str | None = None
    gpu_model: str | None = None
    pool: str | None = None
    price_per_gpu_hour: Decimal | None = None
    currency: str
    cost: Decimal | None
    price_key: str | None = None
    price_book: str | None = None
    price_rule: str | None = None
    price_since: str | None = None
    purchase: str | None = None
    multiplier: Decimal | None = None
    basis: str | None = None
    allocated_from: str | None = None
    allocated_to: str | None = None
    end_by: str | None = None
    gap_from: str | None = None
    gap_to: str | None = None
    outcome: str | None = None
    revision: int | None = None
    recorded: str | None = None


class ExplainTotal(Struct, frozen=True, kw_only=True):
    """The sum of all rows in one currency; `unpriced` is a part of `gpu_hours`, which costs nothing."""

    currency: str
    gpu_hours: Decimal
    unpriced: Decimal
    cost: Decimal | None


class Amounts:
    """Rounds GPU-hours and costs, one after another, so that they add up to their rounded totals."""

    def __init__(self, places: int) -> None:
        self._hours = RunningSums(GPU_HOUR, places)
        self._costs = RunningSums(COST_UNIT, places)

    def hours(self, gpu_time: int) -> Decimal:
        """GPU-hours, of the sum in all currencies."""
        return self._hours.add(gpu_time)

    def cost(self, currency: str, cost: int) -> Decimal | None:
        """A cost in a currency; None without one."""
        return self._costs.add(cost, of=currency) if currency else None


def totals_of(explanation: Explanation) -> Iterator[ExplainTotal]:
    """The totals of what was printed, in each currency."""
    amounts, unpriced = Amounts(explanation.places), RunningSums(GPU_HOUR, explanation.places)
    for total in explanation.sums.totals():
        yield ExplainTotal(
            currency=total.currency,
            gpu_hours=amounts.hours(total.gpu_time),
            unpriced=unpriced.add(total.unpriced),
            cost=amounts.cost(total.currency, total.cost),
        )


def rows_of_explanation(explanation: Explanation) -> Iterator[ExplainRow]:
    """One row for each segment, then one for each currency of the pods beyond the top ones."""
    amounts, zone = Amounts(explanation.places), explanation.scope.query.calendar.zone
    for pod in explanation.pods:
        explanation.sums.add(pod)
        for each in pod.segments:
            hours, cost = amounts.hours(each.gpu_time), amounts.cost(each.currency, each.cost)
            yield _row(pod, each, ExplainRow(pod=pod.of.name, gpu_hours=hours, currency=each.currency, cost=cost), zone)
    for total in explanation.others.totals():
        cost = amounts.cost(total.currency, total.cost)
        yield ExplainRow(pod=OTHERS, gpu_hours=amounts.hours(total.gpu_time), currency=total.currency, cost=cost)
    explanation.sums.include(explanation.others)


def uncharged(explanation: Explanation) -> Decimal:
    """The GPU-hours that pods had at most after their charged end, which nobody observed."""
    return RunningSums(GPU_HOUR, explanation.places).add(explanation.sums.uncharged)


def _row(pod: ExplainedPod, each: ExplainedSegment, row: ExplainRow, zone: tzinfo) -> ExplainRow:
    of, segment, allocation = pod.of, each.segment, pod.allocation
    gap = allocation.gap
    return structs.replace(
        row,
        **_price(segment.price),
        namespace=of.namespace,
        pod_uid=of.pod_uid,
        node=of.node,
        job_kind=of.job_kind,
        job=of.job,
        resource=segment.resource,
        state=segment.state.value,
        from_=_time(segment.start_us, zone),
        to=_time(segment.end_us, zone),
        gpus=gpus(segment.quantity),
        tier=segment.tier,
        tenant=segment.tenant,
        queue=segment.queue,
        gpu_model=segment.gpu_model,
        pool=segment.pool,
        allocated_from=_time(allocation.scheduled_us, zone),
        allocated_to=_time(allocation.end_us, zone),
        end_by=allocation.end_by.value if allocation.end_by else None,
        gap_from=_time(gap.from_us, zone) if gap else None,
        gap_to=_time(gap.to_us, zone) if gap else None,
        outcome=allocation.outcome.value,
        revision=allocation.revision,
        recorded=_time(allocation.recorded_us, zone),
    )


def _price(price: Price | None) -> dict[str, str | Decimal | None]:
    """The fields of a row that name the price."""
    if price is None:
        return {}
    key = PriceKey.parse(price.key)
    return {
        "price_per_gpu_hour": price.per_gpu_hour,
        "price_key": price.key,
        "price_book": key and key.book,
        "price_rule": key and key.rule,
        "price_since": key and key.since,
        "purchase": price.purchase.value,
        "multiplier": key and key.multiplier,
        "basis": price.basis.value,
    }


def _time(us: int | None, zone: tzinfo) -> str | None:
    return None if us is None else iso(to_datetime(us).astimezone(zone))


def _sections(explanation: Explanation) -> Iterator[Section]:
    """What each pod was, with a table for each of its prices, then the totals."""
    query, amounts = explanation.scope.query, Amounts(explanation.places)
    for pod in explanation.pods:
        explanation.sums.add(pod)
        yield from _pod(pod, amounts, query.calendar.zone)
    if explanation.others.pods:
        yield Section(
            title=f"{explanation.others.pods:,} other pods",
            lines=[
                _sum(amounts.hours(total.gpu_time), amounts.cost(total.currency, total.cost), total.currency)
                for total in explanation.others.totals()
            ],
        )
    explanation.sums.include(explanation.others)
    yield _total(explanation)


def _pod(pod: ExplainedPod, amounts: Amounts, zone: tzinfo) -> Iterator[Section]:
    """What it was, why it ended, and its segments by their terms and prices."""
    of, allocation = pod.of, pod.allocation
    title = f"{of.namespace}/{of.name} on {of.node}{f', {of.job_kind} {of.job}' if of.job_kind else ''}"
    recorded = _shown_time(allocation.recorded_us, zone)
    lines = [f"UID {of.pod_uid}, recorded {recorded}, {allocation.outcome.value}", *_life(allocation, zone)]
    for group in _by_terms(pod.segments):
        first = group[0].segment
        yield Section(
            title=title,
            lines=[*lines, *_terms(first), *price_words(first.price)],
            head=("from", "to", "state", "GPUs", "GPU-hours", f"cost {group[0].currency}".rstrip()),
            rows=[_cells(each, amounts, zone) for each in group],
            widths=_WIDTHS,
            continues=not title,
        )
        title, lines = "", []


def _cells(each: ExplainedSegment, amounts: Amounts, zone: tzinfo) -> Sequence[object]:
    start, end = _shown_time(each.segment.start_us, zone), _shown_time(each.segment.end_us or 0, zone)
    hours, cost = amounts.hours(each.gpu_time), amounts.cost(each.currency, each.cost)
    return start, end, each.segment.state.value, gpus(each.segment.quantity), hours, cost


def _life(allocation: AllocationRecord, zone: tzinfo) -> list[str]:
    start, end, gap = _shown_time(allocation.scheduled_us, zone), allocation.end_us, allocation.gap
    if end is None:
        return [f"allocated since {start}, and still so"]
    why = _ENDS[allocation.end_by] if allocation.end_by else "unknown why"
    if gap:
        until = f"between {_shown_time(gap.from_us, zone)} and {_shown_time(gap.to_us, zone)}"
        return [f"allocated from {start}; {why},", f"{until}: charged up to the first"]
    return [f"allocated {start} to {_shown_time(end, zone)}: {why}"]


def _by_terms(segments: Sequence[ExplainedSegment]) -> Iterator[list[ExplainedSegment]]:
    """Runs of segments with the same labels and price."""
    for _, group in groupby(segments, key=lambda each: (_terms(each.segment), each.segment.price)):
        yield list(group)


def _terms(segment: Segment) -> tuple[str, str]:
    queue = f", queue {segment.queue}" if segment.queue else ""
    pool = f", pool {segment.pool}" if segment.pool else ""
    whose = f"tier {segment.tier}, tenant {segment.tenant}{queue}"
    return whose, f"{segment.gpu_model}{pool}, {segment.resource}"


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


def _total(explanation: Explanation) -> Section:
    scope, sums = explanation.scope, explanation.sums
    lines = list[str]()
    for total in totals_of(explanation):
        lines.append(_sum(total.gpu_hours, total.cost, total.currency))
        if total.unpriced:
            lines.append(f"{total.unpriced:f} of these GPU-hours have no price and cost nothing")
    notes = [f"{scope.accounted[0].upper()}{scope.accounted[1:]}."]
    if sums.unobserved:
        notes.append(
            f"{sums.unobserved:,} of the pods ended while nobody watched, and had at most "
            f"{uncharged(explanation):f} GPU-hours more."
        )
    notes += _gaps(explanation.gaps, scope)
    title = f"total of {sums.pods:,} pod{'' if sums.pods == 1 else 's'}"
    return Section(title=title, lines=lines, notes=["\n".join(notes)])


def _sum(hours: Decimal, cost: Decimal | None, currency: str) -> str:
    return f"{hours:f} GPU-hours{'' if cost is None else f', {cost:f} {currency}'}"


def _gaps(gaps: Sequence[ObservationGap], scope: Scope) -> Iterator[str]:
    for gap in gaps[:_GAPS]:
        period = scope.period(Window(gap.start_us, gap.end_us))
        what = f"{gap.name} were not watched" if gap.subject is GapSubject.WATCH else f"node {gap.name} ended"
        yield f"Observation gap: {printable(what)}, {period}."
    if len(gaps) > _GAPS:
        yield f"{len(gaps) - _GAPS:,} more observation gaps; --output json has all."


def _shown_time(us: int, zone: tzinfo) -> str:
    return f"{to_datetime(us).astimezone(zone):%Y-%m-%d %H:%M:%S}"


_COLUMNS: Final = ExplainRow.__struct_encode_fields__


def explanation_answer(explanation: Explanation) -> Answer:
    """Pods are read as they are written, and in memory one after the other."""
    return Answer(
        title="Allocations",
        about=f"From {explanation.scope.about}",
        heading=f"Allocations from {explanation.scope.about}",
        sections=_sections(explanation),
        columns=_COLUMNS,
        records=(structs.astuple(each) for each in rows_of_explanation(explanation)),
        document=lambda: _document(explanation),
    )


def _document(explanation: Explanation) -> Iterator[str]:
    """One JSON document with a line for each row; what is known only at the end follows the rows."""
    head = document_head(explanation.scope, version=VERSION)
    del head["unmatched"]  # not known yet
    yield f'{{\n  {_fields(head)},\n  "rows": ['
    separator = "\n    "
    for row in rows_of_explanation(explanation):
        yield separator + _ENCODER.encode(row).decode()
        separator = ",\n    "
    yield f"\n  ],\n  {_fields(_tail(explanation))}\n}}\n"


def _fields(values: dict[str, Any]) -> str:
    return ",\n  ".join(f'"{name}": {_ENCODER.encode(value).decode()}' for name, value in values.items())


def _tail(explanation: Explanation) -> dict[str, Any]:
    zone = explanation.scope.query.calendar.zone
    gaps = (
        {"subject": each.subject.value, "name": each.name, **times(Window(each.start_us, each.end_us), zone)}
        for each in explanation.gaps
    )
    return {
        "totals": list(totals_of(explanation)),
        "pods": explanation.sums.pods,
        "unobserved_ends": explanation.sums.unobserved,
        "uncharged_gpu_hours": uncharged(explanation),
        "gaps": list(gaps),
        "unmatched": [] if explanation.sums.pods else explanation.unmatched(),
    }
