"""Scenario S2: who preempts whom, and what each tier had."""

import pytest

from tests.behaviour.product import PRICE
from tests.monitoring_e2e.deviation import SLACK_S, ahead, beyond
from tests.monitoring_e2e.ledger import sums
from tests.monitoring_e2e.panels import Boards
from tests.monitoring_e2e.posture import NOTEBOOKS, Posture

pytestmark = pytest.mark.e2e

MATRIX = ("preemptor_tier", "victim_tier")


def test_the_matrix_of_preemptions_is_that_of_the_ledger(posture: Posture, dashboards: Boards) -> None:
    """The ledger has whole numbers; increase() carries the mean rate on to the edges of the time shown."""
    slack = SLACK_S / posture.whole.seconds

    def shown(column: str) -> dict[tuple[str, ...], float]:
        return dashboards.values(
            posture.prometheus, "tiers", "Preemptions by preemptor and victim", posture.whole, column=column, by=MATRIX
        )

    preempted, taken = posture.ledger.preemptions(), posture.ledger.gpus_taken()
    assert preempted == {("gpu-training", "gpu-interactive"): NOTEBOOKS, ("gpu-serving", "gpu-batch"): 1}
    assert taken == {("gpu-training", "gpu-interactive"): NOTEBOOKS, ("gpu-serving", "gpu-batch"): 4}
    assert shown("Preemptions") == {pair: pytest.approx(count, rel=slack) for pair, count in preempted.items()}
    assert shown("Preempted GPUs") == {pair: pytest.approx(count, rel=slack) for pair, count in taken.items()}


def test_tiers_had_what_the_ledger_says(posture: Posture, dashboards: Boards) -> None:
    def shown(column: str) -> dict[str, float]:
        found = dashboards.values(
            posture.prometheus, "tiers", "GPU-hours and cost by tier", posture.whole, column=column, by=("tier",)
        )
        return {tier: value for (tier,), value in found.items()}

    told = sums(posture.ledger.segments(posture.whole.start, posture.whole.end), "tier")
    late = ahead(posture.prometheus, posture.whole)
    hours = {tier: value * 3600 for tier, value in shown("GPU-hours").items()}
    costs = {tier: value * 3600 / float(PRICE) for tier, value in shown("Cost").items()}
    assert len(told) == 4
    assert beyond(hours, told, what="S2, GPU-seconds", ahead=late) == []
    assert beyond(costs, told, what="S2, cost", ahead=late) == []


def test_interactive_waits_and_preempts_nobody(posture: Posture, dashboards: Boards) -> None:
    waits = dashboards.values(
        posture.prometheus,
        "pending",
        "Pending pods by tier and tenant",
        posture.waiting,
        column="GPUs",
        by=("tier", "tenant"),
    )

    assert waits == {("gpu-interactive", "alpha"): 8}
    assert "exceeded quota: interactive" in posture.refusal
