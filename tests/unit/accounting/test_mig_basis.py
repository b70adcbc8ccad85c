"""One configuration weighs for both programs: what the agent measured is never more than what was allocated."""

from decimal import Decimal
from fractions import Fraction

import pytest

from gputally.accounting.prices.book import ALWAYS, DatedPrice, PriceBook, PriceRule
from gputally.accounting.totals.total import Total
from gputally.model.observation import UsageReported
from gputally.model.price import Basis
from gputally.model.rules import MigBasis, ResourceRule, Rules
from tests.core import layouts
from tests.core.layouts import Layout
from tests.core.manifests import us
from tests.core.measured import complete
from tests.core.replay import Replay

SLICE = "nvidia.com/mig-1g.10gb"
BOOK = PriceBook(
    currency="EUR",
    basis=Basis.GPU,
    rules=(PriceRule(id="all", prices=(DatedPrice(from_us=ALWAYS, per_gpu_hour=Decimal(1)),)),),
    digest="d",
)
TEN_HOURS = 10 + 36_000
MIXED = Layout(profiles=(("3g.40gb", "2g.20gb", "1g.20gb"), ("7g.80gb",)), replicas={})


def costs(layout: Layout, resource: str, rules: Rules, *, agent: Rules) -> tuple[Fraction, Fraction]:
    """Of one idle pod in ten hours: allocated, and idle as measured by an agent with rules of its own."""
    replay = Replay(rules=rules, book=BOOK)
    pod = layout.pod("a", resource)
    replay.see(layout.node, at=1)
    replay.see(pod, at=11)
    complete(replay, at=TEN_HOURS)
    report = layout.usage(pod, rules=agent, until=TEN_HOURS)
    replay.apply(UsageReported(report=report, at_us=us(TEN_HOURS)))
    allocated, idle = (sum(replay.money(TEN_HOURS, total).values()) for total in (Total.COST, Total.IDLE_COST))
    return Fraction(allocated), Fraction(idle)


@pytest.mark.parametrize(
    ("layout", "resource", "by_compute", "by_memory"),
    [
        (Layout(profiles=(layouts.SEVEN,), replicas={}), SLICE, 1_428_570, 1_250_000),
        (layouts.SHARED_SLICES, SLICE, 357_140, 312_500),
        (layouts.SINGLE, "nvidia.com/gpu", 357_140, 312_500),
        (MIXED, "nvidia.com/mig-3g.40gb", 4_285_710, 5_000_000),
        (MIXED, "nvidia.com/mig-2g.20gb", 2_857_140, 2_500_000),
        (MIXED, "nvidia.com/mig-1g.20gb", 1_428_570, 2_500_000),
        (MIXED, "nvidia.com/mig-7g.80gb", 10_000_000, 10_000_000),
    ],
)
@pytest.mark.parametrize("basis", MigBasis)
def test_an_idle_pod_idles_for_exactly_what_it_is_allocated(
    layout: Layout, resource: str, by_compute: int, by_memory: int, basis: MigBasis
) -> None:
    rules = Rules(mig_basis=basis)
    expected = Fraction(by_memory if basis is MigBasis.MEMORY else by_compute, 10**6)

    assert costs(layout, resource, rules, agent=rules) == (expected, expected)


def test_an_agent_of_another_basis_would_let_idle_cost_more_than_allocated() -> None:
    """Such reports are refused: tests/unit/aggregator/test_agent_client.py."""
    layout = Layout(profiles=(layouts.SEVEN,), replicas={})

    allocated, idle = costs(layout, SLICE, Rules(mig_basis=MigBasis.MEMORY), agent=Rules())
    assert (round(float(allocated), 2), round(float(idle), 2)) == (1.25, 1.43)


def test_a_fixed_weight_counts_for_both() -> None:
    quarter = ResourceRule(pattern="nvidia.com/gpu", weight=250_000)
    rules = Rules(resources=(quarter,))

    assert costs(Layout(replicas={}), "nvidia.com/gpu", rules, agent=rules) == (Fraction(5, 2), Fraction(5, 2))
