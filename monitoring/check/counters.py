"""Counters are read by how fast they grow; everything else is read as it is."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import promql_parser as promql
from promql_parser import Expr

from monitoring.check.answer import Answer
from monitoring.check.problem import Problem
from monitoring.check.series import Vocabulary
from monitoring.check.syntax import name_of, selectors

GROWTH: Final = frozenset({"increase", "irate", "rate", "resets"})
_EXISTENCE: Final = frozenset({"absent", "absent_over_time"})
"""What does not look at the value."""


def problems(answers: Iterable[Answer], known: Vocabulary, exempt: Mapping[tuple[str, str], str]) -> Iterator[Problem]:
    """Counters outside rate() and its like, and other series inside; and exemptions that nothing needs."""
    needed = set()
    for answer in answers:
        for name, text in misread(answer.tree, known):
            if (answer.asked.file, name) in exempt:
                needed.add((answer.asked.file, name))
            else:
                yield answer.asked.problem(text)
    for file, name in sorted(exempt.keys() - needed):
        yield Problem("monitoring/allowed.py", f"BARE {file} {name}", "nothing needs it any more; take it out")


def misread(tree: Expr, known: Vocabulary) -> Iterator[tuple[str, str]]:
    """The series that are read as what they are not, and what to do."""
    for selector, above in selectors(tree):
        name, function = name_of(selector), _function(above)
        if known[name].grows and function not in GROWTH | _EXISTENCE:
            yield name, f"{name} is a counter read as it is; put it into rate() or increase()"
        if not known[name].grows and function in GROWTH:
            yield name, f"{name} is no counter, but stands in {function}(); use delta() or deriv()"


def _function(above: tuple[Expr, ...]) -> str:
    """The function that the series goes into as it is."""
    nearest = next((node for node in reversed(above) if not isinstance(node, promql.MatrixSelector)), None)
    return nearest.func.name if isinstance(nearest, promql.Call) else ""
