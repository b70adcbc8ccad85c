"""Panels that answer a question each, made so that none lacks what its reader needs."""

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Final

import grafanalib.core as grafana
from msgspec import Struct

from monitoring.link import AnyLink
from monitoring.unit import COUNT, Unit

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, ORANGE, RED, BLUE, PURPLE, GREY = "green", "yellow", "orange", "red", "blue", "purple", "text"

_FROM_ZERO: Final[Mapping[str, Any]] = {"axisSoftMin": 0}
"""A filled area above any other value misleads."""
_NOTHING: Final = "-"
"""In a cell of a table that has others."""
_HALF: Final = (12, 9)
_SMALL: Final = (4, 4)
"""Width and height."""

Steps = Mapping[float | str, str]
"""Thresholds: from which value on which colour; `<ALERT.TERM>` is one of the alerts'. Below the first it is green."""


Words = Mapping[int, tuple[str, str]]
"""Values with their name and colour."""
Colors = Mapping[str, str]
STATES: Final[Colors] = {
    "allocated": GREEN,
    "held": GREEN,
    "free": BLUE,
    "cordoned": PURPLE,
    "unhealthy": RED,
    "lost": RED,
    "unknown": ORANGE,
    "unsliced": YELLOW,
}
"""Of what becomes of a GPU."""


class Query(Struct, frozen=True):
    """PromQL, and how a series of its answer is called: text with `{{label}}` in it."""

    expression: str
    legend: str = "__auto"


class Look(Struct, frozen=True):
    """What all panels have: the question they answer as `title`, how to read the answer as `description`.

    `empty` is shown without data, and should tell whether that is good. `width` is in 24ths of the page, `height` in
    units of 30 pixels; without them each kind of panel has its own. Alerts link to a panel by its `id`.
    """

    title: str
    description: str
    unit: Unit = COUNT
    empty: str = "no data"
    steps: Steps | None = None
    width: int | None = None
    height: int | None = None
    links: tuple[AnyLink, ...] = ()
    id: int | None = None


class Column(Struct, frozen=True, kw_only=True):
    """A number in a table: its head, the query that gives it by the table's keys, and its unit."""

    head: str
    expression: str
    unit: Unit
    steps: Steps | None = None


def timeseries(look: Look, *queries: Query, stacked: bool = False, colors: Colors | None = None) -> Any:  # noqa: ANN401 - grafanalib has no types
    """Values over time, as lines or as stacked areas; a threshold is a dashed line.

    `colors` are those of series that mean the same wherever they are shown, by the first word of their legend.
    """
    custom = {"thresholdsStyle": {"mode": "dashed" if look.steps else "off"}, **_FROM_ZERO}
    return grafana.TimeSeries(
        **_common(look, queries, custom=custom),
        fillOpacity=40 if stacked else 10,
        stacking={"mode": "normal", "group": "A"} if stacked else {"mode": "none", "group": "A"},
        legendDisplayMode="table",
        legendCalcs=["lastNotNull", "mean", "max"],
        tooltipMode="multi",
        tooltipSort="desc",
        unit=look.unit.grafana,
        overrides=[*look.unit.overrides, *_colored(colors or {})],
        showPoints="auto",
    )


def counts(look: Look, *queries: Query, every: str = "5m") -> Any:  # noqa: ANN401 - grafanalib has no types
    """Sums per interval as stacked bars, longer than `every` when zoomed out; of counters, use `grown_per_bar`."""
    panel = _common(look, queries, custom=_FROM_ZERO)
    panel["extraJson"]["interval"] = every
    return grafana.TimeSeries(
        **panel,
        overrides=look.unit.overrides,
        drawStyle="bars",
        fillOpacity=80,
        stacking={"mode": "normal", "group": "A"},
        legendDisplayMode="table",
        legendCalcs=["sum"],
        tooltipMode="multi",
        tooltipSort="desc",
        unit=look.unit.grafana,
        showPoints="never",
    )


def _colored(colors: Colors) -> list[Mapping[str, Any]]:
    return [
        {
            "matcher": {"id": "byRegexp", "options": rf"/^{word}\b/"},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for word, color in colors.items()
    ]


def stat(look: Look, *queries: Query, trend: bool = False, words: Words | None = None) -> Any:  # noqa: ANN401 - grafanalib has no types
    """One number for each series, now; with `trend` also how it came about. `words` replace some values."""
    panel = _common(look, queries, instant=not trend, size=_SMALL)
    if words:
        panel["extraJson"]["fieldConfig"]["defaults"]["mappings"] = [_mapping(words)]
    return grafana.Stat(
        **panel,
        colorMode="value",
        graphMode="area" if trend else "none",
        reduceCalc="lastNotNull",
        noValue=look.empty,
        format=look.unit.grafana,
        decimals=look.unit.decimals,
        overrides=look.unit.overrides,
        color={"mode": "thresholds" if look.steps else "fixed", **({} if look.steps else {"fixedColor": GREY})},
    )


def bars(look: Look, *queries: Query) -> Any:  # noqa: ANN401 - grafanalib has no types
    """A horizontal bar for each series, now."""
    panel = _common(look, queries, instant=True)
    panel["extraJson"]["fieldConfig"]["defaults"]["min"] = 0
    panel["extraJson"]["fieldConfig"]["overrides"] = look.unit.overrides
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "displayMode": "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
    }
    panel["extraJson"] |= {"type": "bargauge", "options": options}
    return grafana.BarGauge(**panel)


def heatmap(look: Look, query: Query) -> Any:  # noqa: ANN401 - grafanalib has no types
    """How many observations fell into each bucket of a histogram over time; `look.unit` is that of the buckets."""
    panel = _common(look, [query])
    panel["targets"][0].format = "heatmap"
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
        "yAxis": {"axisPlacement": "left", "unit": look.unit.grafana},
        "cellValues": {"unit": COUNT.grafana},
        "tooltip": {"mode": "single"},
    }
    panel["extraJson"] |= {"type": "heatmap", "options": options}
    return grafana.Heatmap(**panel)


def _mapping(words: Words) -> Mapping[str, Any]:
    texts = {
        str(value): {"text": text, "color": color, "index": place}
        for place, (value, (text, color)) in enumerate(words.items())
    }
    return {"type": "value", "options": texts}


def timeline(look: Look, *queries: Query, words: Words) -> Any:  # noqa: ANN401 - grafanalib has no types
    """States over time; `words` says for each value its name and colour."""
    return grafana.StateTimeline(
        **_common(look, queries),
        mappings=[_mapping(words)],
        showValue="never",
        legendDisplayMode="list",
    )


def table(look: Look, keys: Mapping[str, str], *columns: Column, order: str = "") -> Any:  # noqa: ANN401 - grafanalib has no types
    """A line for each combination of the labels `keys` (label: head), now, with a number in each column.

    It is sorted by the column with the head `order`, the greatest first. A column without a head is not shown: only
    the labels of its query are.
    """
    # Grafana merges a row into those before it: with several currencies a tenant has several lines, each complete.
    asked = sorted(columns, key=lambda each: "currency" not in each.expression)
    panel = _common(look, [Query(each.expression) for each in asked], instant=True)
    for target in panel["targets"]:
        target.format = "table"
    for of_series in ("decimals", "links", "unit"):  # columns have their own
        panel["extraJson"]["fieldConfig"]["defaults"].pop(of_series, None)
    panel["transformations"] = _merged(keys, asked, heads=[each.head for each in columns])
    descending = [{"displayName": order, "desc": True}] if order else []
    panel["extraJson"]["options"] = {"sortBy": descending, "showHeader": True, "cellHeight": "sm"}
    shown = [each for each in columns if each.head]
    overrides = [*map(_key, keys.values()), *map(_column, shown), *_linked(look.links, keys)]
    return grafana.Table(**panel, overrides=overrides)


def _merged(keys: Mapping[str, str], asked: Sequence[Column], *, heads: Sequence[str]) -> list[Mapping[str, Any]]:
    """One line for what each query says of the same labels, and heads for people, in the order of `heads`."""
    letters = [f"Value #{letter}" for letter in ascii_uppercase] if len(asked) > 1 else ["Value"]
    values = {name: column.head for name, column in zip(letters, asked, strict=False)}
    shown = sorted((name for name, head in values.items() if head), key=lambda name: heads.index(values[name]))
    names = {**keys, **{name: values[name] for name in shown}}
    organize = {
        "excludeByName": {"Time": True, **{name: True for name, head in values.items() if not head}},
        "indexByName": {name: place for place, name in enumerate(names)},
        "renameByName": names,
    }
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]


def _key(head: str) -> Mapping[str, Any]:
    return {"matcher": {"id": "byName", "options": head}, "properties": [{"id": "noValue", "value": _NOTHING}]}


def _column(column: Column) -> Mapping[str, Any]:
    properties: list[Mapping[str, Any]] = [
        {"id": "unit", "value": column.unit.grafana},
        {"id": "noValue", "value": _NOTHING},
    ]
    if column.unit.decimals is not None:
        properties.append({"id": "decimals", "value": column.unit.decimals})
    if column.steps:
        properties += [
            {"id": "thresholds", "value": _thresholds(column.steps)},
            {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        ]
    return {"matcher": {"id": "byName", "options": column.head}, "properties": properties}


def _linked(links: Iterable[AnyLink], keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """All links of a column at once: of two overrides Grafana takes the last."""
    by_head: dict[str, list[Mapping[str, Any]]] = {}
    for link in links:
        by_head.setdefault(link.head(keys), []).append(link.of_cells(keys))
    return [
        {"matcher": {"id": "byName", "options": head}, "properties": [{"id": "links", "value": found}]}
        for head, found in by_head.items()
    ]


def _common(
    look: Look,
    queries: Iterable[Query],
    *,
    instant: bool = False,
    custom: Mapping[str, Any] | None = None,
    size: tuple[int, int] = _HALF,
) -> dict[str, Any]:
    width, height = size
    defaults: dict[str, Any] = {"noValue": look.empty, "unit": look.unit.grafana, "thresholds": _thresholds(look.steps)}
    if look.unit.decimals is not None:
        defaults["decimals"] = look.unit.decimals
    if custom:
        defaults["custom"] = dict(custom)
    if look.links:
        defaults["links"] = [link.of_series() for link in look.links]
    return {
        "id": look.id,
        "title": look.title,
        "description": look.description,
        "dataSource": DATASOURCE,
        "targets": [
            _target(query, letter, instant=instant) for query, letter in zip(queries, ascii_uppercase, strict=False)
        ],
        "gridPos": grafana.GridPos(h=look.height or height, w=look.width or width, x=0, y=0),
        "extraJson": {"fieldConfig": {"defaults": defaults}},
    }


def _thresholds(steps: Steps | None) -> Mapping[str, Any]:
    above = [{"color": color, "value": value} for value, color in (steps or {}).items()]
    return {"mode": "absolute", "steps": [{"color": GREEN, "value": None}, *above]}


def _target(query: Query, letter: str, *, instant: bool) -> Any:  # noqa: ANN401 - grafanalib has no types
    return grafana.Target(
        datasource=DATASOURCE, expr=query.expression, legendFormat=query.legend, refId=letter, instant=instant
    )
