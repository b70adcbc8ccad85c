"""The `rules` of a price book: what each one matches, and its dated prices."""

import re
from collections.abc import Iterator
from itertools import pairwise

from gputally.accounting.prices.price_book import ALWAYS, Criterion, DatedPrice, PriceRule, Trait, shown_instant
from gputally.config.fields import Field, Section, value, values
from gputally.config.values import amount, flag, instant, label_glob, label_key, member
from gputally.model.price import Purchase

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DATED = "add the date from which it applies, such as 2026-07-20, or always"
_PRICED = "add `price: 2.21` and `effective_from: 2026-07-20`, or a list `prices` of both"
_MATCHED = "add what it applies to, such as `match: {instance_type: p5.48xlarge}`, or `match: {default: true}`"


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
