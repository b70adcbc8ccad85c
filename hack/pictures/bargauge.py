"""Bars with thresholds."""

from collections.abc import Sequence

from hack.pictures import theme
from hack.pictures.canvas import Box, Canvas, Ink, fitting, shortened, text_width
from hack.pictures.frames import Filled
from hack.pictures.single import GAP, Value, values_of


def draw_bargauge(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Bars, each as long as its share; upright where Grafana may choose and the panel is wide."""
    values = values_of(filled)
    orientation = filled.panel.options.orientation
    upright = orientation == "vertical" or (orientation == "auto" and box.width > box.height)
    (_draw_columns if upright else _draw_rows)(canvas, box, values)


def _draw_rows(canvas: Canvas, box: Box, values: Sequence[Value]) -> None:
    names = min(max(text_width(value.line.name, theme.TEXT_SIZE) for value in values) + 12, box.width * 0.4)
    places = box.cells(1, len(values), gap=GAP)
    size = min(places[0].height * 0.6, 20.0)
    numbers = max(text_width(value.text, size, bold=True) for value in values) + 12
    for place, value in zip(places, values, strict=True):
        name = shortened(value.line.name, theme.TEXT_SIZE, width=names - 12)
        canvas.text((place.left + names - 12, place.center[1]), name, align="right")
        bar = place.inset(left=names, right=numbers)
        _draw_bar(canvas, bar, bar._replace(width=bar.width * value.share), value)
        canvas.text((place.right, place.center[1]), value.text, Ink(size, value.color, bold=True), align="right")


def _draw_columns(canvas: Canvas, box: Box, values: Sequence[Value]) -> None:
    places = box.cells(len(values), 1, gap=GAP)
    size = min(fitting(value.text, width=places[0].width, largest=24.0, bold=True) for value in values)
    for place, value in zip(places, values, strict=True):
        bar = place.inset(top=size * 1.6, bottom=24)
        length = bar.height * value.share
        _draw_bar(canvas, bar, bar.inset(top=bar.height - length), value)
        canvas.text(
            (place.center[0], place.top + size * 0.7), value.text, Ink(size, value.color, bold=True), align="center"
        )
        name = shortened(value.line.name, theme.TEXT_SIZE, width=place.width)
        canvas.text((place.center[0], place.bottom - 10), name, align="center")


def _draw_bar(canvas: Canvas, whole: Box, full: Box, value: Value) -> None:
    canvas.rectangle(whole, theme.CELL, radius=3)
    if value.share > 0:
        canvas.rectangle(full, value.color, alpha=0.35, radius=min(3.0, full.width / 2, full.height / 2))
        edge = Box(full.right - 2, full.top, 2, full.height) if full.height == whole.height else full._replace(height=2)
        canvas.rectangle(edge, value.color)
