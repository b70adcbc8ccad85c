"""Runs the queries of a panel and holds their results."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple, Protocol

from hack.pictures import theme
from hack.pictures.dashboard import Panel, Target
from hack.pictures.fields import Field
from hack.pictures.variables import Values, Window, expand, seconds
from hack.prometheus import Answer, QueryRefused, Series

CALCS: Final[Mapping[str, tuple[str, Callable[[Sequence[float]], float]]]] = {
    "lastNotNull": ("Last *", lambda values: values[-1]),
    "mean": ("Mean", fmean),
    "max": ("Max", max),
    "sum": ("Total", sum),
}
"""Reducers of a series to one value, with their titles in legends."""
_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Source(Protocol):
    """A query API. Its methods raise QueryRefused, or OSError if the server is unreachable."""

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        """Run an instant query."""

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        """Run a range query."""


class Frame(NamedTuple):
    """The series that a target returned, or its `error`."""

    target: Target
    series: tuple[Series, ...] = ()
    error: str = ""


class Line(NamedTuple):
    """A series to draw: its finite points, and its index among all series."""

    name: str
    field: Field
    points: tuple[tuple[float, float], ...]
    place: int

    @property
    def values(self) -> list[float]:
        """The values without times."""
        return [value for _, value in self.points]

    @property
    def last(self) -> float:
        """The newest value, or NaN."""
        return self.points[-1][1] if self.points else math.nan

    @property
    def color(self) -> str:
        """The colour of the newest value."""
        return self.field.color_of(self.last, place=self.place)


class Filled(NamedTuple):
    """A panel with its data."""

    panel: Panel
    frames: tuple[Frame, ...]
    window: Window

    @property
    def errors(self) -> list[str]:
        """The errors of failed queries."""
        return [f"query {frame.target.ref_id}: {frame.error}" for frame in self.frames if frame.error]

    def lines(self) -> list[Line]:
        """The series of all frames, in order."""
        found = [(frame.target, series) for frame in self.frames for series in frame.series]
        return [self._line(target, series, place) for place, (target, series) in enumerate(found)]

    def _line(self, target: Target, series: Series, place: int) -> Line:
        name = series_name(target.legend_format, series.labels)
        points = tuple(point for point in series.points if math.isfinite(point[1]))
        return Line(name, self.panel.field_config.of(name), points, place)


def series_name(legend: str, labels: Mapping[str, str]) -> str:
    """The series name by the legend format; `__auto` joins all labels."""
    if legend == "__auto":
        return ", ".join(value for _, value in sorted(labels.items()))
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend)


def run(panel: Panel, source: Source, *, window: Window, variables: Values) -> Filled:
    """Run all queries of the panel. Errors are part of the result."""
    shown = window.on(theme.panel_width(panel.grid_pos.w), least=seconds(panel.interval) if panel.interval else 0)
    return Filled(panel, tuple(_query(target, source, shown, variables) for target in panel.targets), shown)


def _query(target: Target, source: Source, window: Window, variables: Values) -> Frame:
    # Like Grafana, align start and end to multiples of the step.
    start, end = (moment // window.step * window.step for moment in (window.start, window.end))
    try:
        query = expand(target.expr, variables, window=window)
        if target.instant:
            return Frame(target, source.query(query, at=window.end).series)
        return Frame(target, source.query_range(query, start=start, end=end, step=window.step).series)
    except (QueryRefused, OSError, ValueError) as error:
        return Frame(target, error=str(error))
