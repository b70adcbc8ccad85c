"""A price as columns of a ledger, and back."""

from decimal import Decimal
from functools import lru_cache
from typing import Final

from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import PICO

PRICE: Final = ("currency", "per_gpu_hour", "basis", "purchase")
"""The columns of a price besides its key."""


@lru_cache(maxsize=1024)
def price_columns(price: Price) -> tuple[str, ...]:
    """The PRICE columns."""
    return price.currency, format(price.per_gpu_hour, "f"), price.basis.value, price.purchase.value


@lru_cache(maxsize=1024)
def price_of(key: str, currency: str, per_gpu_hour: str, basis: str, purchase: str) -> Price:
    """The price with this key and these PRICE columns. Raises: ValueError, ArithmeticError for impossible ones."""
    amount = Decimal(per_gpu_hour)
    return Price(
        key=key,
        currency=currency,
        per_gpu_hour=amount,
        rate=int(amount * PICO),
        basis=Basis(basis),
        purchase=Purchase(purchase),
    )
