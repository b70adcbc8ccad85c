"""Which labels two sides of an operator are matched by, and which their result has."""

from collections.abc import Iterator
from typing import Final

import promql_parser as promql

from monitoring.check.flow import Flow

_SETS: Final = frozenset({"and", "or", "unless"})
_MANY: Final = (promql.VectorMatchCardinality.ManyToOne, promql.VectorMatchCardinality.OneToMany)


def labels(node: promql.BinaryExpr, left: Flow, right: Flow) -> frozenset[str]:
    """Those of the result."""
    if left.scalar or right.scalar:
        return left.labels | right.labels
    if str(node.op) == "or":
        return left.labels & right.labels if left.labels and right.labels else left.labels | right.labels
    modifier = node.modifier
    if str(node.op) in _SETS or modifier is None:
        return left.labels
    if modifier.card in _MANY:
        many, _ = _sides(node, left, right)
        return many.labels | frozenset(modifier.group_labels or ())
    return _matching(node, left)


def _matching(node: promql.BinaryExpr, side: Flow) -> frozenset[str]:
    """The labels of a side by which it is matched to the other."""
    matching = node.modifier.matching if node.modifier else None
    if matching is None:
        return side.labels
    named = frozenset(matching.labels)
    return named if matching.type == promql.LabelModifierType.Include else side.labels - named


def mismatched(node: promql.BinaryExpr, left: Flow, right: Flow) -> Iterator[str]:
    """Labels by which the two sides cannot be matched, or that the result would have to get from nowhere."""
    if left.scalar or right.scalar:
        return
    matching = node.modifier.matching if node.modifier else None
    if matching and matching.type == promql.LabelModifierType.Include:
        where = f"on ({', '.join(matching.labels)})"
        for side in (left, right):
            yield from (side.lack(label, where) for label in matching.labels if label not in side.labels)
    elif str(node.op) != "or":
        yield from _unequal(node, left, right)
    if node.modifier and node.modifier.card in _MANY:
        _, one = _sides(node, left, right)
        extra = node.modifier.group_labels or ()
        yield from (one.lack(label, f"group ({', '.join(extra)})") for label in extra if label not in one.labels)
    yield from _ignored(node, left, right)


def _unequal(node: promql.BinaryExpr, left: Flow, right: Flow) -> Iterator[str]:
    ours, theirs = _matching(node, left), _matching(node, right)
    if ours != theirs:
        odd = ", ".join(sorted(ours ^ theirs))
        yield f"{node.op}: the sides match by all labels, but only one of them has {odd}; say `on (...)` which match"


def _ignored(node: promql.BinaryExpr, left: Flow, right: Flow) -> Iterator[str]:
    matching = node.modifier.matching if node.modifier else None
    if matching and matching.type == promql.LabelModifierType.Exclude:
        both = left._replace(labels=left.labels | right.labels)
        where = f"ignoring ({', '.join(matching.labels)})"
        yield from (both.lack(label, where) for label in matching.labels if label not in both.labels)


def _sides(node: promql.BinaryExpr, left: Flow, right: Flow) -> tuple[Flow, Flow]:
    """The side that may have many series for one of the other's, and the other."""
    turned = node.modifier is not None and node.modifier.card == promql.VectorMatchCardinality.OneToMany
    return (right, left) if turned else (left, right)
