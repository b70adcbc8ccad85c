"""Reads preemptions and versions of PriorityClasses from a ledger."""

from collections import Counter
from datetime import UTC

from gputally.errors import ConfigError, Problem
from gputally.ledger.open import reading_once
from gputally.ledger_commands.report.report_scope import accounted, window_of
from gputally.posture.observed_preemptions import PreemptionHistory


def read_history(ledger: str, window: str) -> PreemptionHistory:
    """The accounted part of the window. Raises: LedgerError, and ConfigError for a wrong or empty window."""
    with reading_once(ledger) as reader:
        state = reader.state()
        period = accounted(window_of(window, state, UTC), state)
        if period.start_us >= period.end_us:
            problem = f"nothing is accounted in '{window}'; choose a period after the start of the ledger"
            raise ConfigError([Problem("", "--window", problem)])
        preemptions = reader.preemptions(period)
        by_priority = (each for each in preemptions if each.queue_rule is None and not each.preemptor_kind)
        counts = Counter((each.victim_tier, each.preemptor_tier) for each in by_priority)
        return PreemptionHistory(window=period, counts=counts, classes=reader.priority_classes(period))
