"""What two sides of an operator make of each other, and whether they go together."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final

import promql_parser as promql

from monitoring.check.dimension import (
    NUMBER,
    STATE,
    Dimension,
    added,
    divided,
    multiplied,
    product,
    quotient,
    subtracted,
)
from monitoring.check.flow import Flow
from monitoring.check.matching import labels, mismatched

_COMPARING: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})


def joined(node: promql.BinaryExpr, left: Flow, right: Flow) -> Flow:
    """Of `left operator right`."""
    problems = (*left.problems, *right.problems, *mismatched(node, left, right), *_incompatible(node, left, right))
    return Flow(
        labels=labels(node, left, right),
        dimension=_dimension(node, left, right),
        problems=problems,
        currencies=any(side.currencies for side in _given(node, left, right)),
        bounds=left.bounds or right.bounds,
        scalar=left.scalar and right.scalar,
        constant=_folded(str(node.op), left, right),
    )


def _given(node: promql.BinaryExpr, left: Flow, right: Flow) -> tuple[Flow, ...]:
    """The sides whose values are in the result."""
    return (left,) if str(node.op) in ("and", "unless") else (left, right)


def _dimension(node: promql.BinaryExpr, left: Flow, right: Flow) -> Dimension:
    operator = str(node.op)
    if operator in _COMPARING:
        return STATE if node.modifier and node.modifier.return_bool else _compared(left, right)
    return _ARITHMETIC[operator](left, right) if operator in _ARITHMETIC else left.dimension


def _product(left: Flow, right: Flow) -> Dimension:
    if right.constant is not None:
        return multiplied(left.dimension, right.constant)
    if left.constant is not None:
        return multiplied(right.dimension, left.constant)
    return product(left.dimension, right.dimension)


def _quotient(left: Flow, right: Flow) -> Dimension:
    if right.constant is not None:
        return divided(left.dimension, right.constant)
    return quotient(left.dimension, right.dimension)


def _sum(left: Flow, right: Flow) -> Dimension:
    return added(left.dimension, right.dimension) or left.dimension


def _difference(left: Flow, right: Flow) -> Dimension:
    return subtracted(left.dimension, right.dimension) or left.dimension


def _either(left: Flow, right: Flow) -> Dimension:
    """Alerts join conditions on values with others; what is left is that one of them holds."""
    return STATE if STATE in (left.dimension, right.dimension) else _sum(left, right)


_ARITHMETIC: Final[Mapping[str, Callable[[Flow, Flow], Dimension]]] = {
    "*": _product,
    "/": _quotient,
    "+": _sum,
    "-": _difference,
    "or": _either,
}


def _compared(left: Flow, right: Flow) -> Dimension:
    """What a comparison lets pass is the vector."""
    return right.dimension if left.scalar and not right.scalar else left.dimension


def _incompatible(node: promql.BinaryExpr, left: Flow, right: Flow) -> Iterator[str]:
    operator = str(node.op)
    ours, theirs = left.dimension, right.dimension
    if operator == "-" and subtracted(ours, theirs) is None:
        yield f"subtracts {theirs} from {ours}; only the same dimension can be subtracted"
    if operator == "+" and added(ours, theirs) is None:
        yield f"adds {theirs} to {ours}; only the same dimension adds up"
    alike = (NUMBER, STATE) if operator == "or" else (NUMBER,)
    if operator in ("or", *_COMPARING) and ours != theirs and not any(each in alike for each in (ours, theirs)):
        yield f"`{operator}` between {ours} and {theirs}; both sides must measure the same"
    if any(side.is_mixed for side in _given(node, left, right)) and "currency" not in labels(node, left, right):
        yield f"`{operator}` mixes currencies; match `on (currency, ...)`"


def _folded(operator: str, left: Flow, right: Flow) -> Fraction | None:
    if left.constant is None or right.constant is None:
        return None
    match operator:
        case "*":
            return left.constant * right.constant
        case "/":
            return left.constant / right.constant if right.constant else None
        case "+":
            return left.constant + right.constant
        case "-":
            return left.constant - right.constant
    return None
