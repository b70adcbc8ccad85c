"""How a table is drawn."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from hack.pictures import theme
from hack.pictures.canvas import FAINT, Align, Box, Canvas, Ink, Stroke, shortened, text_width
from hack.pictures.fields import Field
from hack.pictures.frames import Filled
from hack.pictures.overrides import field_of
from hack.pictures.table import TIME, Cell, Column, Table, sorted_by, table_of

_ROW: Final = 32.0
_PADDING: Final = 9.0
_WIDEST: Final = 420.0
_HEADS: Final = Ink(theme.SMALL_SIZE, theme.LINK)
_GAUGES: Final = frozenset({"gauge", "basic", "lcd-gauge", "gradient-gauge"})


class Shown(NamedTuple):
    """A column with all that is needed to draw it."""

    column: Column
    field: Field
    title: str
    texts: tuple[str, ...]

    @property
    def align(self) -> Align:
        """Values at the right, so that their sizes can be compared."""
        match self.field.custom.align:
            case "left" | "center" | "right" as chosen:
                aligned: Align = chosen
                return aligned
        return "right" if self.column.is_numeric else "left"

    @property
    def width(self) -> float:
        """What it asks for."""
        gauge = 130.0 if self.field.custom.cell in _GAUGES else 0.0
        head = text_width(self.title, theme.SMALL_SIZE)
        widest = max((text_width(text, theme.TEXT_SIZE) for text in self.texts), default=0.0)
        return self.field.custom.width or min(max(head, widest + gauge), _WIDEST) + 2 * _PADDING


def draw_table(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content."""
    table = table_of(filled)
    for sort in reversed(filled.panel.options.sort_by):
        table = sorted_by(table, sort.display_name, descending=sort.desc)
    columns = [shown for column in table if not (shown := _shown(filled, column)).field.custom.hidden]
    if not columns:
        return
    head = _ROW if filled.panel.options.show_header else 0.0
    widths = _stretched(columns, box.width)
    rights = [box.left + sum(widths[: place + 1]) for place in range(len(widths))]
    rows = int((box.height - head) / _ROW)
    for shown, right, width in zip(columns, rights, widths, strict=True):
        if head:
            _write(canvas, Box(right - width, box.top, width, _ROW), shown.title, _HEADS, align=shown.align)
        for row in range(min(rows, len(shown.texts))):
            _draw_cell(canvas, Box(right - width, box.top + head + row * _ROW, width, _ROW), shown, row)
    _draw_lines(canvas, box, [box.top + head + row * _ROW for row in range(min(rows, _length(table)) + 1)])
    if hidden := max(_length(table) - rows, 0):
        canvas.text((box.right, box.bottom - 6), f"+ {hidden} rows", FAINT, align="right")


def _length(table: Table) -> int:
    return len(table[0].cells) if table else 0


def _shown(filled: Filled, column: Column) -> Shown:
    field = field_of(filled.panel, column.name, column.origin)
    if column.origin == TIME or column.origin.startswith(f"{TIME} "):
        field = Field(unit=field.unit or "dateTimeAsIso", custom=field.custom)
    texts = tuple(_text(cell, field, now=filled.window.end) for cell in column.cells)
    return Shown(column, field, field.display_name or column.name, texts)


def _text(cell: Cell, field: Field, *, now: float) -> str:
    if isinstance(cell, float):
        return field.text(cell, now=now)
    if cell is None:
        return field.no_value
    return str(field.mapped(cell).get("text") or cell)


def _stretched(columns: Sequence[Shown], width: float) -> list[float]:
    """What is left over goes to those whose width is not fixed, in equal parts; what lacks is taken from the widest."""
    asked = [shown.width for shown in columns]
    free = [shown.field.custom.width is None for shown in columns]
    over = width - sum(asked)
    if over < 0 or not any(free):
        most = _cap(asked, width)
        return [min(each, most) for each in asked]
    return [each + (over / sum(free) if is_free else 0.0) for each, is_free in zip(asked, free, strict=True)]


def _cap(asked: Sequence[float], width: float) -> float:
    """The width that no column may exceed if all are to have room."""
    for taken, each in enumerate(sorted(asked)):
        share = width / (len(asked) - taken)
        if each > share:
            return share
        width -= each
    return max(asked)


def _draw_cell(canvas: Canvas, box: Box, shown: Shown, row: int) -> None:
    cell, kind = shown.column.cells[row], shown.field.custom.cell
    color = _color(shown, cell)
    ink = Ink()
    if color and kind.startswith("color-background"):
        canvas.rectangle(box.inset(right=1, bottom=1), color)
        ink = Ink(color=theme.ink_on(color))
    elif color and kind == "color-text":
        ink = Ink(color=color)
    elif color and kind in _GAUGES and isinstance(cell, float) and math.isfinite(cell):
        _draw_gauge(canvas, box, shown, value=cell, color=color)
        ink = Ink(color=color)
    _write(canvas, box, shown.texts[row], ink, align=shown.align)


def _color(shown: Shown, cell: Cell) -> str:
    if isinstance(cell, float):
        return shown.field.color_of(cell, among=shown.column.numbers)
    mapped = shown.field.mapped(cell).get("color") if cell else None
    return theme.named(mapped) if mapped else ""


def _draw_gauge(canvas: Canvas, box: Box, shown: Shown, *, value: float, color: str) -> None:
    low, high = shown.field.between(shown.column.numbers)
    text = max(text_width(each, theme.TEXT_SIZE) for each in shown.texts)
    whole = box.inset(left=_PADDING, right=text + 2 * _PADDING, top=6, bottom=6)
    canvas.rectangle(whole, theme.CELL)
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    canvas.rectangle(whole._replace(width=whole.width * share), color, alpha=0.6)


def _write(canvas: Canvas, box: Box, text: str, ink: Ink, *, align: Align) -> None:
    inner = box.inset(left=_PADDING, right=_PADDING)
    across = {"left": inner.left, "center": inner.center[0], "right": inner.right}[align]
    canvas.text((across, box.center[1]), shortened(text, ink.size, width=inner.width + 1), ink, align=align)


def _draw_lines(canvas: Canvas, box: Box, heights: Sequence[float]) -> None:
    for height in heights:
        canvas.line([(box.left, height), (box.right, height)], Stroke(theme.BORDER))
