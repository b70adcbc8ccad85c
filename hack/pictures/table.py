"""Draws tables: merges instant query results and applies transformations."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hack.pictures import theme
from hack.pictures.canvas import FAINT, TEXT, Align, Box, Canvas, Ink, shortened, text_width
from hack.pictures.dashboard import Sort
from hack.pictures.fields import Field
from hack.pictures.frames import Filled, Frame

Cell = float | str
Row = dict[str, Cell]
_ROW: Final = 32.0
_PADDING: Final = 9.0
_WIDEST: Final = 420.0
_HEADS: Final = Ink(theme.SMALL_SIZE, theme.LINK)


class Column(NamedTuple):
    """A column to draw."""

    head: str
    texts: Sequence[str]
    inks: Sequence[Ink]
    align: Align

    @property
    def width(self) -> float:
        """The preferred width."""
        texts = max(text_width(text, theme.TEXT_SIZE) for text in self.texts)
        return min(max(text_width(self.head, theme.SMALL_SIZE), texts), _WIDEST) + 2 * _PADDING


def _column(head: str, cells: Sequence[Cell | None], field: Field) -> Column:
    """A column; numbers are right-aligned, so that they can be compared."""
    texts = [field.no_value if cell is None else cell if isinstance(cell, str) else field.text(cell) for cell in cells]
    colored = field.custom.cell_options.type == "color-text"
    inks = [Ink(color=field.color_of(cell)) if colored and isinstance(cell, float) else TEXT for cell in cells]
    return Column(head, texts, inks, "right" if any(isinstance(cell, float) for cell in cells) else "left")


def draw_table(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw the panel content."""
    columns = [_column(head, cells, filled.panel.field_config.of(head)) for head, cells in table_of(filled).items()]
    preferred = [column.width for column in columns]
    over = box.width - sum(preferred)
    count = len(columns[0].texts)
    shown = min(max(int(box.height / _ROW) - 1, 0), count)
    place = box._replace(height=_ROW * (shown + 1))
    for column, width in zip(columns, preferred, strict=True):
        place = place._replace(width=width + over / len(columns) if over > 0 else width * box.width / sum(preferred))
        head, *cells = place.cells(1, shown + 1, gap=0)
        _write(canvas, head, column.head, _HEADS, align=column.align)
        for cell, text, ink in zip(cells, column.texts, column.inks, strict=False):
            _write(canvas, cell, text, ink, align=column.align)
        place = place._replace(left=place.right)
    for row in range(1, shown + 2):
        height = box.top + row * _ROW
        canvas.line([(box.left, height), (box.right, height)], theme.BORDER)
    if hidden := count - shown:
        canvas.text((box.right, box.bottom - 6), f"+ {hidden} rows", FAINT, align="right")


def _write(canvas: Canvas, box: Box, text: str, ink: Ink, *, align: Align) -> None:
    inner = box.inset(left=_PADDING, right=_PADDING)
    across = inner.left if align == "left" else inner.right
    canvas.text((across, box.center[1]), shortened(text, ink.size, width=inner.width + 1), ink, align=align)


def table_of(filled: Filled) -> dict[str, list[Cell | None]]:
    """Cells by column head, transformed and sorted as the panel specifies."""
    rows = merged([_raw(frame, alone=len(filled.frames) == 1) for frame in filled.frames])
    heads = {name: name for row in rows for name in row}
    for step in filled.panel.transformations:
        heads = _organized(heads, step.options)
    found = [{head: row[name] for name, head in heads.items() if name in row} for row in rows]
    for sort in reversed(filled.panel.options.sort_by):
        found = _sorted(found, sort)
    return {head: [row.get(head) for row in found] for head in heads.values()}


def _raw(frame: Frame, *, alone: bool) -> list[Row]:
    """Rows with the time, each label and the value."""
    labels = sorted({label for series in frame.series for label in series.labels})
    value = "Value" if alone else f"Value #{frame.target.ref_id}"
    return [
        {"Time": each.points[-1][0] * 1000, **{label: each.labels.get(label, "") for label in labels}, value: each.last}
        for each in frame.series
    ]


def merged(tables: Iterable[Sequence[Row]]) -> list[Row]:
    """Merge rows that have no conflicting column.

    As in Grafana, a row is merged into every earlier row that it matches, so the order of queries matters.
    """
    rows: list[Row] = []
    for row in (row for table in tables for row in table):
        agreeing = [
            known for known in rows if all(name not in known or known[name] == cell for name, cell in row.items())
        ]
        for known in agreeing:
            known.update(row)
        if not agreeing:
            rows.append(row)
    return rows


def _organized(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, str]:
    """The columns that are not excluded, in order, with their heads."""
    excluded, order, heads = (options.get(f"{what}ByName", {}) for what in ("exclude", "index", "rename"))
    left = sorted((name for name in names if not excluded.get(name)), key=lambda name: order.get(name, math.inf))
    return {name: heads.get(name, name) for name in left}


def _sorted(rows: Iterable[Row], sort: Sort) -> list[Row]:
    """Sort by a numeric column; rows without a number come last in descending order."""

    def size(row: Row) -> float:
        cell = row.get(sort.display_name)
        return cell if isinstance(cell, float) and not math.isnan(cell) else -math.inf

    return sorted(rows, key=size, reverse=sort.desc)
