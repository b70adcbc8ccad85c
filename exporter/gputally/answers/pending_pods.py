"""Waiting pods with their verdicts, and the sums by reason."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from gputally.accounting.fleet.active_pods import ANY
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.allocations import hourly_text
from gputally.answers.past_answers import past_waits
from gputally.answers.pending_filters import Filters, matches, pod_values
from gputally.answers.priority_findings import findings_of
from gputally.answers.shown_pods import known_pod
from gputally.answers.verdict_words import REASONS, sentence
from gputally.answers.viewer import Viewer
from gputally.answers.wait_costs import unpriced_reason
from gputally.model.api.pending import PendingDocument, PendingPod, PendingReason, PendingTenant
from gputally.model.price import PriceRange
from gputally.model.units import GPU, to_datetime
from gputally.model.verdicts import Reason, Verdict


def chosen(now: PendingNow, filters: Filters, viewer: Viewer) -> list[WaitingPod]:
    """The waiting pods that the reader may see and that match all filters, the oldest first."""
    seen = (each for each in now.waiting if viewer.sees(each.tenant))
    return [each for each in seen if matches(pod_values(each), filters)]


def pending_document(
    now: PendingNow, found: Sequence[WaitingPod], page: list[PendingPod], *, unknown: list[str]
) -> PendingDocument:
    """The document with one page of the pods that were found."""
    return PendingDocument(
        at=to_datetime(now.at_us),
        currency=now.currency,
        reasons=reason_sums(map(_line, found)),
        tenants=_tenants(found),
        pods=page,
        pod_count=len(found),
        unknown=unknown,
    )


def pending_pod(now: PendingNow, waiting: WaitingPod, viewer: Viewer) -> PendingPod:
    """The pod with its verdict in a sentence."""
    record, verdict = waiting.record, shown_verdict(waiting.verdict, viewer)
    line, waits = _line(waiting), past_waits(waiting.waits, waiting.since_us)
    pod = known_pod(
        record,
        tier=waiting.tier,
        tenant=waiting.tenant,
        quantity=waiting.quantity,
        gpu_model=now.models.get(record.selected_model, record.selected_model) or ANY,
    )
    return replace(
        pod,
        reason=verdict.reason.value,
        text=sentence(verdict, waiting.needs, waiting.situation),
        since=waits[-1].start if waits else to_datetime(waiting.since_us),
        cost_per_hour=_hourly(line.rate),
        highest_per_hour=_hourly(line.highest_rate),
        unpriced=unpriced_reason(now, waiting),
        findings=findings_of(now, record.uid),
    )


def _hourly(rate: int | None) -> str | None:
    return None if rate is None else hourly_text(rate)


def shown_verdict(verdict: Verdict, viewer: Viewer) -> Verdict:
    """Without its node and the number of its victims, if the reader may not know them."""
    return verdict if viewer.sees_nodes else replace(verdict, node="", victims=())


class ReasonTotal(NamedTuple):
    """Some pods that wait for the same reason; all but `uncharged_pods` are charged, for `charged` µGPU in all."""

    reason: Reason
    pods: int
    uncharged_pods: int
    charged: int
    prices: PriceRange
    since_us: int

    @property
    def rate(self) -> int | None:
        """What these GPUs cost per hour at least, in 10^-12 units per 10^6 µGPU; None without a price."""
        return self.prices.lowest.rate * self.charged if self.prices.lowest else None

    @property
    def highest_rate(self) -> int | None:
        """What they cost at most; None if that is the same."""
        return self.prices.highest.rate * self.charged if self.prices.highest else None


def _line(waiting: WaitingPod) -> ReasonTotal:
    charged = waiting.charged
    prices = waiting.waits[-1].prices if waiting.waits else PriceRange()
    uncharged_pods = 0 if charged or not waiting.quantity else 1
    return ReasonTotal(waiting.verdict.reason, 1, uncharged_pods, charged, prices, waiting.since_us)


def reason_sums(lines: Iterable[ReasonTotal]) -> list[PendingReason]:
    """The sums of each reason, those with the most GPUs first."""
    by_reason: dict[Reason, list[ReasonTotal]] = {}
    for each in lines:
        by_reason.setdefault(each.reason, []).append(each)
    sums = [
        PendingReason(reason=key.value, meaning=REASONS[key].meaning, **_sums(found))
        for key, found in by_reason.items()
    ]
    return sorted(sums, key=lambda each: (-each.gpus, each.reason))


def _tenants(found: Iterable[WaitingPod]) -> list[PendingTenant]:
    """The sums of each tenant, those with the most GPUs first."""
    by_tenant: dict[str, list[ReasonTotal]] = {}
    for each in found:
        by_tenant.setdefault(each.tenant, []).append(_line(each))
    sums = [
        PendingTenant(tenant=tenant, reason=reason_sums(lines)[0].reason, **_sums(lines))
        for tenant, lines in by_tenant.items()
    ]
    return sorted(sums, key=lambda each: (-each.gpus, each.tenant))


def _sums(lines: Sequence[ReasonTotal]) -> dict[str, Any]:
    """The fields that reasons and tenants have in common."""
    rates = [(rate, each.highest_rate or rate) for each in lines if (rate := each.rate) is not None]
    lowest, highest = (sum(column) for column in zip(*rates, strict=True)) if rates else (None, None)
    return {
        "pods": sum(each.pods for each in lines),
        "uncharged_pods": sum(each.uncharged_pods for each in lines),
        "gpus": sum(each.charged for each in lines) / GPU,
        "cost_per_hour": _hourly(lowest),
        "highest_per_hour": _hourly(highest) if highest != lowest else None,
        "unpriced_gpus": sum(each.charged for each in lines if each.prices.lowest is None) / GPU,
        "oldest": to_datetime(min(each.since_us for each in lines)),
    }
