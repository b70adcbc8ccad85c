"""The rules of Grafana's dashboard-linter, and their exclusions."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from monitoring.check import lint
from monitoring.check.violation import Entry, Exclusion, Exclusions, Violation, remaining
from tests.monitoring.documents import (
    DATASOURCE,
    FILE,
    Json,
    board,
    loaded,
    overridden,
    override,
    panel,
    target,
    variable,
)

JOB_AND_INSTANCE = [variable("job"), variable("instance"), variable("cluster")]
NARROWED = 'pods{job=~"$job", instance=~"$instance"}'
MORE = 'job=~"$job", instance=~"$instance"'


def good(*panels: Json, variables: Sequence[Json] = JOB_AND_INSTANCE, **changes: object) -> Json:
    """A dashboard that passes all rules."""
    return board(*(panels or [panel(target(NARROWED))]), variables=variables, **changes)


def found(document: Json) -> list[tuple[str, str]]:
    [dashboard] = loaded(document).dashboards.values()
    return [(each.rule, each.text) for each in lint.violations(dashboard)]


def templating(*variables: Json) -> Json:
    return {"templating": {"list": list(variables)}}


def test_a_correct_dashboard_violates_no_rule() -> None:
    assert found(good()) == []


@pytest.mark.parametrize(
    ("rule", "document", "text"),
    [
        ("template-datasource-rule", good(**templating(*JOB_AND_INSTANCE)), "it has 0 variables for a data source"),
        (
            "template-datasource-rule",
            good(**templating(DATASOURCE, DATASOURCE, *JOB_AND_INSTANCE)),
            "it has 2 variables",
        ),
        (
            "template-datasource-rule",
            good(**templating({**DATASOURCE, "name": "source"}, *JOB_AND_INSTANCE)),
            "the variable for the data source is called source; call it datasource",
        ),
        (
            "template-datasource-rule",
            good(**templating({**DATASOURCE, "label": "Source"}, *JOB_AND_INSTANCE)),
            "the variable for the data source is labelled 'Source'; label it 'Data source'",
        ),
        ("template-job-rule", good(variables=JOB_AND_INSTANCE[1:]), "it has no variable job; add it"),
        (
            "template-job-rule",
            good(variables=[variable("job", datasource={"uid": "abc"}), *JOB_AND_INSTANCE[1:]]),
            "the variable job asks a data source of its own; let it ask $datasource",
        ),
        (
            "template-job-rule",
            good(variables=[variable("job", type="custom"), *JOB_AND_INSTANCE[1:]]),
            "the variable job is of type custom; let it be a query",
        ),
        (
            "template-job-rule",
            good(variables=[variable("job", label="Work"), *JOB_AND_INSTANCE[1:]]),
            "the variable job is labelled 'Work'; label it 'Job'",
        ),
        (
            "template-job-rule",
            good(variables=[variable("job", multi=False), *JOB_AND_INSTANCE[1:]]),
            "the variable job takes one value only; let it take several",
        ),
        (
            "template-job-rule",
            good(variables=[variable("job", allValue=".*"), *JOB_AND_INSTANCE[1:]]),
            "the variable job means '.*' by All; write '.+'",
        ),
        ("template-instance-rule", good(variables=JOB_AND_INSTANCE[:1]), "it has no variable instance; add it"),
        (
            "template-label-promql-rule",
            good(variables=[variable("job", "values_of(pods, job)"), *JOB_AND_INSTANCE[1:]]),
            "the variable job asks 'values_of(pods, job)'; use label_values(series, label) or query_result(query)",
        ),
        (
            "template-label-promql-rule",
            good(variables=[variable("job", "label_values(pods{, job)"), *JOB_AND_INSTANCE[1:]]),
            "the variable job asks no PromQL: ",
        ),
        (
            "template-on-time-change-reload-rule",
            good(variables=[variable("job", refresh=1), *JOB_AND_INSTANCE[1:]]),
            "the variable job does not ask again for another time; set refresh to 2",
        ),
        ("uneditable-dashboard-rule", good(editable=True), "it can be edited"),
        (
            "panel-datasource-rule",
            good(panel(target(NARROWED), datasource={"type": "prometheus", "uid": "abc"})),
            "it asks the data source 'abc'; let it ask ${datasource}",
        ),
        ("panel-datasource-rule", good(panel(target(NARROWED, datasource="abc"))), "it asks the data source 'abc'"),
        ("panel-title-description-rule", good(panel(target(NARROWED), title="")), "panel 1 has no title"),
        ("panel-title-description-rule", good(panel(target(NARROWED), description=" ")), "it has no description"),
        ("panel-units-rule", good(panel(target(NARROWED), unit="")), "its unit '' is not in Grafana's list"),
        ("panel-units-rule", good(panel(target(NARROWED), unit="suffix: GPUs")), "its unit 'suffix: GPUs' is not in"),
        (
            "panel-units-rule",
            good(overridden(panel(target(NARROWED)), override("Pods", unit="pod"))),
            "its unit 'pod' is not in Grafana's list, as far as grafana_units.py has it; choose one that is",
        ),
        ("panel-no-targets-rule", good({**panel(), "targets": []}), "it asks nothing"),
        (
            "target-logql-rule",
            good(panel(target(NARROWED, datasource={"type": "loki", "uid": "$datasource"}))),
            "it asks for logs",
        ),
        (
            "target-logql-auto-rule",
            good(panel(target(f"rate({NARROWED}[5m])", datasource={"type": "loki", "uid": "$datasource"}))),
            "its range of logs is fixed; write [$__auto]",
        ),
        ("target-promql-rule", good(panel(target("sum("))), "no PromQL: unclosed left parenthesis; mend 'sum('"),
        (
            "target-rate-interval-rule",
            good(panel(target(f"rate(held_gpu_seconds_total{{{MORE}}}[5m])"))),
            "rate() over a time of its own; write [$__rate_interval]",
        ),
        (
            "target-rate-interval-rule",
            good(panel(target(f"rate(held_gpu_seconds_total{{{MORE}}}[$__range])"))),
            "rate() over a time of its own",
        ),
        (
            "target-rate-interval-rule",
            good(panel(target(f"increase(held_gpu_seconds_total{{{MORE}}}[1h])"))),
            "increase() over a time of its own",
        ),
        (
            "target-job-rule",
            good(panel(target('pods{instance=~"$instance"}'))),
            "pods is not narrowed by job; add job=~",
        ),
        ("target-job-rule", good(panel(target('pods{job="$job", instance=~"$instance"}'))), "not narrowed by job"),
        ("target-instance-rule", good(panel(target('pods{job=~"$job"}'))), "pods is not narrowed by instance"),
        (
            "target-counter-agg-rule",
            good(panel(target(f"sum(held_gpu_seconds_total{{{MORE}}})"))),
            "held_gpu_seconds_total is not inside rate(), irate() or increase(); put it there",
        ),
        (
            "target-counter-agg-rule",
            good(panel(target(f"max_over_time(held_gpu_seconds_total{{{MORE}}}[$__range])"))),
            "held_gpu_seconds_total is not inside",
        ),
    ],
)
def test_each_rule_reports_its_violations(rule: str, document: Json, text: str) -> None:
    assert [name for name, what in found(document) if text in what] == [rule]


@pytest.mark.parametrize(
    "document",
    [
        good(panel(target(f"rate(held_gpu_seconds_total{{{MORE}}}[$__rate_interval])"))),
        good(panel(target(f"increase(held_gpu_seconds_total{{{MORE}}}[$__range])"))),
        good(panel(target(f"max_over_time(pods{{{MORE}}}[1h])"))),
        good({"id": 1, "type": "row", "title": "", "panels": []}),
        good({"id": 1, "type": "text", "title": ""}),
        good({**panel(target(NARROWED)), "fieldConfig": {"defaults": {"mappings": [{"type": "value"}]}}}),
    ],
)
def test_rules_ignore_documents_they_do_not_apply_to(document: Json) -> None:
    assert found(document) == []


def test_panels_in_collapsed_rows_are_checked() -> None:
    row = {"id": 1, "type": "row", "title": "Row", "panels": [panel(target(NARROWED), description="")]}

    assert [rule for rule, _ in found(good(row))] == ["panel-title-description-rule"]


VIOLATION = Violation("panel-units-rule", "Small", "it is wrong", "Pods", 0)


@pytest.mark.parametrize(
    ("exclusion", "left"),
    [
        (None, [VIOLATION]),
        (Exclusion(reason="why"), []),
        (Exclusion(entries=[Entry(dashboard="Small", reason="why")]), []),
        (Exclusion(reason="why", entries=[Entry(dashboard="Small", panel="Pods", target_index=0)]), []),
    ],
)
def test_an_exclusion_applies_to_what_it_names(exclusion: Exclusion | None, left: list[Violation]) -> None:
    exclusions = Exclusions({"panel-units-rule": exclusion} if exclusion else {})

    assert list(remaining(".lint", [VIOLATION], exclusions)) == left


@pytest.mark.parametrize(
    ("exclusion", "problem"),
    [
        (None, ".lint: panel-units-rule: excluded without a reason; write it"),
        (Exclusion(), ".lint: panel-units-rule: excluded without a reason; write it"),
        (
            Exclusion(entries=[Entry(dashboard="Small", panel="Pods")]),
            '.lint: panel-units-rule Small "Pods": excluded without a reason; write it',
        ),
    ],
)
def test_an_exclusion_needs_a_reason(exclusion: Exclusion | None, problem: str) -> None:
    assert [str(each) for each in remaining(".lint", [VIOLATION], Exclusions({"panel-units-rule": exclusion}))] == [
        problem
    ]


@pytest.mark.parametrize(
    ("rule", "entry"),
    [
        ("panel-units-rule", Entry(dashboard="Other")),
        ("panel-units-rule", Entry(panel="Nodes")),
        ("panel-units-rule", Entry(target_index=1)),
        ("target-job-rule", Entry(dashboard="Small")),
    ],
)
def test_an_unused_exclusion_is_reported(rule: str, entry: Entry) -> None:
    problem, left = remaining(".lint", [VIOLATION], Exclusions({rule: Exclusion("why", [entry])}))

    assert str(problem).endswith(": excludes nothing; take it out")
    assert left == VIOLATION


def test_exclusions_are_read_in_the_format_of_the_linter(tmp_path: Path) -> None:
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards/.lint").write_text(
        "exclusions:\n"
        "  panel-units-rule:\n"
        "    reason: why\n"
        "    entries:\n"
        "    - dashboard: Small\n"
        "      panel: Pods\n"
        "      targetIdx: 0\n"
    )

    assert lint.read(tmp_path / lint.FILE) == Exclusions(
        {"panel-units-rule": Exclusion("why", [Entry("Small", "Pods", 0)])}
    )


def test_problems_name_the_file_the_panel_and_the_rule(tmp_path: Path) -> None:
    document = loaded(good(panel(target(NARROWED), description="")), root=tmp_path)

    assert list(map(str, lint.problems(document))) == [
        f'{FILE}: panel "Pods": it has no description; say how to read it (panel-title-description-rule)'
    ]


def test_an_unreadable_exclusions_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards/.lint").write_text("warnings: {}\n")

    [problem] = lint.problems(loaded(good(), root=tmp_path))

    assert str(problem).startswith("dashboards/.lint: cannot be read: Object contains unknown field `warnings`")
