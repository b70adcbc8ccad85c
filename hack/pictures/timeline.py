"""States over time, a row for each series."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from hack.pictures import theme
from hack.pictures.axes import BELOW, BESIDE, draw_time_axis, time_x
from hack.pictures.canvas import TEXT, Box, Canvas, Ink, shortened, text_width
from hack.pictures.frames import Filled, Line
from hack.pictures.legend import Entry, draw_legend

_NAMES: Final = 0.25
_MISSING: Final = 1.5
_OPACITY: Final = 70.0


class State(NamedTuple):
    """A value that held for a time."""

    value: float
    start: float
    end: float


def draw_timeline(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content."""
    lines = [line for line in filled.lines() if line.points]
    rest = draw_legend(canvas, box, _entries(lines), filled.panel.options.legend)
    names = min(max(text_width(line.name, TEXT.size) for line in lines), box.width * _NAMES)
    plot = rest.inset(left=names + 10, right=BESIDE, bottom=BELOW)
    draw_time_axis(canvas, plot, filled.window)
    for line, row in zip(lines, plot.cells(1, len(lines), gap=0), strict=True):
        canvas.text((plot.left - 8, row.center[1]), shortened(line.name, TEXT.size, width=names), align="right")
        _draw_row(canvas, row, line, filled=filled)


def _draw_row(canvas: Canvas, row: Box, line: Line, *, filled: Filled) -> None:
    options, window = filled.panel.options, filled.window
    height = row.height * options.row_height
    opacity = line.field.custom.fill_opacity
    for state in states(line, merged=options.merge_values):
        start, end = (time_x(min(max(t, window.start), window.end), row, window) for t in (state.start, state.end))
        if end <= start:
            continue
        box = Box(start, row.top + (row.height - height) / 2, end - start, height)
        color = line.field.color_of(state.value, index=line.place, among=line.values)
        canvas.rectangle(box, color, alpha=(_OPACITY if opacity is None else opacity) / 100)
        text = line.field.text(state.value)
        if options.show_value != "never" and text_width(text, theme.SMALL_SIZE) < box.width - 8:
            canvas.text(box.center, text, Ink(theme.SMALL_SIZE, theme.ink_on(color)), align="center")


def states(line: Line, *, merged: bool) -> Iterator[State]:
    """Each lasts until the next, or for one step when nothing follows it; equal ones are one if `merged`."""
    open_state: State | None = None
    for (moment, value), (following, _) in zip(line.points, [*line.points[1:], (math.inf, 0.0)], strict=True):
        end = following if following - moment <= line.step * _MISSING else moment + line.step
        if open_state and merged and open_state.value == value and open_state.end == moment:
            open_state = open_state._replace(end=end)
            continue
        if open_state:
            yield open_state
        open_state = State(value, moment, end)
    if open_state:
        yield open_state


def _entries(lines: list[Line]) -> list[Entry]:
    """The states that occur, the smallest value first."""
    found = sorted({(value, line.place): line for line in lines for value in line.values}.items())
    texts = {line.field.text(value): line.field.color_of(value, index=place) for (value, place), line in found}
    return [Entry(text, color) for text, color in texts.items()]
