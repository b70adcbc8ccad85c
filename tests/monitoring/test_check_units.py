"""Checks that a panel's unit matches the dimension of its queries."""

import pytest

from monitoring.check import units
from tests.monitoring.documents import FILE, Json, answered, board, loaded, overridden, override, panel, table, target

EUROS = {"matcher": {"id": "byRegexp", "options": "/EUR/"}, "properties": [{"id": "unit", "value": "currencyEUR"}]}
OF_A = {"matcher": {"id": "byFrameRefID", "options": "A"}, "properties": [{"id": "unit", "value": "s"}]}
BY_TIER = {"tier": "Tier"}
AGE = "time() - oldest_timestamp_seconds"
BY_CURRENCY = "sum by (currency) (increase(paid_cost_total[$__range]))"


def problems(document: Json, exempt: dict[tuple[str, str], str] | None = None) -> list[str]:
    found, unanswered = answered(loaded(board(document)))
    assert not unanswered
    return [str(each) for each in units.problems(found, exempt or {})]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            panel(target("increase(held_gpu_seconds_total[1h])"), unit="suffix: GPU-h"),
            "the query gives gpu_seconds, but 'suffix: GPU-h' shows gpu_hours; change unit or query",
        ),
        (panel(target(AGE), unit="short"), "the query gives seconds, but 'short' shows"),
        (panel(target("oldest_timestamp_seconds"), unit="dateTimeAsIso"), "the query gives timestamp_seconds, but"),
        (panel(target("share_ratio * 100"), unit="percentunit"), "the query gives percent, but 'percentunit' shows"),
        (panel(target("pods"), unit="flops"), "unit 'flops' is none of ours; take one of monitoring/unit.py"),
        (panel(target("pods"), unit=""), "unit '' is none of ours"),
        (panel(target("rate(paid_cost_total[5m])"), unit="short"), "the query gives money/second, but 'short' shows"),
        (panel(target("pods"), unit="currencyUSD"), "the query gives count, but 'currencyUSD' shows money"),
        (
            panel(target("sum by (le) (increase(wait_seconds_bucket[5m]))"), unit="short", type="heatmap"),
            "the query gives seconds, but 'short' shows",
        ),
        (
            overridden(table({"Oldest": AGE}, BY_TIER), override("Oldest", unit="bytes")),
            "the query gives seconds, but 'bytes' shows bytes",
        ),
        (
            overridden(panel(target("pods")), OF_A),
            "the query gives count, but 's' shows seconds",
        ),
    ],
)  # fmt: skip
def test_a_wrong_unit_is_reported(document: Json, problem: str) -> None:
    assert any(problem in each for each in problems(document))


@pytest.mark.parametrize(
    "document",
    [
        panel(target("increase(held_gpu_seconds_total[1h]) / 3600"), unit="suffix: GPU-h"),
        panel(target("sum by (le) (increase(wait_seconds_bucket[5m]))"), unit="s", type="heatmap"),
        panel(target("oldest_timestamp_seconds * 1000"), unit="dateTimeAsIso"),
        panel(target("vector(0)"), unit="s"),
        overridden(
            table({"Pods": "pods", "Oldest": AGE}, BY_TIER),
            override("Oldest", unit="s"),
        ),
    ],
)
def test_a_matching_unit_has_no_problem(document: Json) -> None:
    assert problems(document) == []


def test_a_state_may_be_shown_as_text() -> None:
    document = panel(target("gpu_up"), unit="short", type="state-timeline")
    worded = {**document["fieldConfig"]["defaults"], "mappings": [{"type": "value"}]}

    [problem] = problems(document)
    assert "the query gives state, but 'short' shows money or money/hour or count" in problem
    assert problems({**document, "fieldConfig": {"defaults": worded, "overrides": []}}) == []


def test_money_is_shown_with_its_currency() -> None:
    bare = panel(target(BY_CURRENCY))
    good = overridden(panel(target(BY_CURRENCY, legendFormat="{{currency}}")), EUROS)

    assert problems(good) == []
    assert problems(bare) == [
        f'{FILE}: panel "Pods": the legend does not say in which currency; add {{{{currency}}}} to it',
        f'{FILE}: panel "Pods": it shows money without the sign of a currency; give it the overrides of MONEY',
    ]


def test_a_table_of_money_has_a_column_for_the_currency() -> None:
    by_tier = "sum by (tier, currency) (increase(paid_cost_total[$__range]))"

    assert problems(table({"Cost": by_tier}, {"tier": "Tier", "currency": "Currency"})) == []
    assert problems(table({"Cost": by_tier}, BY_TIER)) == [
        f'{FILE}: panel "Pods": the table does not say in which currency; make currency one of its keys'
    ]


def test_a_unit_unknown_to_grafana_is_reported() -> None:
    document = panel(target("increase(paid_cost_total{currency='XYZ'}[1h])"), unit="currencyXYZ")

    assert problems(document) == [
        f"{FILE}: panel \"Pods\": Grafana knows no unit 'currencyXYZ'; take one of its list, or 'suffix: currencyXYZ'"
    ]


def test_an_exemption_applies_only_to_its_panel() -> None:
    document = panel(target("pods"), unit="s")

    assert problems(document, {(FILE, "Pods"): "why"}) == []
    assert (
        f'monitoring/allowed.py: MEASURED_OTHERWISE {FILE} "Other": nothing needs it any more; take it out'
        in problems(document, {(FILE, "Other"): "why"})
    )
