"""A dashboard as its file declares it, and as Grafana reads it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import grafanalib.core as grafana
from attr import evolve
from grafanalib._gen import DashboardEncoder
from msgspec import Struct

from monitoring.annotation import Annotation
from monitoring.config import Config
from monitoring.panel import DATASOURCE
from monitoring.uid import uid

SCHEMA: Final = 41
"""Of Grafana 11.6 and 12; older ones from 10 on read it too."""
TAG: Final = "gputally"
_WIDTH: Final = 24
_REFRESH: Final = {"24h": "1m"}
_SLOW_REFRESH: Final = "15m"
"""Of boards that show more than a day: their queries are heavy, and a minute changes nothing."""
_TERM: Final = re.compile(r"<([A-Za-z]+)\.([a-z_]+)>")
_ON_TIME_CHANGE: Final = 2
"""When a variable's values are asked for again: a tenant of last month is none of today."""


class Variable(Struct, frozen=True):
    """A choice of values of the label `name`, several or all, that the series `of` has."""

    name: str
    title: str
    of: str

    def template(self) -> Any:  # noqa: ANN401 - grafanalib has no types
        """What lacks the label, such as `cluster` where there is but one, matches All."""
        return grafana.Template(
            name=self.name,
            label=self.title,
            query=f"label_values({self.of}, {self.name})",
            dataSource=DATASOURCE,
            refresh=_ON_TIME_CHANGE,
            includeAll=True,
            allValue=".+" if self.name == "instance" else ".*",
            multi=True,
        )


class Constant(Struct, frozen=True):
    """A choice of one of `values`, of which `value` is chosen at first."""

    name: str
    title: str
    value: str
    values: tuple[str, ...]

    def template(self) -> Any:  # noqa: ANN401 - grafanalib has no types
        """A list that asks nothing of Prometheus."""
        return grafana.Template(
            name=self.name, label=self.title, query=",".join(self.values), type="custom", default=self.value
        )


class Row(Struct, frozen=True):
    """Panels of one subject below a heading, placed from left to right in the order given."""

    title: str
    panels: Sequence[Any]


class Board(Struct, frozen=True, kw_only=True):
    """A dashboard: what it is for, the reader's choices, and its rows. `span` is the time shown at first."""

    name: str
    title: str
    description: str
    variables: Sequence[Variable | Constant]
    rows: Sequence[Row]
    span: str = "24h"
    annotations: Sequence[Annotation] = ()


def rendered(board: Board, config: Config) -> str:
    """The JSON of a dashboard: the same text for the same board.

    `<ALERT.TERM>`, `<objective.TERM>` and `<aggregator.url>` in it stand for what the configuration says.
    Raises: ConfigInvalid.
    """
    dashboard = grafana.Dashboard(
        title=f"gputally / {board.title}",
        uid=uid(board.name),
        description=board.description,
        tags=[TAG],
        editable=False,
        schemaVersion=SCHEMA,
        graphTooltip=grafana.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        refresh=_REFRESH.get(board.span, _SLOW_REFRESH),
        time=grafana.Time(f"now-{board.span}", "now"),
        timezone="browser",
        templating=grafana.Templating(list=[_datasource(), *(each.template() for each in board.variables)]),
        links=[_siblings()],
        annotations=grafana.Annotations(list=[each.json() for each in board.annotations]),
        panels=list(_placed(board)),
    ).auto_panel_ids()
    document = json.loads(json.dumps(dashboard.to_json_data(), cls=DashboardEncoder))
    return json.dumps(_configured(_modern(document), config), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _datasource() -> Any:  # noqa: ANN401 - grafanalib has no types
    return grafana.Template(name="datasource", label="Data source", query="prometheus", type="datasource")


def _siblings() -> Any:  # noqa: ANN401 - grafanalib has no types
    return grafana.DashboardLink(
        title="gputally", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True, icon="external link"
    )


def _placed(board: Board) -> Iterator[Any]:
    top = 0
    for row in board.rows:
        yield grafana.RowPanel(title=row.title, gridPos=grafana.GridPos(h=1, w=_WIDTH, x=0, y=top))
        top += 1
        left = height = 0
        for panel in row.panels:
            place = panel.gridPos
            if left + place.w > _WIDTH:
                top, left, height = top + height, 0, 0
            described = panel.description + _unfiltered(panel, board.variables)
            yield evolve(panel, gridPos=evolve(place, x=left, y=top), description=described)
            left, height = left + place.w, max(height, place.h)
        top += height


def _unfiltered(panel: Any, variables: Sequence[Variable | Constant]) -> str:  # noqa: ANN401 - grafanalib has no types
    """Names the filters that a query of the panel ignores; otherwise readers would take its total for theirs."""
    filters = [each for each in variables if isinstance(each, Variable)]
    ignored = [each.title for each in filters if any(f"${each.name}" not in query.expr for query in panel.targets)]
    return f" Ignores the filters: {', '.join(ignored)}." if ignored else ""


def _configured(found: Any, config: Config) -> Any:  # noqa: ANN401 - JSON
    """A text that is nothing but a term becomes its value, a number."""
    if isinstance(found, dict):
        return {name: _configured(value, config) for name, value in found.items()}
    if isinstance(found, list):
        return [_configured(value, config) for value in found]
    if not isinstance(found, str):
        return found
    if whole := _TERM.fullmatch(found):
        return config.term(whole[1], whole[2])
    return _TERM.sub(lambda term: f"{config.term(term[1], term[2])}", found)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DASHBOARD: Final = _words("""
    annotations description editable graphTooltip links panels refresh schemaVersion tags templating time timezone
    title uid version
""")
_PANEL: Final = _words("""
    collapsed datasource description fieldConfig gridPos id interval links options panels targets title
    transformations type
""")
_ROW: Final = _words("collapsed gridPos id panels title type")
_PAST_OPTIONS: Final = _words("fieldOptions showThresholdLabels showThresholdMarkers")
_TARGET: Final = _words("datasource expr format instant legendFormat range refId")
_VARIABLE: Final = _words("allValue datasource hide includeAll label multi name options query refresh regex sort type")
_ALL: Final = {"selected": True, "text": ["All"], "value": ["$__all"]}


def _modern(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the fields of Grafana's past that grafanalib still writes."""
    variables = [_modern_variable(each) for each in document["templating"]["list"]]
    panels = [_modern_panel(each) for each in document["panels"]]
    return _only(document, _DASHBOARD) | {"templating": {"list": variables}, "panels": panels}


def _modern_variable(variable: Mapping[str, Any]) -> Mapping[str, Any]:
    current = {"current": _ALL} if variable["includeAll"] else {}
    if variable["type"] == "custom":
        current = {"current": variable["current"]}
    return _only(variable, _VARIABLE) | current


def _modern_panel(panel: Mapping[str, Any]) -> Mapping[str, Any]:
    if panel["type"] == "row":
        return _only(panel, _ROW)
    targets = [_only(each, _TARGET) | {"range": not each["instant"]} for each in panel["targets"]]
    field = panel["fieldConfig"]
    custom = _stated(field["defaults"].get("custom", {}))
    defaults = _stated(field["defaults"]) | {"custom": custom}
    options = {name: value for name, value in panel["options"].items() if name not in _PAST_OPTIONS}
    return _only(panel, _PANEL) | {
        "fieldConfig": field | {"defaults": defaults},
        "options": options,
        "targets": targets,
    }


def _only(document: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in _stated(document).items() if name in fields}


def _stated(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}
