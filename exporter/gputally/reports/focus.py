"""A bill as rows of FOCUS, the FinOps Open Cost and Usage Specification: one for each hour, pod and price.

Source: https://focus.finops.org/focus-specification/ (1.2; 1.3 added and 1.4 removed columns that name the provider).
"""

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Final, NamedTuple

from msgspec import json

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocatedTime, Window
from gputally.model.periods import month_of
from gputally.model.price import Price, Purchase
from gputally.model.units import GPU_HOUR, to_datetime
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import rounded
from gputally.reports.time_dimensions import hours_of
from gputally.reports.windows import days_window

_PLACES: Final = 12
"""Decimals of a quantity. Costs are quantity times price, so they add up to the bill beyond its own decimals."""
_STEP_HOURS: Final = 24
"""How much is read at once."""
_LABELS: Final = (
    *("namespace", "name", "node", "job_kind", "job", "outcome"),
    *("tier", "tenant", "queue", "gpu_model", "pool"),
)
_REPORTED: Final = {"name": "pod"}
_UNIT: Final = "GPU-Hours"
_PLATFORM: Final = "GPU cluster"
_ONLY_UNTIL_1_3: Final = ("ProviderName", "PublisherName")
_SINCE_1_3: Final = ("ServiceProviderName", "HostProviderName")
_NULL: Final = (
    *("AvailabilityZone", "CapacityReservationId", "CapacityReservationStatus", "ChargeClass"),
    *("CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName"),
    *("CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit"),
    *("InvoiceId", "RegionId", "RegionName"),
)
"""Columns that must exist, and have no value here."""

FocusRow = Mapping[str, str]
"""One row, by column; a missing value is empty."""


class Charge(NamedTuple):
    """GPU-time (µs·µGPU) of one pod in one hour, at one price."""

    hour: Window
    labels: Mapping[str, str]
    price: Price
    gpu_time: int


class Account(NamedTuple):
    """Whose bill it is, by the months of which zone, and in which version of FOCUS."""

    cluster: str
    zone: tzinfo
    version: str


def read_charges(reader: LedgerReader, query: ReportQuery) -> Iterator[Charge]:
    """The priced charges of the query's period, by hour, a day at a time. Raises: LedgerError.

    Hours are those of the query's zone, so that none belongs to two of its months.
    """
    remaining = hours_of(query.window, query.calendar.zone)
    while hours := list(islice(remaining, _STEP_HOURS)):
        cuts = [each.end_us for each in hours[:-1]]
        window = Window(max(hours[0].start_us, query.window.start_us), min(hours[-1].end_us, query.window.end_us))
        for time in sorted(reader.allocated(window, _LABELS, cuts=cuts), key=_by_hour):
            labels = dict(zip(_LABELS, time.labels, strict=True))
            if time.price and query.includes(_reported(labels, time.price)):
                yield Charge(hours[time.period], labels, time.price, time.gpu_time)


def focus_rows(charges: Iterator[Charge], account: Account) -> Iterator[FocusRow]:
    """One row for each charge. Quantities are rounded so that those at one price add up to their rounded sum."""
    sums: dict[Price, int] = {}
    for charge in charges:
        before = sums.get(charge.price, 0)
        after = sums[charge.price] = before + charge.gpu_time
        quantity = Decimal(_scaled(after) - _scaled(before)).scaleb(-_PLACES)
        if quantity:
            yield _row(charge, quantity, account)


def _by_hour(time: AllocatedTime) -> tuple[int, tuple[str, ...], str]:
    return time.period, time.labels, time.price.key if time.price else ""


def _reported(labels: Mapping[str, str], price: Price) -> dict[str, str]:
    """The values of the columns that filters of a report know."""
    return {_REPORTED.get(name, name): value for name, value in labels.items()} | {"purchase": price.purchase.value}


def _scaled(gpu_time: int) -> int:
    return rounded(Fraction(gpu_time * 10**_PLACES, GPU_HOUR))


def _row(charge: Charge, quantity: Decimal, account: Account) -> FocusRow:
    labels, price = charge.labels, charge.price
    row = {
        **dict.fromkeys(_NULL, ""),
        **_times(charge.hour, account.zone),
        **_amounts(price, quantity),
        "BillingAccountId": account.cluster,
        "BillingAccountName": _PLATFORM,
        "BillingAccountType": "Cluster",
        "SubAccountId": labels["tenant"],
        "SubAccountName": labels["tenant"],
        "SubAccountType": "Tenant",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"GPU time of pod {labels['namespace']}/{labels['name']}",
        "ChargeFrequency": "Usage-Based",
        "InvoiceIssuerName": _PLATFORM,
        **dict.fromkeys(_ONLY_UNTIL_1_3 if account.version != "1.4" else (), _PLATFORM),
        **dict.fromkeys(_SINCE_1_3 if account.version != "1.2" else (), _PLATFORM),
        "PricingCategory": "Dynamic" if price.purchase is Purchase.SPOT else "Standard",
        "ResourceId": f"{labels['namespace']}/{labels['name']}",
        "ResourceName": labels["name"],
        "ResourceType": "Pod",
        "ServiceCategory": "Compute",
        "ServiceName": _PLATFORM,
        "ServiceSubcategory": "Containers",
        "SkuId": labels["gpu_model"],
        "SkuMeter": "GPU Time",
        "SkuPriceId": price.key,
        "SkuPriceDetails": _json({"x_Basis": price.basis.value, "x_PurchaseOption": price.purchase.value}),
        "Tags": _json({name: labels[name] for name in ("tier", "job_kind", "job", "queue", "namespace", "pool")}),
        "x_Node": labels["node"],
        "x_Outcome": labels["outcome"],
        "x_Tier": labels["tier"],
    }
    return dict(sorted(row.items()))


def _amounts(price: Price, quantity: Decimal) -> dict[str, str]:
    cost, unit_price = _text(quantity * price.per_gpu_hour), _text(price.per_gpu_hour)
    return {
        **dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), cost),
        "PricingCurrencyEffectiveCost": cost,
        **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), unit_price),
        **dict.fromkeys(("PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice"), unit_price),
        **dict.fromkeys(("BillingCurrency", "PricingCurrency"), price.currency),
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), _text(quantity)),
        **dict.fromkeys(("PricingUnit", "ConsumedUnit"), _UNIT),
    }


def _times(hour: Window, zone: tzinfo) -> dict[str, str]:
    month = days_window(month_of(to_datetime(hour.start_us).astimezone(zone).date()), zone)
    return {
        "BillingPeriodStart": _instant(month.start_us),
        "BillingPeriodEnd": _instant(month.end_us),
        "ChargePeriodStart": _instant(hour.start_us),
        "ChargePeriodEnd": _instant(hour.end_us),
    }


def _instant(us: int) -> str:
    return f"{to_datetime(us):%Y-%m-%dT%H:%M:%SZ}"


def _text(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _json(values: Mapping[str, str]) -> str:
    return json.encode(values).decode()
