"""Series reduced to one value each, and the places that a panel gives them."""

import math
from typing import Final, NamedTuple

from hack.pictures.canvas import Box
from hack.pictures.dashboard import Options
from hack.pictures.frames import Filled, Line

GAP: Final = 8.0


class Value(NamedTuple):
    """A line reduced to one value, among the values of its panel."""

    line: Line
    value: float
    among: tuple[float, ...]
    now: float

    @property
    def text(self) -> str:
        """With its unit."""
        if math.isnan(self.value) and self.line.field.no_value:
            return self.line.field.no_value
        return self.line.field.text(self.value, now=self.now)

    @property
    def color(self) -> str:
        """By its thresholds, unless the panel says otherwise."""
        return self.line.field.color_of(self.value, index=self.line.place, among=self.among)

    @property
    def share(self) -> float:
        """How full a gauge is, 0 to 1."""
        low, high = self.line.field.between(self.among)
        return min(max((self.value - low) / (high - low), 0.0), 1.0)


def values_of(filled: Filled) -> list[Value]:
    """One value for each series."""
    calc_name = next(iter(filled.panel.options.reduce_options.calcs), "lastNotNull")
    reduced = [(line, line.reduced(calc_name)) for line in filled.lines()]
    among = tuple(value for _, value in reduced if not math.isnan(value))
    return [Value(line, value, among, filled.window.end) for line, value in reduced]


def is_named(options: Options, count: int) -> bool:
    """Whether names stand beside the values."""
    return options.text_mode == "value_and_name" or (options.text_mode == "auto" and count > 1)


def places_for(box: Box, count: int, orientation: str) -> list[Box]:
    """Columns, rows or, where Grafana may choose, the grid whose cells are the least narrow."""
    if orientation == "vertical":
        return box.cells(count, 1, gap=GAP)
    if orientation == "horizontal":
        return box.cells(1, count, gap=GAP)

    def largest(columns: int) -> float:
        cell = box.cells(columns, math.ceil(count / columns), gap=GAP)[0]
        return min(cell.width / 2.5, cell.height)

    columns = max(range(1, count + 1), key=largest)
    return box.cells(columns, math.ceil(count / columns), gap=GAP)
