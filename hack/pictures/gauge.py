"""Dials."""

import math
from collections.abc import Sequence
from typing import Final

from hack.pictures import theme
from hack.pictures.canvas import Box, Canvas, Ink, Point, fitting, shortened
from hack.pictures.frames import Filled
from hack.pictures.single import Value, is_named, places_for, values_of

_SWEEP: Final = (210.0, -30.0)
"""Degrees at which a dial begins and ends, against the clock from the right."""
_DEGREES: Final = 3.0
"""Length of the straight pieces that an arc is drawn with."""


def draw_gauge(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Dials."""
    values = values_of(filled)
    orientation = filled.panel.options.orientation
    for place, value in zip(places_for(box, len(values), orientation), values, strict=False):
        _draw_dial(canvas, place, value, named=is_named(filled.panel.options, len(values)))


def _draw_dial(canvas: Canvas, box: Box, value: Value, *, named: bool) -> None:
    dial = box.inset(bottom=22 if named else 0)
    radius = min(dial.width / 2, dial.height / 1.55) * 0.96
    center = (dial.center[0], dial.top + (dial.height - radius * 1.5) / 2 + radius)
    low, high = value.line.field.between(value.among)
    thickness = radius * 0.2
    starts = [
        (step.color, max((start - low) / (high - low), 0.0)) for step, start in value.line.field.limits((low, high))
    ]
    for (color, start), (_, end) in zip(starts, [*starts[1:], ("", 1.0)], strict=True):
        if start < min(end, 1.0):
            band = arc(center, (radius, radius * 0.95), _angle(start), _angle(min(end, 1.0)))
            canvas.polygon(band, theme.named(color))
    inside = radius * 0.93
    canvas.polygon(arc(center, (inside, inside - thickness), *_SWEEP), theme.BORDER)
    if value.share > 0:
        canvas.polygon(arc(center, (inside, inside - thickness), _SWEEP[0], _angle(value.share)), value.color)
    size = fitting(value.text, width=(inside - thickness) * 1.75, largest=radius * 0.42, bold=True)
    canvas.text((center[0], center[1] + radius * 0.05), value.text, Ink(size, value.color, bold=True), align="center")
    if named:
        name = shortened(value.line.name, theme.TEXT_SIZE, width=box.width)
        canvas.text((box.center[0], box.bottom - 11), name, align="center")


def _angle(share: float) -> float:
    return _SWEEP[0] + (_SWEEP[1] - _SWEEP[0]) * share


def arc(center: Point, radii: tuple[float, float], start: float, end: float) -> list[Point]:
    """The outline of a part of a ring, or of a disk whose inner radius is 0; angles in degrees."""
    pieces = max(int(abs(end - start) / _DEGREES), 1)
    angles = [math.radians(start + (end - start) * piece / pieces) for piece in range(pieces + 1)]

    def around(radius: float, turns: Sequence[float]) -> list[Point]:
        return [(center[0] + radius * math.cos(turn), center[1] - radius * math.sin(turn)) for turn in turns]

    return [*around(radii[0], angles), *around(radii[1], angles[::-1])]
