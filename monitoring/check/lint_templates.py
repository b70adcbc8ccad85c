"""The rules of Grafana's dashboard-linter for a dashboard and its variables.

Source: grafana/dashboard-linter docs/index.md and docs/rules.
"""

from collections.abc import Iterator
from typing import Final

from monitoring.check.asked import series_of
from monitoring.check.grafana import Dashboard, Variable, uid
from monitoring.check.syntax import NotPromql, parsed

_ON_TIME_CHANGE: Final = 2
TEMPLATED: Final = frozenset({"$datasource", "${datasource}"})


def template_datasource_rule(dashboard: Dashboard) -> Iterator[str]:
    """One choice of data source, called so."""
    sources = [each for each in dashboard.variables if each.type == "datasource"]
    if len(sources) != 1:
        yield f"it has {len(sources)} variables for a data source; give it one"
    for source in sources:
        if source.name not in ("datasource", f"{source.text}_datasource"):
            yield f"the variable for the data source is called {source.name}; call it datasource"
        if source.label not in ("Data source", f"{source.text.title()} data source"):
            yield f"the variable for the data source is labelled {source.label!r}; label it 'Data source'"


def template_job_rule(dashboard: Dashboard) -> Iterator[str]:
    """A choice of jobs."""
    yield from _choice(dashboard, "job")


def template_instance_rule(dashboard: Dashboard) -> Iterator[str]:
    """A choice of instances."""
    yield from _choice(dashboard, "instance")


def _choice(dashboard: Dashboard, name: str) -> Iterator[str]:
    found = next((each for each in dashboard.variables if each.name == name), None)
    if found is None:
        yield f"it has no variable {name}; add it"
        return
    wanted = (
        (uid(found.datasource) in TEMPLATED, "asks a data source of its own; let it ask $datasource"),
        (found.type == "query", f"is of type {found.type}; let it be a query"),
        (found.label == name.title(), f"is labelled {found.label!r}; label it {name.title()!r}"),
        (found.multi, "takes one value only; let it take several"),
        (found.all_value == ".+", f"means {found.all_value!r} by All; write '.+'"),
    )
    yield from (f"the variable {name} {text}" for holds, text in wanted if not holds)


def template_label_promql_rule(dashboard: Dashboard) -> Iterator[str]:
    """Variables ask in PromQL."""
    for each in _queried(dashboard):
        found = series_of(each)
        if found is None:
            yield f"the variable {each.name} asks {each.text!r}; use label_values(series, label) or query_result(query)"
            continue
        try:
            parsed(found[0])
        except NotPromql as error:
            yield f"the variable {each.name} asks no PromQL: {error}; mend {found[0]!r}"


def template_on_time_change_reload_rule(dashboard: Dashboard) -> Iterator[str]:
    """Variables ask again when another time is shown."""
    for each in _queried(dashboard):
        if each.refresh != _ON_TIME_CHANGE:
            yield f"the variable {each.name} does not ask again for another time; set refresh to {_ON_TIME_CHANGE}"


def uneditable_dashboard_rule(dashboard: Dashboard) -> Iterator[str]:
    """What is generated is not edited by hand."""
    if dashboard.editable:
        yield "it can be edited, and what is generated next would undo that; set editable to false"


def _queried(dashboard: Dashboard) -> Iterator[Variable]:
    return (each for each in dashboard.variables if each.type == "query")
