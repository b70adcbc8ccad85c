"""Legends: a list or a table, below the plot or at its right."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from hack.pictures import theme
from hack.pictures.canvas import FAINT, Box, Canvas, Ink, Stroke, shortened, text_width
from hack.pictures.dashboard import Legend

_LINE: Final = 21.0
_GAP: Final = 16.0
_SIGN: Final = 14.0
"""Pixels of the coloured stroke before a name."""
_SMALL: Final = Ink(theme.SMALL_SIZE)
_HEADS: Final = Ink(theme.SMALL_SIZE, theme.LINK)
_AT_MOST: Final = 0.35
"""Of the panel's height below a plot, as in Grafana, and of its width at the right of one."""
_AT_MOST_WITH_VALUES: Final = 0.6
"""Of the width, when the legend tells more than names."""


class Entry(NamedTuple):
    """A name with its colour, and what is told of it as (title, text)."""

    name: str
    color: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def listed(self) -> str:
        """All in one line."""
        return "  ".join((self.name, *(f"{title}: {text}" for title, text in self.values)))


def draw_legend(canvas: Canvas, box: Box, entries: Sequence[Entry], legend: Legend) -> Box:
    """Draw it and return the room left for the plot."""
    if not entries or not legend.show_legend or legend.display_mode == "hidden":
        return box
    table, right = legend.display_mode == "table", legend.placement == "right"
    rows = [[entry] for entry in entries] if right else _wrapped(entries, box.width)
    if right:
        wanted = sum(_widths(entries)) if table else max(map(_listed_width, entries))
        width = min(wanted, box.width * (_AT_MOST_WITH_VALUES if entries[0].values else _AT_MOST))
        place, rest = box.inset(left=box.width - width), box.inset(right=width + _GAP)
    else:
        height = _height(len(entries) + _heads(entries) if table else len(rows), box, least=2 if table else 1)
        place, rest = box.inset(top=box.height - height), box.inset(bottom=height + 4)
    if table:
        _draw_table(canvas, place, entries)
    else:
        _draw_list(canvas, place, rows)
    return rest


def _heads(entries: Sequence[Entry]) -> int:
    """Lines of a table before the first name."""
    return 1 if entries[0].values else 0


def _height(lines: int, box: Box, *, least: int) -> float:
    return min(lines, max(int(box.height * _AT_MOST / _LINE), least)) * _LINE


def _listed_width(entry: Entry) -> float:
    return _SIGN + 6 + text_width(entry.listed, _SMALL.size) + _GAP


def _wrapped(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    rows: list[list[Entry]] = [[]]
    used = 0.0
    for entry in entries:
        needed = _listed_width(entry)
        if rows[-1] and used + needed > width + _GAP:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += needed
    return rows


def _draw_list(canvas: Canvas, box: Box, rows: Sequence[Sequence[Entry]]) -> None:
    room = max(int(box.height / _LINE + 0.01), 1)
    for number, row in enumerate(rows[:room]):
        across, height = box.left, box.top + (number + 0.5) * _LINE
        for entry in row:
            width = min(_listed_width(entry), box.right - across + _GAP)
            _draw_name(
                canvas,
                (across, height),
                entry.color,
                shortened(entry.listed, _SMALL.size, width=width - _SIGN - 6 - _GAP + 1),
            )
            across += width
    if hidden := sum(map(len, rows[room:])):
        canvas.text((box.right, box.top + (room - 0.5) * _LINE), f"+ {hidden}", FAINT, align="right")


def _draw_name(canvas: Canvas, at: tuple[float, float], color: str, text: str) -> None:
    across, height = at
    canvas.line([(across, height), (across + _SIGN, height)], Stroke(color, 4))
    canvas.text((across + _SIGN + 6, height), text, _SMALL)


def _widths(entries: Sequence[Entry]) -> list[float]:
    """Of the columns: the name, and each value."""
    names = max(text_width(entry.name, _SMALL.size) for entry in entries)
    columns = zip(*(entry.values for entry in entries), strict=False)
    wide = [max(text_width(text, _SMALL.size) for cell in column for text in cell) for column in columns]
    return [_SIGN + 6 + names + _GAP, *(width + _GAP for width in wide)]


def _draw_table(canvas: Canvas, box: Box, entries: Sequence[Entry]) -> None:
    widths = _widths(entries)
    rights = [box.right - sum(widths[place + 1 :]) - 4 for place in range(1, len(widths))]
    for right, (title, _) in zip(rights, entries[0].values, strict=False):
        canvas.text((right, box.top + _LINE / 2), title, _HEADS, align="right")
    name_width = box.width - sum(widths[1:]) - _SIGN - 6
    heads = _heads(entries)
    room = max(int(box.height / _LINE + 0.01) - heads, 1)
    for number, entry in enumerate(entries[:room]):
        height = box.top + (number + heads + 0.5) * _LINE
        canvas.line([(box.left, height - _LINE / 2), (box.right, height - _LINE / 2)], Stroke(theme.BORDER))
        _draw_name(canvas, (box.left, height), entry.color, shortened(entry.name, _SMALL.size, width=name_width))
        for right, (_, text) in zip(rights, entry.values, strict=False):
            canvas.text((right, height), text, _SMALL, align="right")
    if hidden := len(entries[room:]):
        canvas.text((box.right, box.bottom + 2), f"+ {hidden}", FAINT, align="right")
