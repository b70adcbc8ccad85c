"""The section `budgets`, and what is wrong with it."""

from decimal import Decimal
from pathlib import Path

import pytest

from gputally.config.budgets import unpriced_budgets
from gputally.config.rules_file import default_rules
from gputally.model.budgets import Budget
from gputally.model.periods import PeriodLength
from gputally.model.units import COST_UNIT, GPU_HOUR
from tests.unit.config.test_rules_file import problems, rules

FOUR_TIERS = "tiers: {preset: four-tier}\n"


def section(*entries: str) -> str:
    return "budgets:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def test_budgets_are_of_tenants_and_tiers_in_money_or_in_gpu_hours(tmp_path: Path) -> None:
    found = rules(
        section(
            "tenant: research, period: month, amount: 25000.50",
            'name: all training, tenant: "team-*", tier: training-*, period: quarter, gpu_hours: 9000, '
            "time_zone: Europe/Berlin",
        ),
        tmp_path,
    ).budgets

    assert found == (
        Budget(name="research/month", tenant="research", period=PeriodLength.MONTH, amount=Decimal("25000.50")),
        Budget(
            name="all training",
            tenant="team-*",
            tier="training-*",
            period=PeriodLength.QUARTER,
            time_zone="Europe/Berlin",
            gpu_hours=Decimal(9000),
        ),
    )
    assert [each.limit for each in found] == [25000 * COST_UNIT + COST_UNIT // 2, 9000 * GPU_HOUR]


def test_budgets_change_the_classification_of_no_pod(tmp_path: Path) -> None:
    found = rules(section("tenant: a, period: week, gpu_hours: 1"), tmp_path)

    assert found.digest == default_rules().digest


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("tenant: a, gpu_hours: 1", "budgets[0].period: is missing; use week, month, quarter or year"),
        (
            "tenant: a, period: mouth, gpu_hours: 1",
            "budgets[0].period: unknown 'mouth'; use week, month, quarter or year (did you mean 'month'?)",
        ),
        (
            "period: week, gpu_hours: 1",
            'budgets[0]: names neither tenant nor tier; add one of them, such as `tenant: research`, or `tenant: "*"`',
        ),
        ("tenant: a, period: week", "budgets[0]: has neither amount nor gpu_hours; add one of them"),
        (
            "tenant: a, period: week, amount: 1, gpu_hours: 1",
            "budgets[0]: has both amount and gpu_hours; use two budgets",
        ),
        ("tenant: a, period: week, amount: 0", ("budgets[0].amount: 0 is not a budget; use more than 0, and at most "
         "1000000000000")),
        ("tenant: a, period: week, amount: 1 EUR", ("budgets[0].amount: '1 EUR' is not a number; use digits and a "
         "decimal point, such as 25000")),
        ("tenant: a, period: week, amount: 0.1234567890123",
         "budgets[0].amount: 0.1234567890123 has more than 12 decimals; round it"),
        (
            "tenant: a, period: week, amount: 1, time_zone: Berlin",
            ("budgets[0].time_zone: unknown time zone 'Berlin'; use a name such as UTC, Europe/Berlin or "
            "America/New_York"),
        ),
        ("tenant: a, period: week, amount: 1, currency: USD",
         ("budgets[0].currency: unknown field; known fields are name, tenant, tier, period, time_zone, amount and "
         "gpu_hours")),
        ("tier: gpu-trainig, period: week, amount: 1",
         ("budgets[0].tier: 'gpu-trainig' matches no tier of the tier rules; use 'gpu-training', 'gpu-serving', "
         "'gpu-batch', 'gpu-interactive' or 'none'")),
    ],
)  # fmt: skip
def test_a_wrong_budget_is_refused_with_its_remedy(entry: str, problem: str, tmp_path: Path) -> None:
    assert problems(FOUR_TIERS + section(entry), tmp_path) == [problem]


def test_two_budgets_of_one_name_are_refused(tmp_path: Path) -> None:
    found = problems(
        section("tenant: a, period: week, amount: 1", "tenant: a, period: week, gpu_hours: 1"),
        tmp_path,
    )

    assert found == ["budgets[1]: is named 'a/week', as is budgets[0]; give it another `name`"]


def test_tiers_that_only_the_cluster_knows_are_not_checked(tmp_path: Path) -> None:
    assert rules(section("tier: anything, period: week, amount: 1"), tmp_path).budgets
    assert rules(FOUR_TIERS + section('tier: "*-training", period: week, amount: 1'), tmp_path).budgets


def test_amounts_need_a_price_book_for_their_currency(tmp_path: Path) -> None:
    found = rules(
        section("tenant: a, period: week, gpu_hours: 1", "tenant: b, period: week, amount: 1"), tmp_path
    ).budgets
    remedy = "needs a price book for its currency; set --prices.file, or use gpu_hours"
    assert [*map(str, unpriced_budgets(found, file="c.yaml"))] == [f"c.yaml: budgets[1].amount: {remedy}"]


def test_too_many_budgets_are_refused(tmp_path: Path) -> None:
    many = [f"name: b{number}, tenant: a, period: week, amount: 1" for number in range(501)]

    assert problems(section(*many), tmp_path) == ["budgets: has 501 budgets; use at most 500"]
