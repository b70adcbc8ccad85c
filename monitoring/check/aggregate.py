"""What is left of labels and dimension where series are added up, or the greatest of them taken."""

from typing import Final

import promql_parser as promql

from monitoring.check.dimension import COUNT, INFO, MOMENT, NUMBER, RATIO, STATE, Dimension
from monitoring.check.flow import Flow

_SELECTING: Final = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
_COUNTING: Final = frozenset({"count", "count_values", "group"})


def aggregated(node: promql.AggregateExpr, inner: Flow) -> Flow:
    """Of `sum by (...) (inner)` and its like."""
    operation = str(node.op)
    labels, where = _kept(node, inner)
    named = node.modifier.labels if node.modifier else []
    found = inner.lacking(named, where=where)
    if operation in _SELECTING:
        return found
    if operation == "count_values" and isinstance(node.param, promql.StringLiteral):
        labels |= {node.param.val}
    return found._replace(
        labels=labels,
        dimension=_dimension(operation, inner.dimension),
        currencies=inner.currencies and "currency" in labels,
        bounds=inner.bounds if "le" in labels else None,
        constant=None,
    ).but(*_nonsense(operation, inner, labels))


def _kept(node: promql.AggregateExpr, inner: Flow) -> tuple[frozenset[str], str]:
    modifier = node.modifier
    if modifier is None:
        return frozenset(), str(node.op)
    named = frozenset(modifier.labels)
    listed = ", ".join(modifier.labels)
    if modifier.type == promql.AggModifierType.By:
        return named, f"{node.op} by ({listed})"
    return inner.labels - named, f"{node.op} without ({listed})"


def _dimension(operation: str, inner: Dimension) -> Dimension:
    if operation in _COUNTING:
        return NUMBER if operation == "group" else COUNT
    if operation == "sum" and inner in (STATE, INFO):
        return COUNT
    return RATIO if operation == "avg" and inner == STATE else inner


def _nonsense(operation: str, inner: Flow, labels: frozenset[str]) -> list[str]:
    """What the types allow and nobody wants."""
    found = []
    if inner.is_mixed and "currency" not in labels and operation not in _COUNTING:
        found.append(f"{operation} mixes currencies; keep the label currency in `by (...)`")
    if operation == "sum" and inner.dimension == MOMENT:
        found.append("sum adds up moments; take their max or min")
    return found
