"""Explanations as rows: one for each segment."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from decimal import Decimal

from msgspec import Struct, structs

from gputally.accounting.prices.price_key import PriceKey
from gputally.ledger.records import ObservationGap
from gputally.ledger_commands.report.scope_text import Scope
from gputally.model.price import Price
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.reports.bill_rows import OTHERS
from gputally.reports.explanation import ExplainedPod, ExplainedSegment, ExplainedSums
from gputally.reports.rounding import RunningSums, gpus


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
    return None if us is None else to_datetime(us).astimezone(zone).isoformat().replace("+00:00", "Z")
