"""What the queries of a panel returned."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from hack.pictures import theme
from hack.pictures.calcs import calc
from hack.pictures.dashboard import Dashboard, Panel, Target
from hack.pictures.fields import Field
from hack.pictures.overrides import field_of
from hack.pictures.variables import Values, Window, expand
from hack.prometheus import Answer, QueryRefused, Series


class Source(Protocol):
    """Whoever answers queries. Its calls raise QueryRefused, and OSError when it cannot be reached."""

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        """The value at one moment."""

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        """The values over a time."""


class Frame(NamedTuple):
    """What a target returned, or the `error` that it ended in; `query` is what was asked for."""

    target: Target
    query: str
    window: Window
    series: tuple[Series, ...] = ()
    error: str = ""


class Line(NamedTuple):
    """A series as it is shown: its points without those that are no finite numbers, and its place among all."""

    name: str
    field: Field
    points: tuple[tuple[float, float], ...]
    place: int
    step: float

    @property
    def values(self) -> list[float]:
        """Without their times."""
        return [value for _, value in self.points]

    def reduced(self, calc_name: str) -> float:
        """One value of them all; not a number when there is none."""
        return calc(calc_name).of(self.values) if self.points else math.nan

    @property
    def color(self) -> str:
        """Of the whole series."""
        return self.field.color_of(self.reduced("last"), index=self.place, among=self.values)


class Filled(NamedTuple):
    """A panel with its data."""

    panel: Panel
    frames: tuple[Frame, ...]
    window: Window

    @property
    def errors(self) -> list[str]:
        """The queries that failed, each with its reason."""
        return [f"{frame.query}: {frame.error}" for frame in self.frames if frame.error]

    @property
    def has_data(self) -> bool:
        """Whether any query returned a finite number."""
        points = (point for frame in self.frames for series in frame.series for point in series.points)
        return any(math.isfinite(value) for _, value in points)

    def lines(self) -> list[Line]:
        """The series of all frames, in their order, without those that are hidden."""
        named = [(frame, series, self._name(frame, series)) for frame in self.frames for series in frame.series]
        found = [self._line(*each, place=place) for place, each in enumerate(named)]
        return [line for line in found if not line.field.custom.hide_from.viz]

    def _line(self, frame: Frame, series: Series, name: str, *, place: int) -> Line:
        field = field_of(self.panel, name, ref_id=frame.target.ref_id)
        shown = _with_labels(field.display_name, series.labels) or name
        points = tuple(point for point in series.points if math.isfinite(point[1]))
        return Line(shown, field, points, place, frame.window.step)

    def _name(self, frame: Frame, series: Series) -> str:
        return series_name(frame.target.legend_format, series.labels, otherwise=frame.query)


_AUTO: Final = "__auto"
_LABEL: Final = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_FIELD_LABEL: Final = re.compile(r"\$\{__field\.labels\.(\w+)\}")


def series_name(legend: str, labels: Mapping[str, str], *, otherwise: str) -> str:
    """By the format of the legend. Without one all labels, or `otherwise`; `__auto` is less of that if it can be."""
    if legend and legend != _AUTO:
        return _LABEL.sub(lambda found: labels.get(found[1], ""), legend)
    own = {name: value for name, value in sorted(labels.items()) if name != "__name__"}
    if legend == _AUTO and len(own) == 1:
        return next(iter(own.values()))
    listed = "{" + ", ".join(f'{name}="{value}"' for name, value in own.items()) + "}" if own else ""
    return labels.get("__name__", "") + listed or otherwise


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    return _FIELD_LABEL.sub(lambda found: labels.get(found[1], ""), text)


def panel_width(panel: Panel) -> float:
    """In pixels."""
    return panel.grid_pos.w * (theme.WIDTH - 2 * theme.MARGIN + theme.GAP) / theme.COLUMNS - theme.GAP


def run(panel: Panel, source: Source, *, window: Window, variables: Values) -> Filled:
    """Ask all that the panel asks. An error is part of what comes back."""
    width = panel_width(panel)
    frames = (
        _answered(target, source, window=window.of(panel, target, width=width), variables=variables)
        for target in panel.queries
    )
    return Filled(panel, tuple(frames), window.of(panel, width=width))


def _answered(target: Target, source: Source, *, window: Window, variables: Values) -> Frame:
    query = expand(target.expr, variables, window=window)
    try:
        answer = _ask(target, source, query=query, window=window)
    except (QueryRefused, OSError) as error:
        return Frame(target, query, window, error=_reason(error))
    return Frame(target, query, window, answer.series)


def _ask(target: Target, source: Source, *, query: str, window: Window) -> Answer:
    if target.instant and not target.range:
        return source.query(query, at=window.end)
    # Grafana, too, starts and ends at multiples of the step: bars of a day begin at midnight UTC.
    start, end = (moment // window.step * window.step for moment in (window.start, window.end))
    return source.query_range(query, start=start, end=end, step=window.step)


def _reason(error: Exception) -> str:
    """What the server says, without the address and the JSON around it."""
    _, _, body = str(error).partition(": ")
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return str(error)


def run_all(dashboard: Dashboard, source: Source, *, window: Window, variables: Values) -> Iterator[Filled]:
    """Every panel of the dashboard, those in collapsed rows too."""
    return (run(panel, source, window=window, variables=variables) for panel in dashboard.all_panels())


def panels_with_data(filled: Sequence[Filled]) -> dict[str, bool]:
    """Whether each panel that asks anything got a number, by title; of several with one title, whether all did."""
    found: dict[str, bool] = {}
    for each in filled:
        if each.frames:
            found[each.panel.title] = found.get(each.panel.title, True) and each.has_data
    return found
