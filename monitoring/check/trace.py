"""Follows series through a query, from what it reads to what it answers."""

from fractions import Fraction

import promql_parser as promql
from promql_parser import Expr

from monitoring.check.aggregate import aggregated
from monitoring.check.call import called
from monitoring.check.flow import Flow
from monitoring.check.join import joined
from monitoring.check.series import Vocabulary
from monitoring.check.syntax import children, matchers, name_of


def traced(tree: Expr, known: Vocabulary) -> Flow:
    """What the query answers; all of its metrics must be `known`."""
    below = [traced(child, known) for child in children(tree)]
    match tree:
        case promql.VectorSelector():
            return _selected(tree, known)
        case promql.AggregateExpr():
            return aggregated(tree, below[0])
        case promql.BinaryExpr():
            return joined(tree, *below)
        case promql.Call():
            return called(tree, below)
        case promql.NumberLiteral():
            return Flow(scalar=True, constant=_exact(tree.val))
    return below[0] if below else Flow(scalar=True)


def _selected(selector: promql.VectorSelector, known: Vocabulary) -> Flow:
    name = name_of(selector)
    series = known[name]
    chosen = matchers(selector)
    pinned = {each.name for each in chosen if each.op == promql.MatchOp.Equal and each.value}
    found = Flow(
        labels=series.labels,
        dimension=series.dimension,
        currencies="currency" in series.labels - pinned,
        bounds=series.bounds,
    )
    return found.lacking((each.name for each in chosen), where=name)


def _exact(value: float) -> Fraction | None:
    """Nothing for infinity and NaN."""
    return Fraction(str(value)) if value - value == 0 else None
