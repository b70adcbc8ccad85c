"""Shows the allocations, prices and dates behind a number of a report."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from gputally.commands.from_ledger.reading import LedgerFiles, matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.formatting.formats import places
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import GapSubject, Records
from gputally.output.explanation import Explanation, explanation_answer
from gputally.output.scope import Scope
from gputally.output.writer import write_answer
from gputally.questions.explain import Explain
from gputally.reports.explanation import ExplainedPod, ExplainedSums, costliest, explain
from gputally.reports.query import unmatched

_SHOWN_EACH: Final = 100
"""Pods between two messages on progress."""


def explain_numbers(question: Explain, files: LedgerFiles) -> int:
    """Print the explanation. Raises: LedgerError, and InvalidQuestion for a wrong period or time zone."""
    reading = reading_scope(question, files, records=Records.PODS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, scope):
        progress("reading the ledger ...")
        explanation = _explanation(reader, scope, question, progress)
        write_answer(sys.stdout, explanation_answer(explanation), output=question.output)
        sys.stdout.flush()
        progress("")
        if not explanation.sums.pods:
            empty = matched(reader, scope, is_empty=True)
            sys.stderr.writelines(f"gputally: {note}\n" for note in empty.warnings or [f"no allocation{scope.limits}"])
    return 0


def _explanation(reader: LedgerReader, scope: Scope, question: Explain, progress: ProgressLine) -> Explanation:
    """The explanation, whose pods are read while they are printed, except for the top ones."""
    window = scope.query.window
    gaps = [gap for gap in reader.gaps(window) if gap.subject is not GapSubject.ALLOCATION]
    others = ExplainedSums(window)
    pods: Iterable[ExplainedPod] = explain(reader, scope.query)
    if question.top is not None:
        pods = costliest(_counted(pods, progress), question.top, others=others)
        progress("")
    elif sys.stdout.isatty():  # the pods themselves show the progress
        progress("")
    else:
        pods = _counted(pods, progress)
    return Explanation(
        scope=scope,
        pods=pods,
        sums=ExplainedSums(window),
        others=others,
        gaps=gaps,
        unmatched=lambda: unmatched(reader, scope.query),
        places=places(question.output, question.decimals),
    )


def _counted(pods: Iterable[ExplainedPod], progress: ProgressLine) -> Iterator[ExplainedPod]:
    for number, pod in enumerate(pods):
        if number % _SHOWN_EACH == 0:
            progress(f"{number:,} pods ...")
        yield pod
