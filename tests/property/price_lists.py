"""Random price lists, and the book that says the same."""

from decimal import Decimal
from fractions import Fraction
from hashlib import sha256

from hypothesis import strategies as st

from gputally.accounting.prices.book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.model.price import Basis
from tests.core.manifests import us
from tests.property.node_lives import FAST, LATEST, RACK, Draw
from tests.told import Dated, Prices


@st.composite
def price_lists(draw: Draw) -> Prices:
    """Prices that begin and change at any time, and multipliers."""
    amounts = st.integers(0, 400).map(lambda cents: Fraction(cents, 100))
    models = {}
    for model in sorted(draw(st.sets(st.sampled_from(["A100", "H100", "T4", "unknown"])))):  # in each process alike
        since = sorted(draw(st.sets(st.integers(0, LATEST), min_size=1, max_size=3)))
        if not draw(st.integers(0, 3)):  # a price for each few seconds, as of a spot market
            since = list(range(since[0], LATEST, draw(st.integers(1, 5))))
        few = [draw(amounts) for _ in since[:3]]
        models[model] = tuple((at, few[i % len(few)]) for i, at in enumerate(since))
    keys = draw(st.sets(st.sampled_from([RACK, FAST])))
    labels = {key: ((0, draw(amounts)),) for key in sorted(keys)}
    return Prices(models=models, tiers={"gold": Fraction(3, 2)}, labels=labels)


def book_of(prices: Prices) -> PriceBook:
    """The same prices as the product has them."""
    by_label = (
        _rule(key, Criterion(trait=Trait.LABEL, key=key, globs=("*",)), dated)
        for key, dated in sorted(prices.labels.items())
    )
    by_model = (
        _rule(model, Criterion(trait=Trait.GPU_MODEL, globs=(model,)), dated)
        for model, dated in sorted(prices.models.items())
    )
    rules = (*by_label, *by_model)
    tiers = tuple((tier, _decimal(factor)) for tier, factor in prices.tiers.items())
    digest = sha256(repr((rules, tiers)).encode()).hexdigest()
    return PriceBook(currency="EUR", basis=Basis.NODE, rules=rules, tiers=tiers, digest=digest)


def _rule(name: str, criterion: Criterion, dated: Dated) -> PriceRule:
    prices = (DatedPrice(from_us=us(at), per_gpu_hour=_decimal(price)) for at, price in dated if price is not None)
    return PriceRule(id=name, criteria=(criterion,), prices=tuple(prices))


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
