"""The price book file: its rules, their dated prices, and the multipliers of tiers. See examples/prices/."""

import re
from collections.abc import Iterator
from decimal import Context, Decimal
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait, shown_instant
from gputally.accounting.terms.patterns import placeholders
from gputally.accounting.terms.tier import NO_TIER
from gputally.config.document import digest, load
from gputally.config.fields import Field, Section, child_path, kind_of, value, values
from gputally.config.overlap import check_overlaps
from gputally.config.values import (
    MAX_DECIMALS,
    amount,
    choice,
    day,
    decimals,
    flag,
    instant,
    label_glob,
    label_key,
    member,
    text,
    tier_name,
    unknown,
)
from gputally.errors import Problem
from gputally.model.price import Basis, Purchase
from gputally.model.rules import Rules

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DATED = "add the date from which it applies, such as 2026-07-20, or always"
_PRICED = "add `price: 2.21` and `effective_from: 2026-07-20`, or a list `prices` of both"
_MATCHED = "add what it applies to, such as `match: {instance_type: p5.48xlarge}`, or `match: {default: true}`"
_CODES = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF
    IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD
    MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB
    RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
    UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    XXX
"""
CURRENCIES: Final = frozenset(_CODES.split())
"""ISO 4217 codes of money in use; XXX, its code for no currency, suits internal credits."""
PRICE_BOOK: Final = "PriceBook"
"""The `kind` of these files."""
_EXACT = Context(prec=60)
_ONE = Decimal(1)
_BASIS = "use node (the cost of the whole node) or gpu (the GPU alone)"
_CURRENCY = choice(CURRENCIES, example="USD (ISO 4217)")


def price_rule(field: Field, index: int) -> PriceRule:
    """The rule at `index` of the list; invalid unless `field.sound` afterwards."""
    section = field.section("id", "match", "purchase", "price", "effective_from", "prices")
    return PriceRule(
        id=section.read("id", value(_rule_id), f"rules[{index}]"),
        criteria=section.require("match", _criteria, _MATCHED) or (),
        purchases=section.read("purchase", values(member(Purchase)), ()),
        prices=tuple(_prices(section)),
    )


def _rule_id(written: str) -> str:
    if not _ID.fullmatch(written):
        raise ValueError(f"{written!r} is not a valid id; use letters, digits, '.', '_' and '-', at most 63")
    return written


def _criteria(field: Field) -> tuple[Criterion, ...]:
    section = field.section(*Trait, "default")
    if "default" in section:
        _check_default(section)
    traits = (trait for trait in Trait if trait is not Trait.LABEL)
    plain = ((trait, section.read(trait, values(label_glob), ())) for trait in traits)
    return (
        *(Criterion(trait=trait, globs=globs) for trait, globs in plain if globs),
        *section.read(Trait.LABEL, _labels, ()),
    )


def _check_default(section: Section) -> None:
    """Require `default: true` to stand alone, so that no rule matches everything by accident."""
    if section.read("default", value(flag), default=True) is False:
        section["default"].refuse("is false; specify what the rule applies to, or use true")
    if any(trait in section for trait in Trait):
        section["default"].refuse("matches everything; remove it, or the other fields beside it")


def _labels(field: Field) -> tuple[Criterion, ...]:
    globs = ((label.checked_key(key, label_key), values(label_glob)(label)) for key, label in field.pairs())
    return tuple(Criterion(trait=Trait.LABEL, key=key, globs=found) for key, found in sorted(globs))


def _prices(section: Section) -> Iterator[DatedPrice]:
    """The dated prices: one as `price` and `effective_from`, or a list of both."""
    single = "price" in section or "effective_from" in section
    if "prices" not in section:
        if single:
            yield from _dated_price(section)
        else:
            section.require("price", value(amount), _PRICED)
        return
    if single:
        section["prices"].refuse("conflicts with price or effective_from; use one or the other")
    yield from section.read("prices", _price_list, ())


def _dated_price(section: Section) -> Iterator[DatedPrice]:
    since = section.require("effective_from", value(_since), _DATED)
    price = section.require("price", value(amount), "add the price of a GPU-hour, such as 2.21")
    if since is not None and price is not None:
        yield DatedPrice(from_us=since, per_gpu_hour=price)


def _since(written: str) -> int:
    return ALWAYS if written == "always" else instant(written)


def _price_list(field: Field) -> tuple[DatedPrice, ...]:
    entries = [entry.section("effective_from", "price") for entry in field.items()]
    found = [(entry, price) for entry in entries for price in _dated_price(entry)]
    for (_, earlier), (entry, later) in pairwise(found):
        _check_order(entry, earlier.from_us, later.from_us)
    return tuple(price for _, price in found)


def _check_order(entry: Section, earlier_us: int, later_us: int) -> None:
    if later_us == earlier_us:
        entry["effective_from"].refuse(f"{shown_instant(later_us)} appears twice; keep one price for it")
    elif later_us < earlier_us:
        text = f"{shown_instant(later_us)} comes after {shown_instant(earlier_us)}; put the oldest price first"
        entry["effective_from"].refuse(text)


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


def undefined_tiers(book: PriceBook, rules: Rules, *, file: str) -> tuple[Problem, ...]:
    """A problem of `file` for each multiplier whose tier no rule defines.

    No problems if a rule derives tiers from PriorityClass names, which only the cluster knows.
    """
    if any(placeholders(rule.tier) for rule in rules.tiers):
        return ()
    defined = (*dict.fromkeys(rule.tier for rule in rules.tiers), NO_TIER)
    undefined = (tier for tier, _ in book.tiers if tier not in defined)
    return tuple(
        Problem(file, child_path("tiers", tier), f"no tier rule has it: {unknown(tier, defined, example=defined[0])}")
        for tier in undefined
    )
