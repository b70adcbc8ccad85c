"""Shares of a whole."""

import math
from typing import Final

from hack.pictures import theme
from hack.pictures.canvas import Box, Canvas, Ink
from hack.pictures.frames import Filled
from hack.pictures.gauge import arc
from hack.pictures.legend import Entry, draw_legend
from hack.pictures.single import Value, values_of
from hack.pictures.units import Reading, show

_TOP: Final = 90.0
_SMALLEST: Final = 0.04
"""A share with room for a label."""


def draw_pie(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content: slices from the top, with the clock."""
    options = filled.panel.options
    values = sorted((v for v in values_of(filled) if v.value > 0), key=lambda value: -value.value)
    total = sum(value.value for value in values) or 1.0
    entries = [Entry(v.line.name, v.color, _told(v, total, options.legend.values)) for v in values]
    rest = draw_legend(canvas, box, entries, options.legend)
    radius = min(rest.width, rest.height) / 2 * 0.94
    inner = radius * 0.6 if options.pie_type == "donut" else 0.0
    start = _TOP
    for value in values:
        end = start - 360 * value.value / total
        canvas.polygon(arc(rest.center, (radius, inner), start, end), value.color)
        if options.display_labels and value.value / total >= _SMALLEST:
            text = "  ".join(_label(value, total, what) for what in options.display_labels)
            _write(
                canvas, rest, text, turn=(start + end) / 2, distance=(radius + inner) / 2 if inner else radius * 0.65
            )
        start = end


def _told(value: Value, total: float, wanted: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((what.title(), _label(value, total, what)) for what in ("value", "percent") if what in wanted)


def _label(value: Value, total: float, what: str) -> str:
    match what:
        case "name":
            return value.line.name
        case "percent":
            return show(value.value / total, "percentunit", Reading(decimals=0))
    return value.text


def _write(canvas: Canvas, box: Box, text: str, *, turn: float, distance: float) -> None:
    angle = math.radians(turn)
    at = (box.center[0] + distance * math.cos(angle), box.center[1] - distance * math.sin(angle))
    canvas.text(at, text, Ink(theme.SMALL_SIZE, theme.BACKGROUND, bold=True), align="center")
