"""Draws one value per series: stat and bar gauge panels."""

from typing import Final

from hack.pictures import theme
from hack.pictures.canvas import Box, Canvas, Ink, shortened, text_width
from hack.pictures.frames import Filled, Line

_GAP: Final = 8.0
_LARGEST: Final = 52.0
_FILL: Final = 0.7
"""Share of the height for the value."""
_SPARKLINE: Final = 0.3
"""Share of the height for the sparkline."""
_INSET: Final = 10.0
_NAME: Final = 20.0


def _text(line: Line) -> str:
    return line.field.text(line.last)


def draw_stat(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw big numbers side by side, with names if there are several."""
    lines = filled.lines()
    for place, line in zip(box.cells(len(lines), 1, gap=_GAP), lines, strict=True):
        upper = place
        if filled.panel.options.graph_mode == "area" and len(line.points) > 1:
            _draw_sparkline(canvas, place, line)
            upper = place.inset(bottom=place.height * _SPARKLINE)
        inner = upper.inset(left=_INSET, right=_INSET, bottom=_NAME if len(lines) > 1 else 0)
        text = _text(line)
        size = min(inner.width / text_width(text, 1000, bold=True) * 1000, inner.height * _FILL, _LARGEST)
        canvas.text(inner.center, text, Ink(size, line.color, bold=True), align="center")
        if len(lines) > 1:
            name = shortened(line.name, theme.TEXT_SIZE, width=inner.width)
            canvas.text((inner.center[0], upper.bottom - _NAME / 2), name, align="center")


def _draw_sparkline(canvas: Canvas, box: Box, line: Line) -> None:
    """Draw the series as an area at the bottom, scaled from its lowest to its highest value."""
    low, high = min(line.values), max(line.values)
    start, end = line.points[0][0], line.points[-1][0]
    top = [
        (
            box.left + (moment - start) / (end - start) * box.width,
            box.bottom - 2 - ((value - low) / (high - low) if high > low else 0.5) * box.height * _SPARKLINE,
        )
        for moment, value in line.points
    ]
    canvas.polygon([(box.left, box.bottom), *top, (box.right, box.bottom)], line.color, alpha=0.2)
    canvas.line(top, line.color, 1.5)


def draw_bargauge(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw bars from zero; the largest value has the longest bar."""
    lines = filled.lines()
    highest = max((line.last for line in lines if line.points), default=0.0)
    names = min(max(text_width(line.name, theme.TEXT_SIZE) for line in lines) + 12, box.width * 0.4)
    places = box.cells(1, len(lines), gap=_GAP)
    size = min(places[0].height * 0.6, 20.0)
    numbers = max(text_width(_text(line), size, bold=True) for line in lines) + 12
    for place, line in zip(places, lines, strict=True):
        name = shortened(line.name, theme.TEXT_SIZE, width=names - 12)
        canvas.text((place.left + names - 12, place.center[1]), name, align="right")
        canvas.text((place.right, place.center[1]), _text(line), Ink(size, line.color, bold=True), align="right")
        whole = place.inset(left=names, right=numbers)
        canvas.rectangle(whole, theme.CELL)
        if line.last > 0:  # False for NaN
            full = whole._replace(width=whole.width * line.last / highest)
            canvas.rectangle(full, line.color, alpha=0.35)
            canvas.rectangle(full.inset(left=full.width - 2), line.color)
