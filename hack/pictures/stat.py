"""Big numbers."""

from typing import Final

from hack.pictures import theme
from hack.pictures.canvas import Align, Box, Canvas, Ink, Point, Stroke, fitting, shortened, text_width
from hack.pictures.dashboard import Options
from hack.pictures.frames import Filled, Line
from hack.pictures.single import Value, is_named, places_for, values_of

_LARGEST: Final = 52.0
_WIDE: Final = 2.6
"""Times as wide as high is room for a name beside the value."""
_FILL: Final = 0.7
"""Of the height, for the value."""
_INSET: Final = 10.0
_COURSE: Final = 0.3
"""Of the height, for the course of the value."""


def draw_stat(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Big values, each with its course behind it."""
    options = filled.panel.options
    values = values_of(filled)
    for place, value in zip(places_for(box, len(values), options.orientation), values, strict=False):
        _draw_big(canvas, place, value, options=options, named=is_named(options, len(values)))


def _draw_big(canvas: Canvas, box: Box, value: Value, *, options: Options, named: bool) -> None:
    color = theme.TEXT if options.color_mode == "none" else value.color
    if options.color_mode.startswith("background"):
        canvas.rectangle(box, color, radius=4)
        color = theme.ink_on(color)
    if options.graph_mode == "area" and len(value.line.points) > 1:
        _draw_course(canvas, box, value.line, color)
        upper = box.inset(bottom=box.height * _COURSE)
    else:
        upper = box
    if options.text_mode == "name":
        _write_alone(canvas, upper, value.line.name, color)
    elif named and box.width > box.height * _WIDE and _fits_beside(upper, value):
        _write_beside(canvas, upper, value, color)
    elif named and options.text_mode != "none":
        _write_below(canvas, upper, value, color, centered=options.justify_mode == "center")
    elif options.text_mode != "none":
        _write_alone(canvas, upper, value.text, color)


def _write_alone(canvas: Canvas, box: Box, text: str, color: str) -> None:
    inner = box.inset(left=_INSET, right=_INSET)
    size = fitting(text, width=inner.width, largest=min(inner.height * _FILL, _LARGEST), bold=True)
    canvas.text(inner.center, text, Ink(size, color, bold=True), align="center")


def _fits_beside(box: Box, value: Value) -> bool:
    size = min(box.height * _FILL, _LARGEST)
    widths = text_width(value.text, size, bold=True) + text_width(value.line.name, theme.TEXT_SIZE)
    return widths + 3 * _INSET <= box.width


def _write_beside(canvas: Canvas, box: Box, value: Value, color: str) -> None:
    """Name at the left, value at the right."""
    inner = box.inset(left=_INSET, right=_INSET)
    size = fitting(value.text, width=inner.width * 0.5, largest=min(inner.height * _FILL, _LARGEST), bold=True)
    canvas.text((inner.right, inner.center[1]), value.text, Ink(size, color, bold=True), align="right")
    room = inner.width - text_width(value.text, size, bold=True) - _INSET
    name = shortened(value.line.name, theme.TEXT_SIZE, width=room)
    canvas.text((inner.left, inner.center[1]), name, Ink(color=_name_color(color)))


def _write_below(canvas: Canvas, box: Box, value: Value, color: str, *, centered: bool) -> None:
    """The value below its name."""
    inner = box.inset(left=_INSET, right=_INSET, top=4, bottom=4)
    name_size = min(max(inner.height * 0.2, theme.SMALL_SIZE), 17.0)
    room = inner.height - name_size * 1.5
    size = fitting(value.text, width=inner.width, largest=min(room * _FILL, _LARGEST), bold=True)
    middle = inner.center[1] + name_size * 0.7
    across = inner.center[0] if centered else inner.left
    align: Align = "center" if centered else "left"
    canvas.text((across, middle), value.text, Ink(size, color, bold=True), align=align)
    name = shortened(value.line.name, name_size, width=inner.width)
    canvas.text((across, middle - size * 0.62 - name_size * 0.8), name, Ink(name_size, _name_color(color)), align=align)


def _name_color(color: str) -> str:
    """As the value on a coloured background, else as other text."""
    return color if color in (theme.BACKGROUND, theme.NAMED["white"]) else theme.TEXT


def _draw_course(canvas: Canvas, box: Box, line: Line, color: str) -> None:
    """The series as an area at the bottom, from its lowest value to its highest."""
    low, high = min(line.values), max(line.values)
    start, end = line.points[0][0], line.points[-1][0]
    base, height = box.bottom - 2, box.height * _COURSE

    def pixel(moment: float, value: float) -> Point:
        share = (value - low) / (high - low) if high > low else 0.5
        return box.left + (moment - start) / (end - start) * box.width, base - share * height

    top = [pixel(*point) for point in line.points]
    canvas.polygon([(box.left, box.bottom), *top, (box.right, box.bottom)], color, alpha=0.2)
    canvas.line(top, Stroke(color, 1.5))
