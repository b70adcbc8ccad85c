"""Whether a dashboard is found under its address, is drawn by panels that last, and has each panel in its place."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Final

from monitoring.check.asked import heads
from monitoring.check.grafana import Dashboard, Panel, Place
from monitoring.check.problem import Problem
from monitoring.uid import uid

_KINDS: Final = (
    *("barchart", "bargauge", "gauge", "heatmap", "histogram", "piechart", "row", "stat"),
    *("state-timeline", "status-history", "table", "text", "timeseries", "xychart"),
)
"""Panels that Grafana 11 and later draw without plugins of old."""
_COLUMNS: Final = 24


def problems(dashboards: Mapping[str, Dashboard]) -> Iterator[Problem]:
    """Of all dashboards."""
    for file, dashboard in dashboards.items():
        expected = uid(Path(file).stem)
        if dashboard.uid != expected:
            yield Problem(file, "", f"its uid is {dashboard.uid!r}, so that links miss it; make it {expected!r}")
        panels = list(dashboard.all_panels)
        for panel in panels:
            yield from (Problem(file, panel.place, text) for text in _of_panel(panel))
        yield from (Problem(file, "", text) for text in (*_repeated(panels), *_overlapping(dashboard.panels)))
        for row in dashboard.panels:
            yield from (Problem(file, row.place, text) for text in _overlapping(row.panels))


def _of_panel(panel: Panel) -> Iterator[str]:
    place = panel.grid_pos
    if panel.type not in _KINDS:
        yield f"Grafana no longer draws panels of type {panel.type!r}; take one of {', '.join(_KINDS)}"
    if place.w <= 0 or place.h <= 0 or place.x < 0 or place.y < 0 or place.x + place.w > _COLUMNS:
        yield f"it lies outside the {_COLUMNS} columns; give it a place on the grid"
    if panel.is_picture and not panel.field_config.defaults.no_value.strip():
        yield "it is silent without data; set noValue to what that means"
    if panel.type == "table":
        yield from _columns(panel)


def _columns(panel: Panel) -> Iterator[str]:
    found = heads(panel)
    for override in panel.field_config.overrides:
        name = override.matcher.options
        if override.matcher.id == "byName" and name not in {*found.values(), *found}:
            yield f"it has settings for a column {name!r}, which it lacks; there are {', '.join(found.values())}"
    for link in panel.field_config.defaults.links:
        if "__field.labels" in link.url:
            yield f'the link "{link.title}" takes labels of a series, which cells lack; set it on a column'


def _repeated(panels: Iterable[Panel]) -> Iterator[str]:
    panels = list(panels)
    for number, times in Counter(panel.id for panel in panels).items():
        if times > 1:
            yield f"{times} panels have the id {number}; number them anew"
    for title, times in Counter(panel.title for panel in panels).items():
        if times > 1:
            yield f'{times} panels are called "{title}"; name each after its question'


def _overlapping(panels: Iterable[Panel]) -> Iterator[str]:
    for first, second in combinations(panels, 2):
        if _overlap(first.grid_pos, second.grid_pos):
            yield f'"{first.title}" and "{second.title}" lie on each other; move one'


def _overlap(first: Place, second: Place) -> bool:
    beside = first.x + first.w <= second.x or second.x + second.w <= first.x
    below = first.y + first.h <= second.y or second.y + second.h <= first.y
    return not (beside or below)
