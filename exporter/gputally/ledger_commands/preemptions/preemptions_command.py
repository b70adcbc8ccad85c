"""`gputally preemptions`: pods that lost their GPUs involuntarily, from the ledger."""

import sys

from msgspec import Struct

from gputally.errors import ConfigError, Problem
from gputally.ledger_commands.preemptions.preemptions_text import write_preemptions
from gputally.ledger_commands.progress_line import ProgressLine, ending_at_once
from gputally.ledger_commands.report.report_scope import ScopeOptions, reading_scope
from gputally.model.disruptions.disruption import Cause
from gputally.report.disruption_lines import FILTERED, read_disruptions


class PreemptionOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    scope: ScopeOptions
    causes: frozenset[Cause]
    tiers_only: bool
    output: str


def list_preemptions(options: PreemptionOptions) -> int:
    """Print them. Raises: LedgerError, and ConfigError for a wrong period, time zone or column of a filter."""
    if unknown := [each.column for each in options.scope.filters if each.column not in FILTERED]:
        problem = f"no column {', '.join(unknown)} of victims; use {', '.join(FILTERED)}"
        raise ConfigError([Problem("", "--where", problem)])
    with ending_at_once(), ProgressLine() as progress, reading_scope(options.scope) as (reader, scope):
        progress("reading the ledger ...")
        lines = list(read_disruptions(reader, scope.query, options.causes))
        progress("")
        write_preemptions(sys.stdout, lines, scope, output=options.output, tiers_only=options.tiers_only)
        sys.stdout.flush()
    return 0
