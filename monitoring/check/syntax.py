"""PromQL as a tree, with Grafana's variables replaced by what they may stand for."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

import promql_parser as promql
from promql_parser import Expr, Matcher, VectorSelector


class NotPromql(Exception):
    """What the parser cannot read, in its words."""


RATE_INTERVAL: Final = timedelta(seconds=241)
RANGE: Final = timedelta(seconds=86399)
INTERVAL: Final = timedelta(seconds=61)
_BETWEEN: Final = "(time() - time())"
"""Of the same dimension as the time shown, in seconds."""
_BUILT_IN: Final[Mapping[str, str]] = {
    "__rate_interval": f"{RATE_INTERVAL.total_seconds():.0f}s",
    "__range": f"{RANGE.total_seconds():.0f}s",
    "__interval": f"{INTERVAL.total_seconds():.0f}s",
    "__range_s": _BETWEEN,
    "__interval_ms": f"({_BETWEEN} * 1000)",
}
"""Grafana's own variables. Each duration is one that nobody writes, so that it is known again in the tree."""
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::[^}]*)?\}|\$([A-Za-z_]\w*)|\[\[([A-Za-z_]\w*)\]\]")


def variables(text: str) -> Iterator[str]:
    """The names of the variables in it, Grafana's own left out."""
    for match in _VARIABLE.finditer(text):
        name = _name(match)
        if not name.startswith("__"):
            yield name


def chosen(variable: str) -> str:
    """What stands in the tree for a value of that variable."""
    return f"chosen_{variable}"


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with those variables replaced that have a value."""
    return _VARIABLE.sub(lambda match: values.get(_name(match), match[0]), text)


def _name(match: re.Match[str]) -> str:
    return str(match[1] or match[2] or match[3])


def parsed(text: str) -> Expr:
    """The tree of the query. Raises: NotPromql."""
    try:
        return promql.parse(_VARIABLE.sub(lambda match: _BUILT_IN.get(_name(match), chosen(_name(match))), text))
    except ValueError as error:
        raise NotPromql(str(error)) from None


def nodes(tree: Expr, above: tuple[Expr, ...] = ()) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Every node with those above it, the nearest last."""
    yield tree, above
    for child in children(tree):
        yield from nodes(child, (*above, tree))


def children(tree: Expr) -> tuple[Expr, ...]:
    """The nodes right below."""
    match tree:
        case promql.BinaryExpr():
            return tree.lhs, tree.rhs
        case promql.AggregateExpr():
            return (tree.expr, tree.param) if isinstance(tree.param, Expr) else (tree.expr,)
        case promql.UnaryExpr() | promql.ParenExpr() | promql.SubqueryExpr():
            return (tree.expr,)
        case promql.MatrixSelector():
            return (tree.vector_selector,)
        case promql.Call():
            return tuple(tree.args)
    return ()


def selectors(tree: Expr) -> Iterator[tuple[VectorSelector, tuple[Expr, ...]]]:
    """Every choice of series with the nodes above it."""
    for node, above in nodes(tree):
        if isinstance(node, VectorSelector):
            yield node, above


def matchers(selector: VectorSelector) -> list[Matcher]:
    """All of them, those joined by `or` too, but that of the name."""
    found = [*selector.matchers.matchers, *(each for group in selector.matchers.or_matchers for each in group)]
    return [each for each in found if each.name != "__name__"]


def name_of(selector: VectorSelector) -> str:
    """The metric it reads; empty when it names none, or several by a pattern."""
    if selector.name:
        return selector.name
    found = [each for each in selector.matchers.matchers if each.name == "__name__"]
    return found[0].value if len(found) == 1 and found[0].op == promql.MatchOp.Equal else ""
