"""Lists pods that lost their GPUs involuntarily, or the preemptions of jobs."""

import sys
from functools import partial

from msgspec import Struct

from gputally.commands.from_ledger.reading import matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope_flags import ScopeOptions
from gputally.errors import ConfigError, Problem
from gputally.ledger.records import Records
from gputally.model.disruptions import Cause
from gputally.output.preemptions import job_preemptions_answer, preemptions_answer
from gputally.output.writer import write_answer
from gputally.reports.choices import VICTIM_FILTERED
from gputally.reports.disruptions import read_disruptions
from gputally.reports.job_preemptions import read_job_preemptions


class PreemptionOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    scope: ScopeOptions
    by: str
    causes: frozenset[Cause]
    tiers_only: bool
    output: str


def list_preemptions(options: PreemptionOptions) -> int:
    """Print them. Raises: LedgerError, and ConfigError for a wrong period, time zone, cause or column of a filter."""
    if unknown := [each.column for each in options.scope.filters if each.column not in VICTIM_FILTERED]:
        problem = f"no column {', '.join(unknown)} of victims; use {', '.join(VICTIM_FILTERED)}"
        raise ConfigError([Problem("", "--where", problem)])
    if options.by == "job" and options.causes != {Cause.PREEMPTION}:
        raise ConfigError([Problem("", "--cause", "--by job lists only preemptions; use preemption, or omit it")])
    reading = reading_scope(options.scope, records=Records.DISRUPTIONS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        until_us = period.state.accounted_us
        if options.by == "job":
            jobs = list(read_job_preemptions(reader, period.query, until_us=until_us))
            answer, is_empty = partial(job_preemptions_answer, jobs), not jobs
        else:
            lines = list(read_disruptions(reader, period.query, options.causes, until_us=until_us))
            answer, is_empty = partial(preemptions_answer, lines), not lines
        scope = matched(reader, period, is_empty=is_empty)
        progress("")
        write_answer(sys.stdout, answer(scope, tiers_only=options.tiers_only), output=options.output)
        sys.stdout.flush()
        if options.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0
