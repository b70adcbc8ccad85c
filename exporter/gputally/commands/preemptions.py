"""`gputally preemptions` lists pods that lost their GPUs involuntarily."""

import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Final

from msgspec import Struct

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope import PERIODS, ScopeOptions, add_scope_flags, matched, reading_scope
from gputally.errors import ConfigError, Problem
from gputally.ledger.records import Records
from gputally.model.disruptions import Cause
from gputally.output.preemptions import write_job_preemptions, write_preemptions
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.disruptions import FILTERED, read_disruptions
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
    if unknown := [each.column for each in options.scope.filters if each.column not in FILTERED]:
        problem = f"no column {', '.join(unknown)} of victims; use {', '.join(FILTERED)}"
        raise ConfigError([Problem("", "--where", problem)])
    if options.by == "job" and options.causes != {Cause.PREEMPTION}:
        raise ConfigError([Problem("", "--cause", "--by job lists only preemptions; use preemption, or omit it")])
    reading = reading_scope(options.scope, records=Records.DISRUPTIONS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        until_us = period.state.accounted_us
        if options.by == "job":
            jobs = list(read_job_preemptions(reader, period.query, until_us=until_us))
            write, is_empty = partial(write_job_preemptions, sys.stdout, jobs), not jobs
        else:
            lines = list(read_disruptions(reader, period.query, options.causes, until_us=until_us))
            write, is_empty = partial(write_preemptions, sys.stdout, lines), not lines
        scope = matched(reader, period, is_empty=is_empty)
        progress("")
        write(scope, output=options.output, tiers_only=options.tiers_only)
        sys.stdout.flush()
        if options.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0


_USUAL: Final = tuple(cause for cause in Cause if cause not in (Cause.DELETION, Cause.CONTAINER_RESTART))
"""The causes that are listed by default, without the two of which a cluster may have many: who deletes a pod wants its
end, and a pod that restarts keeps its GPUs."""
_EXAMPLES: Final = f"""\
Lists pods that lost their GPUs before they had ended by themselves: when and why, which tier took the GPUs, and how
long it took until the containers had stopped and until a replacement ran. Works beside a running aggregator: it never
blocks it and changes nothing.

With --by job it lists one record for each job and time: by which tiers and which rule, what it cost, and what would
have prevented it or made it cheaper.

columns for --where: tier, tenant, namespace, pod, job_kind, job and node of the victim
causes: {", ".join(Cause)}

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally preemptions --window 7d --where tenant=research --ledger gputally.db
  gputally preemptions --window 2026-10 --cause spot_reclaim --output csv
  gputally preemptions --window 7d --by job --where tenant=research
  kubectl gputally preemptions --window today --where namespace=ml --where job=train
"""


def add_preemptions_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_preemptions)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_scope_flags(command)
    add = command.add_argument
    add("--by", choices=("pod", "job"), default="pod", help="what a row stands for [default: pod]")
    add(
        "--cause",
        type=Cause,
        choices=tuple(Cause),
        metavar="CAUSE",
        action="append",
        help="only this cause; may be repeated [default: all but deletion and container_restart]",
    )
    add("--tiers-only", action="store_true", help="of preemptors show only the tier, no namespace and name")
    add("--output", choices=("table", "csv", "json"), default="table", help="[default: table]")


def _preemptions(parsed: Namespace) -> int:
    options = PreemptionOptions(
        scope=ScopeOptions.of(parsed),
        by=parsed.by,
        causes=frozenset(parsed.cause or (_USUAL if parsed.by == "pod" else (Cause.PREEMPTION,))),
        tiers_only=parsed.tiers_only,
        output=parsed.output,
    )
    return list_preemptions(options)
