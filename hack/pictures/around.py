"""Draws the axes around a plot, and the legend below it."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Final, NamedTuple

import msgspec

from hack.pictures import theme
from hack.pictures.canvas import FAINT, Box, Canvas, Ink, Point, shortened, text_width
from hack.pictures.fields import Field
from hack.pictures.units import DAY
from hack.pictures.variables import Window, nice

_BETWEEN_ROWS: Final = 34.0
"""Minimum pixels between two ticks on the value axis; more than the text height, to keep the plot readable."""
_ROWS: Final = 4
"""Approximate minimum number of ticks, even if they are closer than that."""
_BETWEEN_TIMES: Final = 74.0
_BETWEEN_DATES: Final = 110.0
BESIDE: Final = 20.0
"""Pixels that the last time label may extend beyond the plot."""
BELOW: Final = 22.0
"""Height of the time labels below the plot, in pixels."""
_PADDING: Final = 0.1
_GAP: Final = 8.0
_FINE: Final = 6
"""Digits needed to distinguish neighbouring ticks, such as 10.25 K and 10.5 K."""

_LINE: Final = 21.0
_SIGN: Final = 14.0
"""Width of the coloured line before a name, in pixels."""
_BEFORE_NAME: Final = _SIGN + 6
_BESIDE_NAME: Final = 16.0
_FEW: Final = 8
_AT_MOST: Final = 0.35
"""Maximum share of the panel height for the legend, as in Grafana."""
_AT_MOST_OF_FEW: Final = 0.55
"""The same for few series, which are always shown in full: half of the panel, including the title."""
_SMALL: Final = Ink(theme.SMALL_SIZE)
_HEADS: Final = Ink(theme.SMALL_SIZE, theme.LINK)


class ValueAxis(NamedTuple):
    """The value axis, to the left of a plot."""

    low: float
    high: float
    field: Field
    labels: Mapping[float, str]

    @property
    def width(self) -> float:
        """Width of the labels, in pixels."""
        return max((text_width(label, theme.SMALL_SIZE) for label in self.labels.values()), default=0) + _GAP

    def y(self, value: float, plot: Box) -> float:
        """The vertical pixel of `value`."""
        return plot.bottom - (value - self.low) / (self.high - self.low) * plot.height

    def draw(self, canvas: Canvas, plot: Box) -> None:
        """Draw the labels and the grid lines."""
        for tick, label in self.labels.items():
            height = self.y(tick, plot)
            canvas.line([(plot.left, height), (plot.right, height)], theme.GRID)
            canvas.text((plot.left - _GAP, height), label, FAINT, align="right")


def value_axis(values: Sequence[float], field: Field, *, height: float) -> ValueAxis:
    """An axis with padding around all values; it crosses zero only if the values do."""
    low, high = min(values), max(values)
    padding = (high - low) * _PADDING or abs(high) or 1.0
    low = low - padding if low < 0 else max(low - padding, 0.0)
    high = high + padding if high > 0 or low == high else min(high + padding, 0.0)
    if high - low < _finest(field):  # the decimals are too few for exact ticks
        field = msgspec.structs.replace(field, decimals=None)
    step = _tick_step((high - low) / max(height / _BETWEEN_ROWS, _ROWS), field)
    return ValueAxis(low, high, field, {tick: field.text(tick, digits=_FINE) for tick in _multiples(low, high, step)})


def _multiples(low: float, high: float, step: float) -> list[float]:
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _finest(field: Field) -> float:
    """The smallest difference visible with the field's decimals."""
    if field.decimals is None:
        return 0.0
    return 10.0**-field.decimals / (100 if field.unit == "percentunit" else 1)


def _tick_step(at_least: float, field: Field) -> float:
    """A round step that the field's decimals can show exactly."""
    if field.unit == "s" and at_least >= 1:
        return nice(at_least)
    if field.unit == "bytes":
        return float(2 ** max(math.ceil(math.log2(at_least)), 0))
    finest = _finest(field)
    steps = (number * 10.0**power for power in count(math.floor(math.log10(at_least))) for number in (1, 2, 2.5, 5))
    longer = (step for step in steps if step >= at_least * (1 - 1e-9))
    return next(step for step in longer if not finest or math.isclose(step / finest, round(step / finest)))


def draw_time_axis(canvas: Canvas, plot: Box, window: Window) -> None:
    """Draw the times (UTC) below the plot, and the grid lines."""
    dated = window.seconds > DAY
    step = nice(window.seconds / max(plot.width / (_BETWEEN_DATES if dated else _BETWEEN_TIMES), 1))
    form = "%m/%d" if step >= DAY else "%m/%d %H:%M" if dated else "%H:%M"
    for mark in _multiples(window.start, window.end, step):
        across = time_x(mark, plot, window)
        canvas.line([(across, plot.top), (across, plot.bottom)], theme.GRID)
        label = datetime.fromtimestamp(mark, UTC).strftime(form)
        half = text_width(label, theme.SMALL_SIZE) / 2
        middle = min(max(across, plot.left + half - BESIDE), plot.right - half + BESIDE)
        canvas.text((middle, plot.bottom + theme.SMALL_SIZE + 2), label, FAINT, align="center")


def time_x(moment: float, plot: Box, window: Window) -> float:
    """The horizontal pixel of `moment`."""
    return plot.left + (moment - window.start) / window.seconds * plot.width


Entry = tuple[str, str, Sequence[tuple[str, str]]]
"""A legend entry: name, colour, and calculated values as (title, text)."""


def draw_list(canvas: Canvas, box: Box, entries: Sequence[Entry]) -> Box:
    """Draw a one-line legend; return the box left for the plot."""
    across = box.left
    for name, color, _ in entries:
        _draw_name(canvas, (across, box.bottom - _LINE / 2), color, name)
        across += _BEFORE_NAME + text_width(name, _SMALL.size) + _BESIDE_NAME
    return box.inset(bottom=_LINE + 4)


def draw_legend(canvas: Canvas, box: Box, entries: Sequence[Entry]) -> Box:
    """Draw a legend with one line per series, as far as there is room; return the box left for the plot."""
    share = _AT_MOST_OF_FEW if len(entries) <= _FEW else _AT_MOST
    room = min(len(entries), max(int(box.height * share / _LINE), 2) - 1)
    legend = box.inset(top=box.height - (room + 1) * _LINE)
    columns = zip(*(values for _, _, values in entries), strict=True)
    widths = [max(text_width(text, _SMALL.size) for cell in each for text in cell) + _BESIDE_NAME for each in columns]
    rights = [legend.right - 4 - sum(widths[place + 1 :]) for place in range(len(widths))]
    head, *lines = legend.cells(1, room + 1, gap=0)
    for right, (title, _) in zip(rights, entries[0][2], strict=True):
        canvas.text((right, head.center[1]), title, _HEADS, align="right")
    for line, (name, color, values) in zip(lines, entries, strict=False):
        canvas.line([(line.left, line.top), (line.right, line.top)], theme.BORDER)
        text = shortened(name, _SMALL.size, width=line.width - sum(widths) - _BEFORE_NAME)
        _draw_name(canvas, (line.left, line.center[1]), color, text)
        for right, (_, value) in zip(rights, values, strict=True):
            canvas.text((right, line.center[1]), value, _SMALL, align="right")
    if hidden := len(entries) - room:
        canvas.text((legend.right, legend.bottom + 2), f"+ {hidden}", FAINT, align="right")
    return box.inset(bottom=legend.height + 4)


def _draw_name(canvas: Canvas, at: Point, color: str, text: str) -> None:
    across, height = at
    canvas.line([(across, height), (across + _SIGN, height)], color, 4)
    canvas.text((across + _BEFORE_NAME, height), text, _SMALL)
