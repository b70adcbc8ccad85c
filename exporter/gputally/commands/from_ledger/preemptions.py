"""Lists pods that lost their GPUs involuntarily, or the preemptions of jobs."""

import sys
from functools import partial

from gputally.commands.from_ledger.reading import LedgerFiles, matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.ledger.records import Records
from gputally.output.preemptions import job_preemptions_answer, preemptions_answer
from gputally.output.writer import write_answer
from gputally.questions.preemptions import BY_JOB, Preemptions
from gputally.reports.disruptions import read_disruptions
from gputally.reports.job_preemptions import read_job_preemptions


def list_preemptions(question: Preemptions, files: LedgerFiles) -> int:
    """Print them. Raises: LedgerError, and InvalidQuestion for a wrong period or time zone."""
    reading = reading_scope(question, files, records=Records.DISRUPTIONS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        until_us = period.state.accounted_us
        if question.by == BY_JOB:
            jobs = list(read_job_preemptions(reader, period.query, until_us=until_us))
            answer, is_empty = partial(job_preemptions_answer, jobs), not jobs
        else:
            lines = list(read_disruptions(reader, period.query, question.causes, until_us=until_us))
            answer, is_empty = partial(preemptions_answer, lines), not lines
        scope = matched(reader, period, is_empty=is_empty)
        progress("")
        write_answer(sys.stdout, answer(scope, tiers_only=question.tiers_only), output=question.output)
        sys.stdout.flush()
        if question.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0
