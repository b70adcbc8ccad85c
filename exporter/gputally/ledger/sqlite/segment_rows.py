"""Between segments with their prices, and the columns that hold them."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from gputally.model.allocation import Segment, State
from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import PICO

Row = tuple[Any, ...]
Span = tuple[int, int | None, int]
"""Start and end (µs; None while it lasts) and µGPU."""
_STATES: Final = {state.value: state for state in State}
TERMS: Final = (
    *("resource", "state", "tier", "tenant", "queue", "gpu_model", "pool"),
    *("label_tier", "label_tenant", "label_gpu_model"),
)
"""The last three are the exported names, bounded, where the others are full."""
PRICE: Final = ("currency", "per_gpu_hour", "basis", "purchase")


def segment_of(span: Span, terms: Sequence[str], price: Price | None) -> Segment:
    """A segment of these TERMS."""
    resource, state, tier, tenant, queue, gpu_model, pool, *labels = terms
    start_us, end_us, quantity = span
    return Segment(
        resource=resource,
        start_us=start_us,
        end_us=end_us,
        state=_STATES[state],
        quantity=quantity,
        tier=tier,
        tenant=tenant,
        queue=queue,
        gpu_model=gpu_model,
        pool=pool,
        price=price,
        labels=_labels(*labels, state),
    )


@lru_cache(maxsize=65_536)
def _labels(tier: str, tenant: str, gpu_model: str, state: str) -> tuple[str, str, str, str]:
    """The same tuple for all pods alike, which are thousands."""
    return tier, tenant, gpu_model, state


@lru_cache(maxsize=1024)
def rated(price: Price) -> Row:
    """The columns PRICE."""
    return price.currency, format(price.per_gpu_hour, "f"), price.basis.value, price.purchase.value


@lru_cache(maxsize=1024)
def price_of(key: str, currency: str, per_gpu_hour: str, basis: str, purchase: str) -> Price:
    """The price of that key and these columns PRICE."""
    amount = Decimal(per_gpu_hour)
    return Price(
        key=key,
        currency=currency,
        per_gpu_hour=amount,
        rate=int(amount * PICO),
        basis=Basis(basis),
        purchase=Purchase(purchase),
    )
