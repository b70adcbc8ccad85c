"""The price book file. See examples/prices/."""

from decimal import Context, Decimal
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from gputally.accounting.prices.price_book import PriceBook, PriceRule
from gputally.config.digest import digest
from gputally.config.document import load
from gputally.config.fields import Field, kind_of, value
from gputally.config.overlap import check_overlaps
from gputally.config.prices.currencies import CURRENCIES
from gputally.config.prices.price_rules import price_rule
from gputally.config.values import MAX_DECIMALS, amount, choice, day, decimals, member, text, tier_name
from gputally.model.price import Basis

PRICE_BOOK: Final = "PriceBook"
"""The `kind` of these files."""
_EXACT = Context(prec=60)
_ONE = Decimal(1)
_BASIS = "use node (the cost of the whole node) or gpu (the GPU alone)"
_CURRENCY = choice(CURRENCIES, example="USD (ISO 4217)")


def read_price_book(path: Path) -> PriceBook:
    """The price book of a file.

    Raises: ConfigError with all problems of the file.
    """
    root = load(path)
    book = price_book(root) if kind_of(root, [PRICE_BOOK]) else None
    root.raise_problems()
    assert book is not None, "a wrong kind is a problem"
    return book


def price_book(root: Field) -> PriceBook:
    """The price book of a file; invalid if `root` has problems."""
    section = root.section("kind", "name", "currency", "basis", "source", "as_of", "tiers", "rules")
    book = PriceBook(
        name=section.read("name", value(text), Path(root.file).stem),
        currency=section.require("currency", value(_CURRENCY), "use an ISO 4217 code such as USD") or "",
        basis=section.require("basis", value(member(Basis)), _BASIS) or Basis.NODE,
        source=section.read("source", value(text), ""),
        as_of=section.read("as_of", value(day), ""),
        tiers=section.read("tiers", _tiers, ()),
        rules=section.require("rules", _rules, "add at least one rule") or (),
    )
    if "tiers" in section:
        _check_exact(section["tiers"], book)
    return replace(book, digest=digest(replace(book, name="", source="", as_of="")))


def _tiers(field: Field) -> tuple[tuple[str, Decimal], ...]:
    found = ((multiplier.checked_key(tier, tier_name), multiplier.parse(amount)) for tier, multiplier in field.pairs())
    return tuple((tier, multiplier) for tier, multiplier in found if multiplier is not None)


def _rules(field: Field) -> tuple[PriceRule, ...]:
    entries = [(entry, price_rule(entry, index)) for index, entry in enumerate(field.items())]
    sound = [(entry, rule) for entry, rule in entries if entry.sound]
    check_overlaps(sound)
    return tuple(rule for _, rule in sound)


def _check_exact(tiers: Field, book: PriceBook) -> None:
    """Report multipliers whose product with a price has too many decimals to be exact."""
    multipliers = dict(book.tiers)
    prices = {price.per_gpu_hour for rule in book.rules for price in rule.prices}
    for tier, field in tiers.pairs():
        inexact = [
            price for price in prices if decimals(_EXACT.multiply(price, multipliers.get(tier, _ONE))) > MAX_DECIMALS
        ]
        if inexact:
            field.refuse(f"times {min(inexact)} has more than {MAX_DECIMALS} decimals; round one of them")
