"""Checks for invalid queries, unused metrics, and unused entries of allow-lists."""

import pytest
from msgspec.structs import replace

from gputally.catalog.metric import MetricType
from monitoring.allowed import Foreign
from monitoring.check import allowances, coverage
from tests.monitoring.documents import (
    FILE,
    RULES,
    alert,
    annotations,
    answered,
    board,
    loaded,
    metric,
    panel,
    rules,
    target,
    variable,
)


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("sum(", "no PromQL: unclosed left parenthesis; mend 'sum('"),
        ("rate(pods)", "no PromQL: expected type matrix in call to function 'rate', got vector"),
        ("rate(sum(pods)[5m])", "no PromQL: ranges only allowed for vector selectors"),
        ("", "no PromQL: "),
        ("podz", "podz is no metric of the catalog; correct the name, or give a reason in monitoring/allowed.py"),
        ("wait_seconds", "wait_seconds is no metric of the catalog"),
        ('{__name__=~"po.*"}', "names no metric; write its name, so that a search finds it"),
        ('{tier="a"}', "names no metric"),
    ],
)
def test_an_invalid_query_is_reported(expr: str, problem: str) -> None:
    [found] = answered(loaded(board(panel(target(expr)))))[1]
    [in_alert] = answered(loaded(rule=rules(alert(expr))))[1]

    assert str(found).startswith(f'{FILE}: panel "Pods": ')
    assert str(in_alert).startswith(f'{RULES}: alert "PodsWait": ')
    assert problem in str(found)
    assert problem in str(in_alert)


@pytest.mark.parametrize(
    "text",
    ['{{ query "podz" | first | value }}', "{{ with query `podz` }}{{ end }}", "{{ printf `podz` | query }}"],
)
def test_queries_in_annotations_are_checked(text: str) -> None:
    [problem] = answered(loaded(rule=rules(alert(annotations=annotations(description=text)))))[1]

    assert str(problem).startswith(f'{RULES}: alert "PodsWait" description: podz is no metric')


def test_queries_in_variables_are_checked() -> None:
    [problem] = answered(loaded(board(variables=[variable("tier", "label_values(podz, tier)")])))[1]

    assert str(problem).startswith(f'{FILE}: variable "tier": podz is no metric')


@pytest.mark.parametrize(
    "expr",
    [
        "sum(rate(held_gpu_seconds_total[$__rate_interval]))",
        "increase(held_gpu_seconds_total[$__range]) / $__range_s",
        "max_over_time(pods[$__interval])",
        'pods{tier=~"$tier", tenant=~"${tenant:regex}", cluster="[[cluster]]"}',
        "pods > $least",
    ],
)
def test_variables_in_queries_are_replaced_by_values(expr: str) -> None:
    least = variable("least", "1,2", type="custom", current={"value": "2"})

    found, problems = answered(loaded(board(panel(target(expr)), variables=[least])))

    assert not problems
    assert [answer.asked.panel for answer in found if answer.asked.panel]


def test_a_rule_that_reads_its_own_series_is_reported() -> None:
    [problem] = answered(loaded(rule=rules({"record": "a:b", "expr": "sum(a:b)"})))[1]

    assert str(problem).startswith(f'{RULES}: recorded "a:b": a:b is no metric')


def test_an_unused_metric_is_reported() -> None:
    pods, waits = metric("pods", MetricType.GAUGE, "tier"), metric("wait_seconds", MetricType.HISTOGRAM, "tier")
    found, _ = answered(loaded(board(panel(target("rate(wait_seconds_count[5m])")), variables=[])))

    assert list(map(str, coverage.problems([pods, waits], found))) == [
        "exporter/gputally/catalog: pods: no dashboard or rule reads it; draw it, or declare it reference_only=True"
    ]
    assert list(coverage.problems([replace(pods, reference_only=True), waits], found)) == []
    assert list(map(str, coverage.problems([replace(waits, reference_only=True)], found))) == [
        "exporter/gputally/catalog: wait_seconds: reference_only, but it is read; take reference_only out"
    ]


def test_unused_allow_list_entries_are_reported() -> None:
    foreign = {name: Foreign(dimension="count", reason="why") for name in ("pods", "up")}
    found, _ = answered(loaded(board(panel(target("sum by (instance) (pods)")), variables=[])))

    assert list(map(str, allowances.problems(found, foreign=foreign, target=("instance", "job")))) == [
        "monitoring/allowed.py: FOREIGN up: no query reads it; take it out",
        "monitoring/allowed.py: TARGET_LABELS job: no query asks for it; take it out",
    ]


@pytest.mark.parametrize(
    "document",
    [
        board(panel(target('pods{cluster="a"}')), variables=[]),
        board(panel(target("sum by (cluster) (pods)")), variables=[]),
        board(panel(target("pods / on (cluster, tier) pods")), variables=[]),
        board(panel(target("gpu_up * on (gpu) group_left (cluster) gpu_info")), variables=[]),
        board(panel(target("pods", legendFormat="{{cluster}}")), variables=[]),
        board(panel(target("pods")), variables=[variable("cluster")]),
    ],
)
def test_a_target_label_counts_as_used_in_every_place(document: dict[str, object]) -> None:
    found, _ = answered(loaded(document))

    assert list(allowances.problems(found, foreign={}, target=("cluster",))) == []
