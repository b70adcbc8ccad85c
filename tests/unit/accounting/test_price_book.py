import time
from decimal import Decimal, Inexact

import pytest
from msgspec.structs import replace

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.model.price import Asset, Basis, Purchase

DAY = 24 * 3600 * 1_000_000
T = 20_000 * DAY  # 2024-10-04
H100 = Asset(instance_type="p5.48xlarge", gpu_model="NVIDIA-H100-80GB-HBM3", pool="big")


def rule(
    *criteria: Criterion,
    price: str = "1",
    since: int = ALWAYS,
    name: str = "r",
    purchase: tuple[Purchase, ...] = (),
) -> PriceRule:
    prices = (DatedPrice(from_us=since, per_gpu_hour=Decimal(price)),)
    return PriceRule(id=name, criteria=criteria, purchases=purchase, prices=prices)


def book(*rules: PriceRule, **tiers: str) -> PriceBook:
    multipliers = tuple((tier, Decimal(text)) for tier, text in tiers.items())
    return PriceBook(currency="USD", basis=Basis.NODE, rules=rules, tiers=multipliers, digest="0123456789abcdef")


def paid(prices: PriceBook, asset: Asset = H100, *, tier: str | None = None, at_us: int = T) -> Decimal | None:
    price = prices.price_of(asset, tier=tier, at_us=at_us)
    return price.per_gpu_hour if price else None


def criterion(trait: Trait, *globs: str, key: str = "") -> Criterion:
    return Criterion(trait=trait, globs=globs, key=key)


def test_the_first_rule_that_fits_decides() -> None:
    ordered = book(rule(criterion(Trait.INSTANCE_TYPE, "p5.*"), price="6.88"), rule(price="2"))

    assert paid(ordered) == Decimal("6.88")
    assert paid(ordered, Asset(instance_type="g5.xlarge")) == Decimal(2)


def test_an_asset_that_no_rule_fits_is_unpriced() -> None:
    assert paid(book(rule(criterion(Trait.POOL, "small")))) is None
    assert paid(book()) is None


@pytest.mark.parametrize(
    ("matching", "fits"),
    [
        (criterion(Trait.GPU_MODEL, "nvidia-h100*"), True),
        (criterion(Trait.GPU_MODEL, "A100", "NVIDIA-H100-*"), True),
        (criterion(Trait.GPU_MODEL, "H100"), False),
        (criterion(Trait.POOL, "BIG"), False),
        (criterion(Trait.LABEL, "*", key="accelerator"), False),
    ],
)
def test_globs_match_whole_values_and_models_in_any_case(matching: Criterion, *, fits: bool) -> None:
    assert (paid(book(rule(matching))) is not None) is fits


def test_labels_are_matched_by_their_own_key() -> None:
    labelled = Asset(labels=(("a", "x"), ("b", "y")))

    assert paid(book(rule(criterion(Trait.LABEL, "y", key="b"))), labelled) == 1
    assert paid(book(rule(criterion(Trait.LABEL, "y", key="a"))), labelled) is None


def test_all_criteria_of_a_rule_have_to_fit() -> None:
    both = book(rule(criterion(Trait.POOL, "big"), criterion(Trait.INSTANCE_TYPE, "p5.*")))

    assert paid(both) == 1
    assert paid(both, Asset(pool="big")) is None


def test_a_rule_prices_only_the_purchase_options_it_names() -> None:
    spot = replace(H100, purchase=Purchase.SPOT)
    apart = book(rule(price="6.88", purchase=(Purchase.ON_DEMAND,)), rule(price="2.50", purchase=(Purchase.SPOT,)))

    assert [paid(apart), paid(apart, spot)] == [Decimal("6.88"), Decimal("2.50")]
    assert paid(apart, replace(H100, purchase=Purchase.RESERVED)) is None


def test_a_price_holds_from_its_instant_until_the_next_one() -> None:
    dated = PriceRule(
        id="r",
        prices=(DatedPrice(from_us=T, per_gpu_hour=Decimal(12)), DatedPrice(from_us=T + DAY, per_gpu_hour=Decimal(7))),
    )

    instants = (T - 1, T, T + DAY - 1, T + DAY, T + 999 * DAY)
    assert [paid(book(dated), at_us=at) for at in instants] == [None, 12, 12, 7, 7]


def test_before_its_first_price_a_rule_leaves_the_decision_to_the_next() -> None:
    later = book(rule(price="7", since=T), rule(price="9"))

    assert [paid(later, at_us=T - 1), paid(later, at_us=T)] == [9, 7]


def test_a_tier_pays_its_multiple_and_capacity_the_plain_price() -> None:
    tiered = book(rule(price="2.21"), scavenger="0.4")

    assert paid(tiered, tier="scavenger") == Decimal("0.884")
    assert paid(tiered, tier="critical") == paid(tiered) == Decimal("2.21")


def test_the_rate_is_the_exact_price_in_units_of_ten_to_the_minus_twelve() -> None:
    price = book(rule(price="3.430875"), gold="1.000001").price_of(H100, tier="gold", at_us=T)

    assert price is not None
    assert price.rate == 3_430_878_430_875


def test_a_price_that_no_rate_can_state_exactly_is_an_error_and_never_rounded() -> None:
    with pytest.raises(Inexact):
        book(rule(price="0.0000000000001")).price_of(H100, tier=None, at_us=T)


@pytest.mark.parametrize(
    ("since", "tier", "key"),
    [
        (ALWAYS, None, "0123456789ab/p5/on-demand/always/x1"),
        (T, "gold", "0123456789ab/p5/on-demand/2024-10-04/x1.5"),
        (T + DAY // 2, "gold", "0123456789ab/p5/on-demand/2024-10-04T12:00:00Z/x1.5"),
    ],
)
def test_a_price_key_names_book_rule_purchase_date_and_multiplier(since: int, tier: str | None, key: str) -> None:
    price = book(rule(name="p5", since=since), gold="1.50").price_of(H100, tier=tier, at_us=T + DAY)

    assert price is not None
    assert price.key == key


def test_changes_are_the_instants_at_which_prices_take_effect() -> None:
    assert book(rule(since=T + 1), rule(since=T), rule(since=ALWAYS), rule(since=T)).changes() == (T, T + 1)


def test_label_keys_are_those_that_rules_match_on() -> None:
    matching = rule(criterion(Trait.LABEL, "x", key="accelerator"), criterion(Trait.POOL, "big"))

    assert book(matching, rule()).label_keys() == {"accelerator"}


def test_books_of_equal_digest_but_other_prices_are_not_mistaken_for_each_other() -> None:
    assert [paid(book(rule(price=price))) for price in ("1", "2", "1")] == [1, 2, 1]


def test_looking_up_prices_twenty_thousand_times_takes_less_than_a_tenth_of_a_second_of_work() -> None:
    many = book(*(rule(criterion(Trait.INSTANCE_TYPE, f"x{i}.*")) for i in range(200)), rule())
    assets = [replace(H100, pool=f"pool-{i}") for i in range(50)]
    paid(many, tier="gold")

    began = time.process_time()
    for i in range(20_000):
        many.price_of(assets[i % 50], tier="gold", at_us=T)
    assert time.process_time() - began < 0.1
