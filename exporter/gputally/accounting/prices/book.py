"""The price of a GPU-hour: ordered rules, each with dated prices, and the key that leads from an amount to its rule."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from decimal import Context, Decimal, Inexact
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.price import Asset, Basis, Price, Purchase
from gputally.model.units import PICO, to_datetime

DIGEST_PREFIX: Final = 12
"""How much of a price book's digest identifies it in a key."""
_FORM: Final = re.compile(r"([^/]*)/([^/]+)/([^/]+)/([^/]+)/x(\d+(?:\.\d+)?)")
ALWAYS = 0
"""The `from_us` of a price without a start date: no pod is older than the epoch."""
_EXACT = Context(prec=60, traps=[Inexact])
"""A price that must be rounded is a bug of the reader."""


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


class Trait(StrEnum):
    """The attribute of an asset that a criterion compares; named like the fields of the file."""

    INSTANCE_TYPE = "instance_type"
    GPU_MODEL = "gpu_model"
    POOL = "pool"
    LABEL = "labels"


class Criterion(Struct, frozen=True, kw_only=True):
    """One of the `globs` matches the asset's `trait` (for labels: the value of label `key`, which must exist).

    Instance types and GPU models are compared case-insensitively, since vendors and clouds spell them differently.
    """

    trait: Trait
    key: str = ""
    globs: tuple[str, ...]

    def fits(self, asset: Asset) -> bool:
        """Whether the asset meets the criterion."""
        return any(self._matches(value, glob) for value in self._values(asset) for glob in self.globs)

    def _values(self, asset: Asset) -> Iterator[str]:
        if self.trait is Trait.LABEL:
            yield from (value for key, value in asset.labels if key == self.key)
        else:
            yield getattr(asset, self.trait.value)

    def _matches(self, value: str, glob: str) -> bool:
        if self.trait in (Trait.INSTANCE_TYPE, Trait.GPU_MODEL):
            return fnmatchcase(value.lower(), glob.lower())
        return fnmatchcase(value, glob)


class DatedPrice(Struct, frozen=True, kw_only=True):
    """The price of one GPU-hour from `from_us` (µs) until the next price of the rule."""

    from_us: int
    per_gpu_hour: Decimal


class PriceRule(Struct, frozen=True, kw_only=True):
    """Assets that meet all `criteria` (none: every asset), with one of `purchases` (none: any)."""

    id: str
    criteria: tuple[Criterion, ...] = ()
    purchases: tuple[Purchase, ...] = ()
    prices: tuple[DatedPrice, ...]

    def fits(self, asset: Asset) -> bool:
        """Whether the rule applies to the asset, at any time."""
        bought = not self.purchases or asset.purchase in self.purchases
        return bought and all(criterion.fits(asset) for criterion in self.criteria)

    def undecided(self, asset: Asset, unknown: frozenset[str]) -> frozenset[str]:
        """The label keys among `unknown` that decide whether the rule applies to the asset."""
        open_criteria = [each for each in self.criteria if each.trait is Trait.LABEL and each.key in unknown]
        rest = replace(self, criteria=tuple(each for each in self.criteria if each not in open_criteria))
        return frozenset(each.key for each in open_criteria) if rest.fits(asset) else frozenset()

    def by_date(self) -> tuple[DatedPrice, ...]:
        """The prices of the book, earliest first."""
        return tuple(sorted(self.prices, key=_from_us))


class PriceBook(Struct, frozen=True, kw_only=True, cache_hash=True):
    """All prices, in one currency and on one basis; `tiers` are (tier, multiplier) pairs.

    `digest` depends on everything that affects a price. `name`, `source` and `as_of` (an ISO date) tell readers of a
    bill where the prices come from.
    """

    currency: str
    basis: Basis
    rules: tuple[PriceRule, ...] = ()
    tiers: tuple[tuple[str, Decimal], ...] = ()
    name: str = ""
    source: str = ""
    as_of: str = ""
    digest: str = ""

    def without_default(self) -> "PriceBook":
        """The rules with a criterion, which say something about an asset of which only a part is known."""
        return replace(self, rules=tuple(each for each in self.rules if each.criteria))

    def price_of(self, asset: Asset, *, tier: str | None, at_us: int) -> Price | None:
        """The price of a GPU-hour of `asset` at `at_us`; None if no rule applies.

        The first rule that applies and has a price at that time decides. Allocations cost the price times the
        multiplier of their `tier` (1 if the book has none for it), capacity (None) costs the price.
        """
        instants, prices = _timeline(self, asset, tier)
        index = bisect_right(instants, at_us)
        return prices[index - 1] if index else None

    def steps(self, asset: Asset, *, tier: str, from_us: int, until_us: int) -> list[tuple[int, Price | None]]:
        """The price of an allocation at `from_us`, and each later change before `until_us`."""
        instants, prices = _timeline(self, asset, tier)
        first = bisect_right(instants, from_us)
        last = bisect_left(instants, until_us, first)
        found: list[tuple[int, Price | None]] = [(from_us, prices[first - 1] if first else None)]
        for index in range(first, last):
            found.append((instants[index], prices[index]))  # noqa: PERF401 - nearly always there is none
        return found

    def undecided(self, asset: Asset, *, at_us: int, unknown: frozenset[str]) -> frozenset[str]:
        """The label keys among `unknown` on which the price of the asset at `at_us` depends."""
        found = frozenset[str]()
        for rule in self.rules:
            if any(price.from_us <= at_us for price in rule.prices):
                if rule.fits(asset):
                    break
                found |= rule.undecided(asset, unknown)
        return found

    def changes(self) -> tuple[int, ...]:
        """The instants (µs) at which any price takes effect, in order."""
        instants = {price.from_us for rule in self.rules for price in rule.prices}
        return tuple(sorted(instants - {ALWAYS}))

    def label_keys(self) -> frozenset[str]:
        """The node label keys that rules match on, which `Asset.labels` must contain."""
        criteria = (criterion for rule in self.rules for criterion in rule.criteria)
        return frozenset(criterion.key for criterion in criteria if criterion.trait is Trait.LABEL)


@lru_cache(maxsize=16_384)
def _timeline(book: PriceBook, asset: Asset, tier: str | None) -> tuple[tuple[int, ...], tuple[Price, ...]]:
    """The price of `asset` as a step function: the instants of its steps, and the price from each on."""
    rules = [(rule, rule.by_date()) for rule in book.rules if rule.fits(asset)]
    multiplier = dict(book.tiers).get(tier, Decimal(1)) if tier is not None else Decimal(1)
    instants = tuple(sorted({price.from_us for _, dates in rules for price in dates}))
    steps = (_first_effective(rules, at_us) for at_us in instants)
    return instants, tuple(_price(book, rule, dated, asset.purchase, multiplier) for rule, dated in steps)


def _first_effective(rules: list[tuple[PriceRule, tuple[DatedPrice, ...]]], at_us: int) -> tuple[PriceRule, DatedPrice]:
    """The first rule with a price in effect at `at_us`, and that price; there must be one."""
    passed = ((rule, dates, bisect_right(dates, at_us, key=_from_us)) for rule, dates in rules)
    return next((rule, dates[count - 1]) for rule, dates, count in passed if count)


def _from_us(price: DatedPrice) -> int:
    return price.from_us


def _price(book: PriceBook, rule: PriceRule, dated: DatedPrice, purchase: Purchase, multiplier: Decimal) -> Price:
    per_gpu_hour = _EXACT.multiply(dated.per_gpu_hour, multiplier)
    key = PriceKey(
        book=book.digest[:DIGEST_PREFIX],
        rule=rule.id,
        purchase=purchase.value,
        since=shown_instant(dated.from_us),
        multiplier=multiplier,
    )
    return Price(
        key=str(key),
        currency=book.currency,
        per_gpu_hour=per_gpu_hour,
        rate=int(_EXACT.to_integral_exact(_EXACT.multiply(per_gpu_hour, Decimal(PICO)))),
        basis=book.basis,
        purchase=purchase,
    )


def shown_instant(us: int) -> str:
    """`always`, `2026-07-20`, or `2026-07-20T12:30:00Z` if it is not midnight; UTC."""
    if us == ALWAYS:
        return "always"
    return to_datetime(us).isoformat().replace("+00:00", "Z").removesuffix("T00:00:00Z")
