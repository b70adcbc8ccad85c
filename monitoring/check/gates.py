"""What `make verify` asks of dashboards and rules, by part."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from msgspec import Struct

from monitoring import allowed
from monitoring.check import (
    alert,
    allowances,
    board,
    counters,
    coverage,
    lint,
    metric_names,
    navigation,
    promtool_test,
    queries,
    schema,
    units,
)
from monitoring.check.answer import Answer, answers, with_recorded
from monitoring.check.asked import asked
from monitoring.check.loaded import Loaded, load
from monitoring.check.problem import Problem
from monitoring.check.series import METRICS, Vocabulary, vocabulary


class Evidence(Struct, frozen=True, kw_only=True):
    """What was loaded, which series there are, where each query leads, and the problems of those that lead nowhere."""

    loaded: Loaded
    known: Vocabulary
    answers: list[Answer]
    unanswered: list[Problem]


def gathered(root: Path) -> Evidence:
    """All that the gates need of the files below `root`."""
    loaded = load(root)
    questions = list(asked(loaded))
    known = with_recorded(questions, vocabulary(METRICS, foreign=allowed.FOREIGN, target=allowed.TARGET_LABELS))
    found, unanswered = answers(questions, known)
    return Evidence(loaded=loaded, known=known, answers=found, unanswered=unanswered)


def of_metrics(_: Evidence) -> Iterator[Problem]:
    """Every metric has a conventional name, help text and labels."""
    return metric_names.problems(METRICS)


def of_queries(evidence: Evidence) -> Iterator[Problem]:
    """Every query parses, reads what there is as what it is, and is shown as what it measures."""
    found = evidence.answers
    return chain(
        evidence.loaded.problems,
        evidence.unanswered,
        queries.problems(found),
        counters.problems(found, evidence.known, allowed.BARE),
        units.problems(found, allowed.MEASURED_OTHERWISE),
        allowances.problems(found, foreign=allowed.FOREIGN, target=allowed.TARGET_LABELS),
        coverage.problems(METRICS, found),
    )


def of_dashboards(evidence: Evidence) -> Iterator[Problem]:
    """Grafana knows every field, panels are in their place, links lead somewhere, and its linter is content."""
    loaded = evidence.loaded
    return chain(
        schema.problems({file: loaded.documents[file] for file in loaded.dashboards}),
        board.problems(loaded.dashboards),
        navigation.problems(loaded.dashboards),
        lint.problems(loaded),
    )


def of_alerts(evidence: Evidence) -> Iterator[Problem]:
    """Every alert has its texts, its runbook, its dashboard and its tests."""
    loaded = evidence.loaded
    return chain(
        alert.problems(loaded),
        alert.humanized(evidence.answers),
        promtool_test.problems(loaded.root, evidence.answers),
    )


GATES: Final[Mapping[str, Callable[[Evidence], Iterator[Problem]]]] = {
    "metrics": of_metrics,
    "queries": of_queries,
    "dashboards": of_dashboards,
    "alerts": of_alerts,
}
