"""What the queries of a panel returned."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple, Protocol

from hack.pictures import theme
from hack.pictures.dashboard import Panel, Target
from hack.pictures.fields import Field
from hack.pictures.variables import Values, Window, expand
from hack.prometheus import Answer, QueryRefused, Series

CALCS: Final[Mapping[str, tuple[str, Callable[[Sequence[float]], float]]]] = {
    "lastNotNull": ("Last *", lambda values: values[-1]),
    "mean": ("Mean", fmean),
    "max": ("Max", max),
}
"""How a series becomes one value, with its title in legends."""
_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Source(Protocol):
    """Whoever answers queries. Its calls raise QueryRefused, and OSError when it cannot be reached."""

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        """The value at one moment."""

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        """The values over a time."""


class Frame(NamedTuple):
    """What a target returned, or the `error` that it ended in."""

    target: Target
    series: tuple[Series, ...] = ()
    error: str = ""


class Line(NamedTuple):
    """A series as it is shown: its points without those that are no finite numbers, and its place among all."""

    name: str
    field: Field
    points: tuple[tuple[float, float], ...]
    place: int

    @property
    def values(self) -> list[float]:
        """Without their times."""
        return [value for _, value in self.points]

    @property
    def last(self) -> float:
        """The newest value; not a number when there is none."""
        return self.points[-1][1] if self.points else math.nan

    @property
    def color(self) -> str:
        """Of its newest value."""
        return self.field.color_of(self.last, place=self.place)


class Filled(NamedTuple):
    """A panel with its data."""

    panel: Panel
    frames: tuple[Frame, ...]
    window: Window

    @property
    def errors(self) -> list[str]:
        """Of the queries that failed."""
        return [f"query {frame.target.ref_id}: {frame.error}" for frame in self.frames if frame.error]

    def lines(self) -> list[Line]:
        """The series of all frames, in their order."""
        found = [(frame.target, series) for frame in self.frames for series in frame.series]
        return [self._line(target, series, place) for place, (target, series) in enumerate(found)]

    def _line(self, target: Target, series: Series, place: int) -> Line:
        name = series_name(target.legend_format, series.labels)
        points = tuple(point for point in series.points if math.isfinite(point[1]))
        return Line(name, self.panel.field_config.of(name), points, place)


def series_name(legend: str, labels: Mapping[str, str]) -> str:
    """By the format of the legend, of which `__auto` is all labels."""
    if legend == "__auto":
        return ", ".join(value for _, value in sorted(labels.items()))
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend)


def run(panel: Panel, source: Source, *, window: Window, variables: Values) -> Filled:
    """Ask all that the panel asks. An error is part of what comes back."""
    shown = window.on(theme.panel_width(panel.grid_pos.w))
    return Filled(panel, tuple(_answered(target, source, shown, variables) for target in panel.targets), shown)


def _answered(target: Target, source: Source, window: Window, variables: Values) -> Frame:
    # Grafana, too, starts and ends at multiples of the step.
    start, end = (moment // window.step * window.step for moment in (window.start, window.end))
    try:
        query = expand(target.expr, variables, window=window)
        if target.instant:
            return Frame(target, source.query(query, at=window.end).series)
        return Frame(target, source.query_range(query, start=start, end=end, step=window.step).series)
    except (QueryRefused, OSError, ValueError) as error:
        return Frame(target, error=str(error))
