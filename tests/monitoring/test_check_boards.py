"""Checks that Grafana supports every field, panels are placed correctly, and links have a target."""

from typing import Any

import pytest

from monitoring.check import board as boards
from monitoring.check import navigation, schema
from tests.monitoring.documents import (
    FILE,
    Json,
    board,
    linked,
    loaded,
    overridden,
    override,
    panel,
    table,
    target,
    variable,
)

BY_TIER = {"Pods": "sum by (tier) (pods)"}


def of_boards(*documents: Json) -> list[str]:
    return [str(each) for each in boards.problems(loaded(*documents).dashboards)]


def of_navigation(*documents: Json) -> list[str]:
    return [str(each) for each in navigation.problems(loaded(*documents).dashboards)]


def of_schema(document: Json) -> list[str]:
    return [str(each) for each in schema.problems({FILE: document})]


def test_a_correct_dashboard_has_no_problem() -> None:
    assert of_boards(board()) == of_navigation(board()) == of_schema(board()) == []


def deep(document: Any, path: str, value: object) -> Any:  # noqa: ANN401 - JSON
    """The document with an additional value at a path such as `panels.0.options.new`."""
    first, _, rest = path.partition(".")
    if isinstance(document, list):
        place = int(first)
        return [*document[:place], deep(document[place], rest, value), *document[place + 1 :]]
    return {**document, first: deep(document.get(first, {}), rest, value) if rest else value}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("new", "new"),
        ("panels.0.new", "panels[0].new"),
        ("panels.0.options.new", "panels[0].options.new"),
        ("panels.0.targets.0.new", "panels[0].targets[0].new"),
        ("panels.0.fieldConfig.defaults.custom.new", "panels[0].fieldConfig.defaults.custom.new"),
        ("templating.list.1.new", "templating.list[1].new"),
    ],
)
def test_a_field_unknown_to_grafana_is_reported(path: str, named: str) -> None:
    assert of_schema(deep(board(), path, 1)) == [
        f"{FILE}: {named}: Grafana has no such field there; leave it out, or write it as Grafana does"
    ]


def test_a_document_that_grafanas_models_reject_is_reported() -> None:
    [problem] = of_schema(deep(board(), "panels", [1]))

    assert problem.startswith(f"{FILE}: Grafana's models cannot read it: ")


def placed(number: int, title: str, **place: int) -> Json:
    return panel(id=number, title=title, gridPos={"x": 0, "y": 0, "w": 12, "h": 8, **place})


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (board(uid="other"), "its uid is 'other', so that links miss it; make it 'gputally-small'"),
        (board(panel(type="graph")), "panel \"Pods\": Grafana no longer draws panels of type 'graph'; take one of"),
        (board(placed(1, "A", x=13)), 'panel "A": it lies outside the 24 columns; give it a place on the grid'),
        (board(placed(1, "A", h=0)), 'panel "A": it lies outside the 24 columns'),
        (board(placed(1, "A"), placed(2, "B", x=11)), '"A" and "B" lie on each other; move one'),
        (board(placed(1, "A"), placed(2, "B", y=7)), '"A" and "B" lie on each other; move one'),
        (
            board({**placed(1, "Row", w=24, h=1), "type": "row", "panels": [placed(2, "A"), placed(3, "B")]}),
            'panel "Row": "A" and "B" lie on each other; move one',
        ),
        (board(placed(1, "A"), placed(1, "B", x=12)), "2 panels have the id 1; number them anew"),
        (board(placed(1, "A"), placed(2, "A", x=12)), '2 panels are called "A"; name each after its question'),
        (
            board({**panel(), "fieldConfig": {"defaults": {"unit": "short"}}}),
            'panel "Pods": it is silent without data; set noValue to what that means',
        ),
        (
            board(overridden(table(BY_TIER, {"tier": "Tier"}), override("Pod", unit="short"))),
            "panel \"Pods\": it has settings for a column 'Pod', which it lacks; there are Tier, Pods",
        ),
        (
            board(linked(table(BY_TIER, {"tier": "Tier"}), "/d/gputally-small?var-cluster=${__field.labels.tier}")),
            'panel "Pods": the link "More" takes labels of a series, which cells lack; set it on a column',
        ),
    ],
)
def test_a_panel_problem_is_reported(document: Json, problem: str) -> None:
    assert [each for each in of_boards(document) if each.startswith(f"{FILE}: {problem}")]


def test_adjacent_panels_have_no_problem() -> None:
    assert of_boards(board(placed(1, "A"), placed(2, "B", x=12), placed(3, "C", y=8))) == []


BY_NAME = {"title": "More", "url": '/d/gputally-small1?var-tier=${__data.fields["Name"]}'}
OTHER = board(uid="gputally-small1", variables=[variable("cluster"), variable("tier")])


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            board(linked(panel(), "/d/gputally-other?var-tier=a")),
            'panel "Pods": link "More": there is no dashboard gputally-other; there are gputally-small, gputally-',
        ),
        (
            board(linked(panel(), "/d/gputally-small1?var-tenant=a")),
            'panel "Pods": link "More": gputally-small1 has no variable tenant; there are cluster, datasource, tier',
        ),
        (
            board(linked(panel(), "/d/gputally-small1?${tenant:queryparam}"), variables=[variable("tenant")]),
            'panel "Pods": link "More": gputally-small1 has no variable tenant',
        ),
        (
            board(linked(panel(), "/d/gputally-small1?${tier:queryparam}")),
            'panel "Pods": link "More": there is no variable tier here',
        ),
        (
            board(overridden(table(BY_TIER, {"tier": "Tier"}), override("Tier", links=[BY_NAME]))),
            "panel \"Pods\": link \"More\": there is no column 'Name'",
        ),
        (board(links=[{"title": "All", "url": "/d/gputally-o"}]), 'link "All": there is no dashboard gputally-o'),
        (
            board(panel(target('pods{tier=~"$tier"}'))),
            'panel "Pods": it asks by $tier, which is no variable of the dashboard; declare it',
        ),
        (board(variables=[variable("cluster"), variable("tier")]), 'variable "tier": no query asks by $tier; use'),
        (
            board(variables=[variable("cluster", "values(pods)")]),
            "variable \"cluster\": 'values(pods)' is not understood; write label_values(series, label)",
        ),
    ],
)  # fmt: skip
def test_a_broken_link_or_variable_is_reported(document: Json, problem: str) -> None:
    assert [each for each in of_navigation(document, OTHER) if each.startswith(f"{FILE}: {problem}")]


@pytest.mark.parametrize(
    "url",
    [
        "/d/gputally-small1?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}&var-tier=${__field.labels.tier}",
        "/d/gputally-small1/title?var-tier=a",
        "https://example.com/",
    ],
)
def test_a_valid_link_has_no_problem(url: str) -> None:
    assert [each for each in of_navigation(board(linked(panel(), url)), OTHER) if "link" in each] == []


def test_a_variable_may_be_used_only_by_another_variable() -> None:
    tier = variable("tier", 'label_values(pods{cluster=~"$cluster"}, tier)')
    narrowed = panel(target('pods{tier=~"$tier"}'))

    assert of_navigation(board(narrowed, variables=[variable("cluster"), tier])) == []
