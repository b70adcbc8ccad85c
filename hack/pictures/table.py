"""Tables: the rows of instant queries, and what transformations make of them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hack.pictures.dashboard import Transformation
from hack.pictures.frames import Filled, Frame
from hack.pictures.patterns import matcher

Cell = float | str | None
"""A value, the text of a label, or nothing."""
TIME: Final = "Time"
_UNSORTED: Final = 10_000
_JOINS: Final = frozenset({"merge", "joinByField", "seriesToColumns"})


class Column(NamedTuple):
    """A column: what it was called in the answer, and what it is called now."""

    origin: str
    name: str
    cells: tuple[Cell, ...]

    @property
    def numbers(self) -> list[float]:
        """Its values."""
        return [cell for cell in self.cells if isinstance(cell, float) and math.isfinite(cell)]

    @property
    def is_numeric(self) -> bool:
        """Whether it holds values, and no label."""
        return any(isinstance(cell, float) for cell in self.cells)


Table = tuple[Column, ...]


def table_of(filled: Filled) -> Table:
    """The rows of the panel's queries after all its transformations."""
    frames = [frame for frame in filled.frames if frame.series]
    steps = [step for step in filled.panel.transformations if not step.disabled]
    tables = [_raw(frame, alone=len(filled.frames) == 1) for frame in frames]
    if len(tables) > 1 and not any(step.id in _JOINS for step in steps):
        tables = tables[:1]  # Grafana, too, shows one, with a menu of the others
    table = tables[0] if len(tables) == 1 else ()
    for step in steps:
        if step.id in _JOINS and len(tables) > 1:
            table = _joined(step, tables)
        else:
            table = _STEPS.get(step.id, _as_is)(table, step)
    return table


def unknown_steps(transformations: Iterable[Transformation]) -> list[str]:
    """The transformations that are left out."""
    known = {*_STEPS, *_JOINS}
    return [step.id for step in transformations if not step.disabled and step.id not in known]


def _raw(frame: Frame, *, alone: bool) -> Table:
    """A column for the time, each label and the value."""
    labels = sorted({label for series in frame.series for label in series.labels})
    value = "Value" if alone else f"Value #{frame.target.ref_id}"
    times = tuple(series.points[-1][0] * 1000 for series in frame.series)
    texts = {label: tuple(series.labels.get(label, "") for series in frame.series) for label in labels}
    values = tuple(series.last for series in frame.series)
    named: dict[str, tuple[Cell, ...]] = {TIME: times, **texts, value: values}
    return tuple(Column(name, name, cells) for name, cells in named.items())


def _joined(step: Transformation, tables: Sequence[Table]) -> Table:
    if step.id == "merge":
        return merged(tables)
    return joined_by(tables, step.options.get("byField", TIME), step.options.get("mode", "outer"))


def merged(tables: Sequence[Table]) -> Table:
    """Rows that agree in all columns that every table has, and contradict each other in none, become one.

    As in Grafana a row goes into each earlier one that it agrees with, so the order of the queries matters.
    """
    names = list(dict.fromkeys(column.name for table in tables for column in table))
    shared = [name for name in names if all(name in {column.name for column in table} for table in tables)]
    if not shared:
        return tables[0]
    rows: list[dict[str, Cell]] = []
    alike: dict[tuple[Cell, ...], list[dict[str, Cell]]] = {}
    for row in (row for table in tables for row in _rows(table)):
        known = alike.setdefault(tuple(row[name] for name in shared), [])
        agreeing = [each for each in known if _agree(each, row)]
        for each in agreeing:
            each.update(row)
        if not agreeing:
            known.append(row)
            rows.append(row)
    return _columns(rows, names)


def _agree(known: Mapping[str, Cell], row: Mapping[str, Cell]) -> bool:
    return all(known.get(name) in (None, cell) for name, cell in row.items())


def joined_by(tables: Sequence[Table], field: str, mode: str) -> Table:
    """Rows with the same value of `field` become one; other columns of one name are numbered."""
    counts: dict[str, int] = {}
    for column in (column for table in tables for column in table):
        counts[column.name] = counts.get(column.name, 0) + 1
    rows: dict[Cell, dict[str, Cell]] = {}
    for number, table in enumerate(tables, start=1):
        for row in _rows(table):
            known = rows.setdefault(row.get(field), {})
            for name, cell in row.items():
                known[name if name == field or counts[name] == 1 else f"{name} {number}"] = cell
    if mode == "inner":
        everywhere = set.intersection(*({row.get(field) for row in _rows(table)} for table in tables))
        rows = {key: row for key, row in rows.items() if key in everywhere}
    others = dict.fromkeys(name for row in rows.values() for name in row if name != field)
    return _columns(rows.values(), [field, *others])


def _rows(table: Table) -> list[dict[str, Cell]]:
    count = len(table[0].cells) if table else 0
    return [{column.name: column.cells[place] for column in table} for place in range(count)]


def _columns(rows: Iterable[Mapping[str, Cell]], names: Iterable[str]) -> Table:
    kept = list(rows)
    return tuple(Column(name, name, tuple(row.get(name) for row in kept)) for name in names)


def _organized(table: Table, step: Transformation) -> Table:
    excluded: Mapping[str, bool] = step.options.get("excludeByName", {})
    included: Mapping[str, bool] = step.options.get("includeByName", {})
    order: Mapping[str, int] = step.options.get("indexByName", {})
    names: Mapping[str, str] = step.options.get("renameByName", {})
    kept = [
        column
        for column in table
        if not excluded.get(column.name) and (not any(included.values()) or included.get(column.name))
    ]
    kept.sort(key=lambda column: order.get(column.name, _UNSORTED))
    return tuple(column._replace(name=names.get(column.name) or column.name) for column in kept)


def _sorted(table: Table, step: Transformation) -> Table:
    for by in reversed(step.options.get("sort", ())):
        table = sorted_by(table, by.get("field", ""), descending=by.get("desc", False))
    return table


def sorted_by(table: Table, name: str, *, descending: bool) -> Table:
    """By the column of that name; cells without anything stay at the end."""
    key = next((column for column in table if name in (column.name, column.origin)), None)
    if key is None:
        return table
    filled = [place for place, cell in enumerate(key.cells) if cell is not None]
    order = sorted(filled, key=lambda place: _sort_key(key.cells[place]), reverse=descending)
    order += [place for place, cell in enumerate(key.cells) if cell is None]
    return tuple(column._replace(cells=tuple(column.cells[place] for place in order)) for column in table)


def _sort_key(cell: Cell) -> tuple[bool, float, str]:
    number = cell if isinstance(cell, float) and not math.isnan(cell) else -math.inf
    return isinstance(cell, str), number, cell if isinstance(cell, str) else ""


def _filtered(table: Table, step: Transformation) -> Table:
    included, excluded = _selection(step.options.get("include")), _selection(step.options.get("exclude"))
    return tuple(
        column
        for column in table
        if (included is None or included(column.name)) and not (excluded and excluded(column.name))
    )


def _selection(chosen: Mapping[str, Any] | None) -> Callable[[str], bool] | None:
    if not chosen:
        return None
    pattern = matcher(chosen["pattern"]) if chosen.get("pattern") else None
    return lambda name: name in chosen.get("names", ()) or bool(pattern and pattern(name))


def _renamed(table: Table, step: Transformation) -> Table:
    pattern = step.options.get("regex", "").strip("/")
    new = re.sub(r"\$(\d)", r"\\\1", step.options.get("renamePattern", ""))
    return tuple(column._replace(name=re.sub(pattern, new, column.name)) for column in table)


def _limited(table: Table, step: Transformation) -> Table:
    most = int(step.options.get("limitField", 10))
    return tuple(column._replace(cells=column.cells[:most]) for column in table)


def _as_is(table: Table, _: Transformation) -> Table:
    return table


_STEPS: Final[Mapping[str, Callable[[Table, Transformation], Table]]] = {
    "organize": _organized,
    "sortBy": _sorted,
    "filterFieldsByName": _filtered,
    "renameByRegex": _renamed,
    "limit": _limited,
}
