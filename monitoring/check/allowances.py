"""Entries of the allow-lists that nothing needs any more."""

from collections.abc import Iterable, Iterator, Mapping

import promql_parser as promql
from promql_parser import Expr

from monitoring.allowed import Foreign
from monitoring.check.answer import Answer
from monitoring.check.problem import Problem
from monitoring.check.syntax import matchers, nodes

_FILE = "monitoring/allowed.py"


def problems(answers: Iterable[Answer], *, foreign: Mapping[str, Foreign], target: Iterable[str]) -> Iterator[Problem]:
    """Foreign metrics that no query reads, and labels of targets that none asks for."""
    answers = list(answers)
    read = {name for answer in answers for name in answer.names}
    for name in foreign:
        if name not in read:
            yield Problem(_FILE, f"FOREIGN {name}", "no query reads it; take it out")
    asked = {label for answer in answers for label in _asked_for(answer)}
    for label in target:
        if label not in asked:
            yield Problem(_FILE, f"TARGET_LABELS {label}", "no query asks for it; take it out")


def _asked_for(answer: Answer) -> Iterator[str]:
    yield from (label for label, _ in answer.asked.shown)
    for node, _ in nodes(answer.tree):
        yield from _named(node)


def _named(node: Expr) -> Iterator[str]:
    match node:
        case promql.VectorSelector():
            yield from (each.name for each in matchers(node))
        case promql.AggregateExpr():
            yield from node.modifier.labels if node.modifier else ()
        case promql.BinaryExpr():
            modifier = node.modifier
            yield from modifier.matching.labels if modifier and modifier.matching else ()
            yield from (modifier.group_labels or ()) if modifier else ()
