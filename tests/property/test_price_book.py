from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceKey, PriceRule, Trait
from gputally.model.price import Asset, Basis, Purchase
from gputally.model.units import PICO

POOLS = ("a", "ab", "b", "")
TIERS = ("gold", "lead", "other")
INSTANTS = st.integers(ALWAYS, 1000)


def amounts(places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(min_value=0, max_value=1_000_000, places=places)


def criteria() -> st.SearchStrategy[tuple[Criterion, ...]]:
    globs = st.sampled_from(["a", "a*", "b", "*"])
    pool = st.builds(lambda glob: Criterion(trait=Trait.POOL, globs=(glob,)), globs)
    return st.lists(pool, max_size=2).map(tuple)


def dated_prices() -> st.SearchStrategy[tuple[DatedPrice, ...]]:
    dated = st.builds(DatedPrice, from_us=INSTANTS, per_gpu_hour=amounts(8))
    return st.lists(dated, min_size=1, max_size=4, unique_by=lambda price: price.from_us).map(
        lambda found: tuple(sorted(found, key=lambda price: price.from_us))
    )


def price_rules() -> st.SearchStrategy[PriceRule]:
    purchases = st.lists(st.sampled_from(Purchase), unique=True, max_size=2).map(tuple)
    return st.builds(
        PriceRule, id=st.sampled_from("xyz"), criteria=criteria(), purchases=purchases, prices=dated_prices()
    )


def books() -> st.SearchStrategy[PriceBook]:
    tiers = st.lists(st.tuples(st.sampled_from(TIERS[:2]), amounts(4)), unique_by=lambda pair: pair[0]).map(tuple)
    rules = st.lists(price_rules(), max_size=4).map(tuple)
    return st.builds(PriceBook, currency=st.just("EUR"), basis=st.sampled_from(Basis), rules=rules, tiers=tiers)


def assets() -> st.SearchStrategy[Asset]:
    return st.builds(Asset, pool=st.sampled_from(POOLS), purchase=st.sampled_from(Purchase))


@given(books(), assets(), st.sampled_from([*TIERS, None]), INSTANTS, INSTANTS)
def test_between_two_changes_of_a_book_no_price_changes(
    book: PriceBook, asset: Asset, tier: str | None, one: int, other: int
) -> None:
    begin, end = sorted((one, other))
    if any(begin < change <= end for change in book.changes()):
        end = min(change for change in book.changes() if begin < change) - 1

    assert book.price_of(asset, tier=tier, at_us=begin) == book.price_of(asset, tier=tier, at_us=end)


@given(books(), assets(), st.sampled_from([*TIERS, None]), INSTANTS)
def test_a_rate_is_exactly_its_price(book: PriceBook, asset: Asset, tier: str | None, at_us: int) -> None:
    price = book.price_of(asset, tier=tier, at_us=at_us)

    if price is not None:
        assert Decimal(price.rate) / PICO == price.per_gpu_hour


@given(books(), assets(), INSTANTS)
def test_the_price_is_that_of_the_first_rule_that_fits_and_has_begun(book: PriceBook, asset: Asset, at_us: int) -> None:
    begun = [(rule, p) for rule in book.rules if rule.fits(asset) for p in rule.prices if p.from_us <= at_us]
    expected = max((p for rule, p in begun if rule is begun[0][0]), key=lambda p: p.from_us, default=None)

    price = book.price_of(asset, tier=None, at_us=at_us)
    assert (price and price.per_gpu_hour) == (expected and expected.per_gpu_hour)


@given(books(), assets(), st.sampled_from([*TIERS, None]), INSTANTS)
def test_the_key_of_a_price_names_its_rule_date_and_multiplier(
    book: PriceBook, asset: Asset, tier: str | None, at_us: int
) -> None:
    price = book.price_of(asset, tier=tier, at_us=at_us)
    key = PriceKey.parse(price.key) if price else None

    if price:
        assert key is not None
        assert str(key) == price.key
        assert key.purchase == price.purchase == asset.purchase
        assert key.multiplier == dict(book.tiers).get(tier or "", Decimal(1))
        rates = {dated.per_gpu_hour for rule in book.rules if rule.id == key.rule for dated in rule.prices}
        assert price.per_gpu_hour in {rate * key.multiplier for rate in rates}


@pytest.mark.parametrize(
    "text", ["", "h100", "book/on-demand", "0123456789ab/h100@0:spot", "a/b/spot/always/x", "a/b/spot/always/1"]
)
def test_a_key_of_another_form_is_not_taken_apart(text: str) -> None:
    assert PriceKey.parse(text) is None
