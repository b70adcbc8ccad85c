"""Scenario S2: preemptions and GPU-hours by tier."""

import pytest

from tests.behaviour.product import PRICE
from tests.monitoring_e2e.deviation import SLACK_S, deviations, overcount_at_end
from tests.monitoring_e2e.ledger import sums
from tests.monitoring_e2e.panels import Boards
from tests.monitoring_e2e.posture import NOTEBOOKS, Posture

pytestmark = pytest.mark.e2e

MATRIX = ("preemptor_tier", "victim_tier")


def test_the_preemption_matrix_equals_the_ledger(posture: Posture, dashboards: Boards) -> None:
    """The ledger has whole numbers; increase() extrapolates the mean rate to the edges of the time range."""
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


def test_gpu_hours_and_costs_of_tiers_equal_the_ledger(posture: Posture, dashboards: Boards) -> None:
    def shown(column: str) -> dict[str, float]:
        found = dashboards.values(
            posture.prometheus, "tiers", "GPU-hours and cost by tier", posture.whole, column=column, by=("tier",)
        )
        return {tier: value for (tier,), value in found.items()}

    in_ledger = sums(posture.ledger.segments(posture.whole.start, posture.whole.end), "tier")
    overcount = overcount_at_end(posture.prometheus, posture.whole)
    hours = {tier: value * 3600 for tier, value in shown("GPU-hours").items()}
    costs = {tier: value * 3600 / float(PRICE) for tier, value in shown("Cost").items()}
    assert len(in_ledger) == 4
    assert deviations(hours, in_ledger, what="S2, GPU-seconds", overcount=overcount) == []
    assert deviations(costs, in_ledger, what="S2, cost", overcount=overcount) == []


def test_interactive_waits_and_preempts_no_pod(posture: Posture, dashboards: Boards) -> None:
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
