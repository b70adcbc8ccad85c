"""The keys of prices: what a bill needs to lead from an amount to its rule."""

import re
from decimal import Decimal
from typing import Final, NamedTuple, Self

DIGEST_PREFIX: Final = 12
"""How much of a price book's digest identifies it in a key."""
_FORM: Final = re.compile(r"([^/]*)/([^/]+)/([^/]+)/([^/]+)/x(\d+(?:\.\d+)?)")


class PriceKey(NamedTuple):
    """The origin of a price: the digest of its book, the rule, its date, the purchase option, the tier's multiplier."""

    book: str
    rule: str
    purchase: str
    since: str
    multiplier: Decimal

    def __str__(self) -> str:
        """`0123456789ab/h100/on-demand/2026-07-20/x1.5`, as the ledger stores it."""
        return f"{self.book}/{self.rule}/{self.purchase}/{self.since}/x{self.multiplier.normalize():f}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a stored key; None if it has another form."""
        match = _FORM.fullmatch(text)
        if match is None:
            return None
        book, rule, purchase, since, multiplier = match.groups()
        return cls(book, rule, purchase, since, Decimal(multiplier))
