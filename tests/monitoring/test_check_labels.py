"""Checks that labels used by queries, legends and links exist at that point."""

import pytest

from monitoring.check import queries
from monitoring.check.syntax import parsed
from monitoring.check.trace import traced
from tests.monitoring.documents import (
    FILE,
    KNOWN,
    RULES,
    alert,
    annotations,
    answered,
    board,
    linked,
    loaded,
    panel,
    rules,
    table,
    target,
    variable,
)


@pytest.mark.parametrize(
    ("expr", "labels"),
    [
        ("pods", "cluster instance tenant tier"),
        ("wait_seconds_bucket", "cluster instance le tier"),
        ("sum(pods)", ""),
        ("sum by (tier) (pods)", "tier"),
        ("sum without (tenant) (pods)", "cluster instance tier"),
        ("topk by (tier) (3, pods)", "cluster instance tenant tier"),
        ('count_values("number", pods)', "number"),
        ("pods / ignoring (tenant) group_left () sum without (tenant) (pods)", "cluster instance tenant tier"),
        ("sum by (tier) (pods) / on (tier) sum by (tier, tenant) (pods)", "tier"),
        ("gpu_up * on (gpu) group_left (model) gpu_info", "cluster gpu instance model"),
        ("gpu_info * on (gpu) group_right () gpu_up", "cluster gpu instance"),
        ("pods unless on (tier) share_ratio", "cluster instance tenant tier"),
        ("sum by (tier) (pods) or vector(0)", "tier"),
        ("sum by (tier, tenant) (pods) or sum by (tier) (pods)", "tier"),
        ("sum by (tier) (pods) > 3", "tier"),
        ('label_replace(pods, "who", "$1", "tenant", "(.*)")', "cluster instance tenant tier who"),
        ('label_join(pods, "who", "/", "tenant", "tier")', "cluster instance tenant tier who"),
        ('absent(pods{tier="a", tenant=~"b"})', "tier"),
        ('absent_over_time(pods{tier="a"}[5m])', "tier"),
        ("absent(sum(pods))", ""),
        ("histogram_quantile(0.9, sum by (le, tier) (rate(wait_seconds_bucket[5m])))", "tier"),
        ("time() - oldest_timestamp_seconds", "cluster instance tier"),
        ("scalar(pods)", ""),
        ("sum by (tier) (rate(held_gpu_seconds_total[5m]))[1h:5m]", "tier"),
    ],
)
def test_labels_are_traced_through_the_query(expr: str, labels: str) -> None:
    found = traced(parsed(expr), KNOWN)

    assert not found.problems
    assert " ".join(sorted(found.labels)) == labels


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ('pods{pool="a"}', "pods: no label pool is left there; there are cluster, instance, tenant, tier"),
        ('pods{tier="a" or pool="b"}', "pods: no label pool is left there"),
        ("sum by (pool) (pods)", "sum by (pool): no label pool is left there"),
        ("sum by (tenant) (sum by (tier) (pods))", "sum by (tenant): no label tenant is left there; there are tier"),
        ("sum without (pool) (pods)", "sum without (pool): no label pool is left there"),
        ("pods / on (tier, pool) pods", "on (tier, pool): no label pool is left there"),
        ("pods / on (tenant) sum by (tier) (pods)", "on (tenant): no label tenant is left there; there are tier"),
        ("pods / ignoring (pool) pods", "ignoring (pool): no label pool is left there"),
        ("gpu_up * on (gpu) group_left (tier) gpu_info", "group (tier): no label tier is left there"),
        ("sum by (tier) (pods) / sum by (tier, tenant) (pods)", "only one of them has tenant; say `on (...)`"),
        ("pods and share_ratio", "only one of them has tenant"),
        ('label_replace(pods, "who", "$1", "pool", "(.*)")', "label_replace(): no label pool is left there"),
        ('label_join(pods, "who", "/", "pool")', "label_join(): no label pool is left there"),
        ('sort_by_label(pods, "pool")', "sort_by_label(): no label pool is left there"),
        ("histogram_quantile(0.9, rate(wait_seconds_sum[5m]))", "histogram_quantile(): no label le is left there"),
    ],
)
def test_a_missing_label_in_a_query_is_reported(expr: str, problem: str) -> None:
    assert problem in "\n".join(traced(parsed(expr), KNOWN).problems)


def shown(*boards: dict[str, object], rule: dict[str, object] | None = None) -> str:
    found, unanswered = answered(loaded(*boards, rule=rule))
    assert not unanswered
    return "\n".join(map(str, queries.problems(found)))


def test_correct_labels_have_no_problem() -> None:
    assert shown(board(), rule=rules(alert())) == ""


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            board(panel(target("sum(pods)", legendFormat="{{tier}}"))),
            f'{FILE}: panel "Pods": legend: no label tier is left there; there are none; keep it in the query',
        ),
        (
            board(panel(target("sum(pods)"), target("sum(pods)", refId="B", legendFormat="{{ tier }}"))),
            f'{FILE}: panel "Pods" B: legend: no label tier is left there',
        ),
        (
            board(linked(panel(target("sum(pods)")), "/d/gputally-small?var-tier=${__field.labels.tier}")),
            f'{FILE}: panel "Pods": link "More": no label tier is left there',
        ),
        (
            board(variables=[variable("pool", "label_values(pods, pool)")]),
            f'{FILE}: variable "pool": label_values: no label pool is left there',
        ),
        (
            board(table({"Pods": "sum by (tier) (pods)"}, {"tier": "Tier", "tenant": "Tenant"})),
            f"{FILE}: panel \"Pods\": its column 'Tenant' is empty: no query has the label tenant",
        ),
        (
            board(table({"A": "sum by (tier) (pods)", "B": "sum by (tenant) (pods)"}, {"tier": "T", "tenant": "U"})),
            f'{FILE}: panel "Pods": its queries share none of its keys',
        ),
    ],
)  # fmt: skip
def test_a_displayed_label_that_was_aggregated_away_is_reported_with_its_panel(
    document: dict[str, object], problem: str
) -> None:
    assert problem in shown(document)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"expr": "sum(pods) > 5"}, f'{RULES}: alert "PodsWait": description: no label tier is left there'),
        (
            {
                "annotations": annotations(
                    description='{{ with query "sum(pods) by (pool)" }}{{ . | first | value }}{{ end }}'
                )
            },
            f'{RULES}: alert "PodsWait" description: sum by (pool): no label pool is left there',
        ),
        (
            {"annotations": annotations(description='{{ query "sum(pods) by (tier)" | first | label "tenant" }}')},
            f'{RULES}: alert "PodsWait" description: template: no label tenant is left there',
        ),
        (
            {
                "annotations": annotations(
                    description="{{ printf `pods{pool=%q}` $labels.tier | query | first | value }}"
                )
            },
            f'{RULES}: alert "PodsWait" description: pods: no label pool is left there',
        ),
        (
            {"labels": {"severity": "warning", "who": "{{ $labels.pool }}"}},
            f'{RULES}: alert "PodsWait": label who: no label pool is left there',
        ),
    ],
)
def test_a_label_missing_in_an_alert_is_reported_with_its_text(changes: dict[str, object], problem: str) -> None:
    assert problem in shown(rule=rules({**alert(), **changes}))


def test_recorded_series_have_the_labels_and_dimension_of_their_expression() -> None:
    record = {"record": "tier:held:rate5m", "expr": "sum by (tier) (rate(held_gpu_seconds_total[5m]))"}
    above = {"record": "held:max", "expr": "max by (tier) (tier:held:rate5m)", "labels": {"site": "a"}}

    assert shown(board(panel(target("held:max", legendFormat="{{tier}} {{site}}"))), rule=rules(above, record)) == ""
    assert "no label tenant is left there; there are tier" in shown(
        board(panel(target("tier:held:rate5m", legendFormat="{{tenant}}"))), rule=rules(record)
    )
