"""What functions of PromQL do to labels and dimensions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import promql_parser as promql

from monitoring.check.dimension import COUNT, MOMENT, NUMBER, RATIO, STATE, Dimension, per_second
from monitoring.check.flow import Flow


def _same(dimension: Dimension) -> Dimension:
    return dimension


def _counted(_: Dimension) -> Dimension:
    return COUNT


def _number(_: Dimension) -> Dimension:
    return NUMBER


def _state(_: Dimension) -> Dimension:
    return STATE


def _averaged(dimension: Dimension) -> Dimension:
    return RATIO if dimension == STATE else dimension


def _summed(dimension: Dimension) -> Dimension:
    return COUNT if dimension == STATE else dimension


def _moment(_: Dimension) -> Dimension:
    return MOMENT


Effect = Callable[[Dimension], Dimension]


def _each(names: str, effect: Effect) -> dict[str, Effect]:
    return dict.fromkeys(names.split(), effect)


_EFFECTS: Final[Mapping[str, Effect]] = {
    **_each("deriv irate rate", per_second),
    **_each("changes count_over_time present_over_time resets", _counted),
    **_each("absent absent_over_time", _state),
    **_each("time timestamp", _moment),
    **_each("avg_over_time", _averaged),
    **_each("sum_over_time", _summed),
    **_each("day_of_month day_of_week day_of_year days_in_month hour minute month pi sgn year", _number),
    **_each("abs ceil clamp clamp_max clamp_min delta floor idelta increase predict_linear round scalar vector", _same),
    **_each("first_over_time last_over_time mad_over_time max_over_time min_over_time quantile_over_time", _same),
    **_each("label_join label_replace sort sort_by_label sort_by_label_desc sort_desc stddev_over_time", _same),
}
"""What becomes of the dimension of the first argument that is no literal."""


def called(node: promql.Call, arguments: Sequence[Flow]) -> Flow:
    """Of a call whose arguments are `arguments`."""
    name = node.func.name
    inner = _series_of(name, arguments).but(*(each for flow in arguments for each in flow.problems))
    scalar = node.func.return_type == promql.ValueType.Scalar
    if name == "histogram_quantile":
        return _quantile(inner)
    if name not in _EFFECTS:
        return inner.but(f"{name}(): its dimension is not known; add it to monitoring/check/call.py")
    found = inner._replace(dimension=_EFFECTS[name](inner.dimension), scalar=scalar, constant=None)
    if scalar:
        return found._replace(labels=frozenset())
    if name.startswith("absent"):
        return found._replace(labels=_pinned(node), currencies=False)
    return _relabelled(node, found)


def _series_of(name: str, arguments: Sequence[Flow]) -> Flow:
    """The argument that the result is made of, its problems left to the caller."""
    place = 1 if name in ("histogram_quantile", "quantile_over_time") else 0
    return arguments[place]._replace(problems=()) if len(arguments) > place else Flow()


def _quantile(inner: Flow) -> Flow:
    found = inner.lacking(["le"], where="histogram_quantile()")
    if inner.bounds is None and "le" in inner.labels:
        found = found.but("histogram_quantile() of what is no histogram; give it the rate of a _bucket")
    return found._replace(labels=inner.labels - {"le"}, dimension=inner.bounds or NUMBER, bounds=None)


def _pinned(node: promql.Call) -> frozenset[str]:
    """The labels that `absent()` gives its one series: those that the selector sets to one value."""
    selector = node.args[0]
    if isinstance(selector, promql.MatrixSelector):
        selector = selector.vector_selector
    if not isinstance(selector, promql.VectorSelector):
        return frozenset()
    equal = (each for each in selector.matchers.matchers if each.op == promql.MatchOp.Equal)
    return frozenset(each.name for each in equal if each.name != "__name__")


def _relabelled(node: promql.Call, inner: Flow) -> Flow:
    texts = [each.val for each in node.args[1:] if isinstance(each, promql.StringLiteral)]
    match node.func.name:
        case "label_replace":
            made, read = texts[0], texts[2:3]
        case "label_join":
            made, read = texts[0], texts[2:]
        case "sort_by_label" | "sort_by_label_desc":
            return inner.lacking(texts, where=f"{node.func.name}()")
        case _:
            return inner
    return inner.lacking(filter(None, read), where=f"{node.func.name}()")._replace(labels=inner.labels | {made})
