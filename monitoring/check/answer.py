"""Reads every query, and follows it from its series to its answer."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from promql_parser import Expr

from monitoring.check.asked import Asked
from monitoring.check.flow import Flow
from monitoring.check.problem import Problem
from monitoring.check.series import Series, Vocabulary
from monitoring.check.syntax import NotPromql, name_of, parsed, selectors
from monitoring.check.trace import traced


class Answer(NamedTuple):
    """A query with its tree, the series it names, and what is left of them at its end."""

    asked: Asked
    tree: Expr
    names: frozenset[str]
    flow: Flow


def answers(questions: Iterable[Asked], known: Vocabulary) -> tuple[list[Answer], list[Problem]]:
    """All that can be followed, and what keeps the others from it."""
    found: list[Answer] = []
    problems: list[Problem] = []
    for each in questions:
        try:
            tree = parsed(each.text)
        except NotPromql as error:
            problems.append(each.problem(f"no PromQL: {error}; mend {each.text.strip()!r}"))
            continue
        if unknown := list(_unknown(tree, known)):
            problems += map(each.problem, unknown)
        else:
            found.append(Answer(each, tree, _names(tree), traced(tree, known)))
    return found, problems


def with_recorded(questions: Iterable[Asked], known: Vocabulary) -> Vocabulary:
    """What is known, and the series that rules record, as soon as all is known that they are made of."""
    recording = [each for each in questions if each.rule and each.rule.record]
    found, _ = answers(recording, known)
    new = dict(map(_recorded, found))
    return {**known, **new} if new.keys() <= known.keys() else with_recorded(recording, {**known, **new})


def _recorded(answer: Answer) -> tuple[str, Series]:
    rule, flow = answer.asked.rule, answer.flow
    assert rule, "only rules record"
    return rule.record, Series(flow.labels | frozenset(rule.labels), dimension=flow.dimension, bounds=flow.bounds)


def _names(tree: Expr) -> frozenset[str]:
    return frozenset(name_of(selector) for selector, _ in selectors(tree))


def _unknown(tree: Expr, known: Vocabulary) -> Iterator[str]:
    for selector, _ in selectors(tree):
        name = name_of(selector)
        if not name:
            yield f"{selector} names no metric; write its name, so that a search finds it"
        elif name not in known:
            yield f"{name} is no metric of the catalog; correct the name, or give a reason in monitoring/allowed.py"
